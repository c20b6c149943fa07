"""The report: every planned pair-trial of one agent, and everything derived from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON, Verdict
from impact_twin.procurement.scoring import score_case
from impact_twin.report.cases import (
    case_json,
    case_view,
    pair_facts,
    trace_of,
    verdict_json,
)
from impact_twin.report.gates import Gate
from impact_twin.report.observations import observe_case
from impact_twin.report.outcomes import CaseView, PairOutcome, classify
from impact_twin.report.summary import summary_of
from impact_twin.report.until import reported_trials
from impact_twin.statistics.table import Observation
from impact_twin.trials.plan import iter_cases, plan_digest
from impact_twin.trials.records import CaseKey, CaseRecord, RunData

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

KIND = "impact-twin/report"
SCHEMA_VERSION = 1

PLAN_KEPT = ("pairs", "confidence", "full_suite", "spec", "created", "platform")
# What the report adds to the plan's identity.
ADDED = {
    "suite": ("bundled",),
    "agent": ("instances",),
    "run": ("concurrency", "resumed", "stopped", "notes", "looks"),
}


def build_report(run: RunData, suite: Suite, *, gates: Iterable[Gate] = ()) -> dict[str, JSON]:
    """Return the report of a run, finished or not.

    Every planned pair-trial is in it; a case that never started is `not_run`. A trace that is
    missing, or of another case than its record says, leaves its case unreadable.

    Args:
        run: The run directory, read back.
        suite: The suite that was run.
        gates: Gates to evaluate.

    Raises:
        InputError: the suite is not the one of the plan.
    """
    planned = run.plan["identity"]["suite"]
    if suite.digest != planned["digest"]:
        raise InputError(
            f"the run is of the suite {planned['id']} with the digest {planned['digest']}, "
            f"not of {suite.id} with {suite.digest}",
            mend="Name its folder with --suite.",
        )
    texts: dict[str, str] = {}
    traces = _traces(run, suite, texts)
    trials = reported_trials(run.plan["trials"], run.looks)
    report: dict[str, JSON] = {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "identity": _identity(run, suite),
        "plan": {
            "digest": plan_digest(run.plan),
            "trials": trials,
            "most_trials": run.plan["trials"],
            **{name: run.plan[name] for name in PLAN_KEPT},
        },
        "pair_trials": _pair_trials(run, suite, traces, texts, trials),
        "traces": dict(sorted(traces.items())),
        "texts": {},
        "summary": None,
    }
    report["texts"] = dict(sorted(texts.items()))
    report["summary"] = summary_of(report, gates)
    return report


def plan_of(report: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the plan.json that a report was made from; its digest is `report.plan.digest`."""
    identity = {
        name: {key: value for key, value in part.items() if key not in ADDED.get(name, ())}
        for name, part in report["identity"].items()
    }
    return {
        "kind": "impact-twin/plan",
        "schema_version": 1,
        "identity": identity,
        "trials": report["plan"]["most_trials"],
        **{name: report["plan"][name] for name in PLAN_KEPT},
    }


def judge(
    suite: Suite, pair: str, clean: Mapping[str, JSON], poisoned: Mapping[str, JSON], traces: JSON
) -> PairOutcome:
    """Return the outcome of a pair-trial of a report.

    Args:
        suite: The suite.
        pair: The pair's id.
        clean: The clean case as the report holds it.
        poisoned: The poisoned case.
        traces: The report's traces.
    """
    return classify(
        case_view(clean, traces, pair, "clean"),
        case_view(poisoned, traces, pair, "poisoned"),
        pair_facts(suite.pair(pair)),
    )


def judge_records(
    suite: Suite, run: RunData, clean: CaseRecord, poisoned: CaseRecord
) -> PairOutcome:
    """Return the outcome of a pair-trial while the run goes on.

    Args:
        suite: The suite.
        run: The run so far, with the records' traces.
        clean: The clean case's record.
        poisoned: The poisoned case's record.
    """
    views = [_view(suite, run, record) for record in (clean, poisoned)]
    return classify(views[0], views[1], pair_facts(suite.pair(clean.key.pair)))


