"""`impact-twin repeat`: run an agent on the pairs, many times, and report what it did."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from impact_twin.cli.exports import check_exports, export_options, take_exports, write_exports
from impact_twin.cli.output import say
from impact_twin.cli.progress import show_progress
from impact_twin.cli.show import print_report
from impact_twin.errors import InputError, StoppedError
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.agents.protocol import AgentSource
    from impact_twin.procurement.suite import Suite
    from impact_twin.report.gates import Gate
    from impact_twin.report.until import Until
    from impact_twin.trials.plan import Limits
    from impact_twin.trials.records import RunData

REPORT_FILE = "report.json"
# What a resumed run takes from its plan.
FIXED_BY_PLAN = {
    "agent": "--agent",
    "model": "--model",
    "pipeline": "--pipeline",
    "temperature": "--temperature",
    "max_reply_tokens": "--max-reply-tokens",
    "max_iters": "--max-iters",
    "api_base": "--api-base",
    "name": "--name",
    "trials": "--trials",
    "confidence": "--confidence",
    "seed": "--seed",
    "pairs": "--pairs",
    "timeout": "--timeout",
    "retries": "--retries",
    "isolation": "--isolation",
    "until": "--until",
    "out": "--out",
}


@dataclass(frozen=True)
class Job:
    """Everything that `repeat` runs with, checked.

    Attributes:
        plan: The content of plan.json.
        suite: The suite.
        source: The agent, prepared.
        directory: The run directory.
        resume: Whether the directory holds a run to go on with.
    """

    plan: Mapping[str, Any]
    suite: Suite
    source: AgentSource
    directory: Path
    resume: bool


@click.command()
@click.option("--agent", metavar="AGENT", help="demo:NAME or module:factory  [demo:wavering]")
@click.option("--model", metavar="ID", help="A LiteLLM model id, run by dspy.ReActV2.")
@click.option("--pipeline", metavar="TARGET", help="module:factory of an AgentDojo pipeline.")
@click.option("--temperature", type=float, help="Sampling temperature, with --model.")
@click.option("--api-base", metavar="URL", help="An OpenAI-compatible endpoint, with --model.")
@click.option("--max-reply-tokens", type=int, metavar="N", help="Cap on one reply, with --model.")
@click.option("--max-iters", type=int, metavar="N", help="Cap on turns, with --model.")
@click.option("--name", metavar="NAME", help="What to call the agent in the report.")
@click.option("--trials", type=int, metavar="N", help="Passes over the pairs.  [10]")
@click.option("--pairs", metavar="A,B", help="Only these pairs; then it is not the full suite.")
@click.option("--suite", "folder", metavar="DIR", help="Your own suite of pairs.")
@click.option("--confidence", type=float, help="Of every interval.  [0.95]")
@click.option("--seed", type=int, metavar="N", help="Decides order and case seeds.  [0]")
@click.option("--concurrency", type=int, default=4, show_default=True, help="Cases at once.")
@click.option("--timeout", type=float, metavar="S", help="Seconds a case may take.  [300]")
@click.option("--retries", type=int, help="Tries after an infrastructure error.  [2]")
@click.option("--isolation", metavar="KIND", help="thread or process.  [thread]")
@click.option("--max-cost-usd", type=float, metavar="USD", help="Stop when the run cost this.")
@click.option("--max-tokens", type=int, metavar="N", help="Stop when the run used this many.")
@click.option("--gate", multiple=True, metavar="EXPR", help="'secure_utility >= 0.8'; the suite.")
@click.option("--gate-pairs", multiple=True, metavar="EXPR", help="The same for every pair.")
@click.option("--until", metavar="RULE", help="Stop when settled: 'secure_utility >= 0.8'.")
@click.option("--out", metavar="DIR", help="The run directory.  [runs/NAME-TIME]")
@click.option("--resume", metavar="DIR", help="Go on with a run that stopped.")
@click.option("--plan-only", is_flag=True, help="Write plan.json, run nothing; then --resume.")
@export_options
@click.option("--quiet", is_flag=True, help="No progress and no terminal report.")
@click.option("--force", is_flag=True, help="Overwrite an earlier run or file.")
def repeat(
    *,
    folder: str | None,
    concurrency: int,
    gate: tuple[str, ...],
    gate_pairs: tuple[str, ...],
    resume: str | None,
    plan_only: bool,
    quiet: bool,
    force: bool,
    **options: Any,
) -> int:
    """Run an agent on the five clean/poisoned pairs, many times.

    Without options the embedded stochastic demo agent runs: no network, no cost, some seconds.
    Each finished case is on disk before the next one starts; --resume finishes a run that stopped.

    \b
    Exit code: 0 held; 1 a gate failed; 2 usage or input; 3 stopped before the plan ended;
    130, 143 by signal.
    """  # noqa: D301 (click's mark for lines to keep)
    from impact_twin.report.files import write_report
    from impact_twin.report.model import build_report

    targets = take_exports(options)
    check_exports(targets, force=force)
    gates = _gates(gate, gate_pairs)
    job = _resumed(resume, folder, options) if resume else _new(folder, force, options)
    _check_gates(gates, job.plan)
    if plan_only:
        return _write_plan(job, force=force, quiet=quiet)
    run, code = _execute(job, concurrency=concurrency, quiet=quiet, force=force)
    report = build_report(run, job.suite, gates=gates)
    write_report(report, job.directory / REPORT_FILE, force=True)
    write_exports(report, targets, None if folder is None else Path(folder))
    stream = sys.stderr if "-" in targets.values() else sys.stdout
    if not quiet:
        print_report(report, stream=stream)
        _next_steps(job.directory, run, stream)
    elif run.stopped:
        say(f"Stopped: {escape(run.stopped)}", sys.stderr)
    return code or _gate_code(report)


def _new(folder: str | None, force: bool, options: dict[str, Any]) -> Job:
    from impact_twin.trials.journal import check_directory
    from impact_twin.trials.plan import make_plan

    suite = _suite(folder)
    source = _source(options)
    arguments = _plan_arguments(options)
    # The settings are checked before the agent is imported, and again with its identity.
    out = options["out"]
    directory = Path(out) if out else _fresh_directory(str(source.identity()["name"]))
    check_directory(directory, force=force)
    make_plan(suite, source, **arguments)
    source.prepare()
    return Job(make_plan(suite, source, **arguments), suite, source, directory, resume=False)


def _resumed(directory: str, folder: str | None, options: dict[str, Any]) -> Job:
    from impact_twin.agents import load_source
    from impact_twin.report.files import suite_of_plan
    from impact_twin.trials.plan import read_plan, renew_plan

    given = [name for key, name in FIXED_BY_PLAN.items() if options[key] is not None]
    if given:
        raise InputError(
            "a resumed run keeps the settings of its plan",
            where=given[0],
            mend="Leave it out, or start a new run with another --out.",
        )
    stored = read_plan(Path(directory))
    suite = suite_of_plan(stored, None if folder is None else Path(folder))
    source = load_source(stored["spec"])
    source.prepare()
    plan = renew_plan(stored, suite, source)
    budget = plan["identity"]["run"]["limits"]
    for name in ("max_cost_usd", "max_tokens"):
        if options[name] is not None:
            budget[name] = options[name]
    _limits(plan).check()
    return Job(plan, suite, source, Path(directory), resume=True)


def _suite(folder: str | None) -> Suite:
    from impact_twin.procurement.suite import load_suite

    return load_suite(None if folder is None else Path(folder))


def _source(options: dict[str, Any]) -> AgentSource:
    from impact_twin.agents import load_source, spec_from_options

    return load_source(
        spec_from_options(
            agent=options["agent"],
            model=options["model"],
            pipeline=options["pipeline"],
            temperature=options["temperature"],
            max_tokens=options["max_reply_tokens"],
            api_base=options["api_base"],
            max_iters=options["max_iters"],
            name=options["name"],
        )
    )


def _plan_arguments(options: dict[str, Any]) -> dict[str, Any]:
    from impact_twin.trials.plan import Limits

    limits = {
        "timeout_s": options["timeout"],
        "retries": options["retries"],
        "max_cost_usd": options["max_cost_usd"],
        "max_tokens": options["max_tokens"],
    }
    arguments = {
        "trials": 10 if options["trials"] is None else options["trials"],
        "pairs": _names(options["pairs"]),
        "confidence": options["confidence"],
        "seed": options["seed"],
        "isolation": options["isolation"],
        "until": _rule(options["until"]),
        "limits": Limits(**{key: value for key, value in limits.items() if value is not None}),
    }
    return {key: value for key, value in arguments.items() if value is not None}


def _rule(text: str | None) -> str | None:
    if text is not None:
        from impact_twin.report.until import read_rule

        read_rule(text)
    return text


def _stop_rule(job: Job) -> Until | None:
    from impact_twin.report.until import Until

    text = job.plan["identity"]["run"]["until"]
    return None if text is None else Until(text, job.suite, job.plan)


def _limits(plan: Mapping[str, Any]) -> Limits:
    from impact_twin.trials.plan import plan_limits

    return plan_limits(plan)


def _names(pairs: str | None) -> Sequence[str] | None:
    return None if pairs is None else [name.strip() for name in pairs.split(",") if name.strip()]


def _fresh_directory(name: str) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "agent"
    stem = f"{slug}-{time.strftime('%Y%m%d-%H%M%S')}"
    candidates = [Path("runs") / stem, *(Path("runs") / f"{stem}-{n}" for n in range(2, 100))]
    return next((path for path in candidates if not path.exists()), candidates[-1])


def _gates(suite: Sequence[str], pairs: Sequence[str]) -> list[Gate]:
    from impact_twin.report.gates import parse_gate

    return [parse_gate(text, "suite") for text in suite] + [
        parse_gate(text, "pairs") for text in pairs
    ]


def _check_gates(gates: Sequence[Gate], plan: Mapping[str, Any]) -> None:
    from impact_twin.report.gates import check_reach

    check_reach(
        gates, trials=plan["trials"], pairs=len(plan["pairs"]), confidence=plan["confidence"]
    )


def _execute(job: Job, *, concurrency: int, quiet: bool, force: bool) -> tuple[RunData, int]:
    from impact_twin.trials.interrupt import Interrupt
    from impact_twin.trials.runner import run

    with Interrupt() as interrupt, show_progress(job.suite, quiet=quiet) as progress:
        data = run(
            job.plan,
            job.suite,
            job.source,
            job.directory,
            concurrency=concurrency,
            resume=job.resume,
            force=force,
            progress=progress,
            stop_rule=_stop_rule(job),
            interrupt=interrupt,
        )
    if interrupt.exit_code is not None:
        return data, interrupt.exit_code
    return data, StoppedError.exit_code if data.stopped else 0


def _write_plan(job: Job, *, force: bool, quiet: bool) -> int:
    from impact_twin.trials.journal import write_plan

    if job.resume:
        raise InputError("the plan is there already", where="--plan-only", mend="Leave it out.")
    write_plan(job.directory, job.plan, force=force)
    if not quiet:
        shown = escape(str(job.directory))
        say(f"Planned in {shown}. Run it with:  impact-twin repeat --resume {shown}")
    return 0


def _gate_code(report: Mapping[str, Any]) -> int:
    from impact_twin.report.gates import all_held

    return 0 if all_held(report["summary"]) else 1


def _next_steps(directory: Path, run: RunData, stream: TextIO) -> None:
    shown = escape(str(directory))
    say("", stream)
    if run.stopped:
        say(f"Stopped: {escape(run.stopped)}", stream)
        say(f"Go on with:  impact-twin repeat --resume {shown}", stream)
    say(f"Saved in {shown}", stream)
