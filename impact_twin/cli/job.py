"""What `repeat` runs: a new plan, or one to go on with, checked before the first call."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from impact_twin.errors import InputError

if TYPE_CHECKING:
    from impact_twin.agents.protocol import AgentSource
    from impact_twin.procurement.suite import Suite
    from impact_twin.trials.plan import Limits

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
        shown: The run directory as the user named it.
        directory: The same as an absolute path, since an agent may change the working directory.
        resume: Whether the directory holds a run to go on with.
    """

    plan: Mapping[str, Any]
    suite: Suite
    source: AgentSource
    shown: Path
    directory: Path
    resume: bool


def new_job(folder: str | None, force: bool, options: dict[str, Any]) -> Job:
    """Return the job that a command's options describe.

    Raises:
        InputError: something can't be; nothing was written yet.
    """
    from impact_twin.trials.journal import check_directory
    from impact_twin.trials.plan import make_plan

    suite = _suite(folder)
    source = _source(options)
    arguments = _plan_arguments(options)
    named = next(filter(None, (options[key] for key in ("name", "model", "pipeline", "agent"))), "")
    directory = Path(options["out"]) if options["out"] else _fresh_directory(named or "demo")
    check_directory(directory, force=force)
    # The settings are checked before the agent is imported, and again with its identity.
    make_plan(suite, source, **arguments)
    source.prepare()
    plan = make_plan(suite, source, **arguments)
    return Job(plan, suite, source, directory, directory.absolute(), resume=False)


def resumed_job(directory: str, folder: str | None, options: dict[str, Any]) -> Job:
    """Return the job that goes on with the run of a directory.

    Raises:
        InputError: there is no such run, or it can't go on with these options.
    """
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
    shown = Path(directory)
    return Job(plan, suite, source, shown, shown.absolute(), resume=True)


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
