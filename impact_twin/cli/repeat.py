"""`impact-twin repeat`: run an agent on the pairs, many times, and report what it did."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from impact_twin.cli.exports import (
    absolute_targets,
    check_exports,
    export_options,
    take_exports,
    write_exports,
)
from impact_twin.cli.job import Job, new_job, resumed_job
from impact_twin.cli.output import say
from impact_twin.cli.progress import show_progress
from impact_twin.cli.show import print_report
from impact_twin.errors import InputError, StoppedError
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.report.gates import Gate
    from impact_twin.report.until import Until
    from impact_twin.trials.records import RunData

REPORT_FILE = "report.json"


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
    Exit code: 0 held; 1 a gate failed, or no case ran to its end; 2 usage or input;
    3 stopped before the plan ended; 130, 143 by signal.
    """  # noqa: D301 (click's mark for lines to keep)
    targets = take_exports(options)
    gates = _gates(gate, gate_pairs)
    with _standard_output_to_error():
        job = resumed_job(resume, folder, options) if resume else new_job(folder, force, options)
    check_exports(targets, force=force, directory=job.directory)
    targets = absolute_targets(targets)
    gates = gates or (_earlier_gates(job) if job.resume else [])
    _check_gates(gates, job.plan)
    if plan_only:
        return _write_plan(job, force=force, quiet=quiet)
    suite_folder = None if folder is None else Path(folder).absolute()
    run, code = _execute(job, concurrency=concurrency, quiet=quiet, force=force)
    from impact_twin.report.model import build_report

    report = build_report(run, job.suite, gates=gates)
    stream = sys.stderr if "-" in targets.values() else sys.stdout
    if not quiet:
        print_report(report, stream=stream)
    saved = _save(report, job, targets, suite_folder)
    _last_words(run, report, "" if quiet else _go_on(job, gates, folder), stream)
    if saved and not quiet:
        say(f"Saved in {escape(str(job.shown))}", stream)
    return code or (_code_of(report) if saved else StoppedError.exit_code)


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


def _earlier_gates(job: Job) -> list[Gate]:
    from impact_twin.report.files import gates_beside

    return gates_beside(job.directory)


def _execute(job: Job, *, concurrency: int, quiet: bool, force: bool) -> tuple[RunData, int]:
    from impact_twin.trials.interrupt import Interrupt
    from impact_twin.trials.runner import run

    with (
        Interrupt() as interrupt,
        show_progress(job.suite, quiet=quiet) as progress,
        _standard_output_to_error(),
    ):
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


def _stop_rule(job: Job) -> Until | None:
    from impact_twin.report.until import Until

    text = job.plan["identity"]["run"]["until"]
    return None if text is None else Until(text, job.suite, job.plan)


def _write_plan(job: Job, *, force: bool, quiet: bool) -> int:
    from impact_twin.trials.journal import write_plan

    if job.resume:
        raise InputError("the plan is there already", where="--plan-only", mend="Leave it out.")
    write_plan(job.directory, job.plan, force=force)
    if not quiet:
        go_on = _command("--resume", str(job.shown))
        say(f"Planned in {escape(str(job.shown))}. Run it with:  {go_on}")
    return 0


@contextlib.contextmanager
def _standard_output_to_error() -> Iterator[None]:
    """Send what an agent prints, or its children, to standard error: ours alone is the report."""
    try:
        ours, theirs = sys.stdout.fileno(), sys.stderr.fileno()
        sys.stdout.flush()
        kept = os.dup(ours)
    except (AttributeError, OSError, ValueError):  # a stream is closed, or has no descriptor
        yield
        return
    os.dup2(theirs, ours)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, ours)
        os.close(kept)


def _save(
    report: Mapping[str, Any], job: Job, targets: Mapping[str, str], folder: Path | None
) -> bool:
    """Write the report and the files asked for; a failure is said, and never hides the run."""
    from impact_twin.report.files import write_report

    try:
        write_report(report, job.directory / REPORT_FILE, force=True)
        write_exports(report, targets, folder)
    except InputError as err:
        say(f"Error: {escape(err.line())}", sys.stderr)
        return False
    return True


def _code_of(report: Mapping[str, Any]) -> int:
    from impact_twin.report.gates import all_held

    return 0 if all_held(report["summary"]) and not _without_result(report) else 1


def _without_result(report: Mapping[str, Any]) -> list[str]:
    from impact_twin.report.warnings import NO_RESULT

    found = report["summary"]["warnings"]
    return [warning["text"] for warning in found if warning["code"] in NO_RESULT]


def _go_on(job: Job, gates: Sequence[Gate], folder: str | None) -> str:
    arguments = ["--resume", str(job.shown)]
    if folder is not None:
        arguments += ["--suite", folder]
    for gate in gates:
        arguments += ["--gate" if gate.scope == "suite" else "--gate-pairs", gate.text]
    return _command(*arguments)


def _command(*arguments: str) -> str:
    return escape(shlex.join(["impact-twin", "repeat", *arguments]))


def _last_words(run: RunData, report: Mapping[str, Any], go_on: str, stream: TextIO | None) -> None:
    if not go_on:  # quiet: only what must not be missed
        for line in [*filter(None, [run.stopped]), *_without_result(report)]:
            say(escape(line), sys.stderr)
        return
    say("", stream)
    if run.stopped:
        say(f"Stopped: {escape(run.stopped)}", stream)
        say(f"Go on with:  {go_on}", stream)