def observe_records(
    suite: Suite, run: RunData, clean: CaseRecord, poisoned: CaseRecord
) -> Observation:
    """Return the row of a pair-trial in the observation table while the run goes on."""
    observed = [
        observe_case(_view(suite, run, record), trace=record.trace, position=record.position)
        for record in (clean, poisoned)
    ]
    return Observation(
        pair=clean.key.pair,
        trial=clean.key.trial,
        outcome=judge_records(suite, run, clean, poisoned).outcome,
        clean=observed[0],
        poisoned=observed[1],
    )


def _view(suite: Suite, run: RunData, record: CaseRecord) -> CaseView:
    data = run.traces.get(record.trace)
    verdict = None if data is None else _verdict(suite, data, run.texts)
    return CaseView(record.termination, verdict)


def _verdict(suite: Suite, data: Mapping[str, JSON], texts: Mapping[str, str]) -> Verdict | None:
    """What scoring says of a trace; None when it can't be read."""
    try:
        return score_case(suite, trace_of(data, texts))
    except (KeyError, TypeError, InputError):
        return None


def _identity(run: RunData, suite: Suite) -> dict[str, JSON]:
    planned = run.plan["identity"]
    return {
        "suite": {**planned["suite"], "bundled": suite.bundled},
        "agent": {**planned["agent"], "instances": _instances(run.cases.values())},
        "versions": dict(planned["versions"]),
        "run": {
            **planned["run"],
            "concurrency": list(run.concurrency),
            "resumed": run.resumed,
            "stopped": run.stopped,
            "notes": list(run.notes),
            "looks": [dict(look) for look in run.looks],
        },
    }


def _instances(records: Iterable[CaseRecord]) -> str:
    """`shared` when two cases got the same agent object."""
    known = [record.instance for record in records if record.instance is not None]
    return "fresh" if len(set(known)) == len(known) else "shared"


def _traces(run: RunData, suite: Suite, texts: dict[str, str]) -> dict[str, JSON]:
    """The readable traces of all tries, each with its verdict; puts their outputs into `texts`."""
    owners: dict[str, CaseKey] = {}
    for key, record in run.cases.items():
        for name in (record.trace, *(attempt.trace for attempt in record.attempts)):
            owners.setdefault(name, key)
    found: dict[str, JSON] = {}
    for name, key in owners.items():
        data = run.traces.get(name)
        if data is None or (data["pair"], data["twin"]) != (key.pair, key.twin):
            continue
        verdict = _verdict(suite, data, run.texts)
        if verdict is None:
            continue
        for event in data["events"]:
            texts[event["output"]] = run.texts[event["output"]]
        found[name] = {**data, **verdict_json(verdict)}
    return found


def _pair_trials(
    run: RunData, suite: Suite, traces: Mapping[str, JSON], texts: dict[str, str], trials: int
) -> list[dict[str, JSON]]:
    started: dict[tuple[int, str], tuple[int, str]] = {}
    for key in iter_cases(run.plan):
        started.setdefault((key.trial, key.pair), (len(started), key.twin))
    rows = []
    for trial in range(1, trials + 1):
        for pair in run.plan["pairs"]:
            clean, poisoned = (
                case_json(run.cases.get(CaseKey(pair, trial, twin)), texts)
                for twin in ("clean", "poisoned")
            )
            order, first = started[trial, pair]
            found = judge(suite, pair, clean, poisoned, traces)
            rows.append(
                {
                    "pair": pair,
                    "trial": trial,
                    "order": order,
                    "first": first,
                    "outcome": found.outcome,
                    "reasons": list(found.reasons),
                    "targeted": found.targeted,
                    "toward_attacker": found.toward_attacker,
                    "clean": clean,
                    "poisoned": poisoned,
                }
            )
    return rows
