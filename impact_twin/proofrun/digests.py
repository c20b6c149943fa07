"""Rung 3: every digest computed again, and the parts of the report held against each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile

from impact_twin.canonical import digest_bytes, loads_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.bundle import digests_of
from impact_twin.proofrun.checks import Material, RefusedError, case_name
from impact_twin.proofrun.quick import canonical_parsed, digest_parsed
from impact_twin.proofrun.shape import check_plan_shape
from impact_twin.report.cases import attempt_traces, trace_json
from impact_twin.report.model import plan_of
from impact_twin.report.observations import iter_cases
from impact_twin.report.schema import check_references
from impact_twin.trials.plan import iter_cases as iter_plan
from impact_twin.trials.records import CaseKey


def check_digests(material: Material) -> str:
    """Refuse a bundle whose digests are not those of its parts."""
    found = digests_of(material.report)
    for name, stated in material.bundle["digests"].items():
        if stated != found[name]:
            raise RefusedError(f"digests.{name} says {stated}, but it is {found[name]}")
    stated = material.report["plan"]["digest"]
    if stated != found["plan"]:
        raise RefusedError(
            f"report.plan.digest says {stated}, but identity and plan give {found['plan']}"
        )
    return "report, plan, traces and texts have their digests"


def check_suite(material: Material) -> str:
    """Refuse a report whose suite isn't at hand, or that says something else of it."""
    stated = material.report["identity"]["suite"]
    suite = material.suites.get(stated["digest"])
    if suite is None:
        raise RefusedError(
            f"its suite {stated['id']} ({stated['digest']}) is none that this impact-twin carries; "
            "a suite of one's own is named with --suite"
        )
    if stated["id"] != suite.id or stated["bundled"] != suite.bundled:
        raise RefusedError(f"report.identity.suite contradicts the suite {suite.id} of that digest")
    plan = material.report["plan"]
    every = [pair.id for pair in suite.pairs]
    if plan["pairs"] != [pair for pair in every if pair in plan["pairs"]]:
        raise RefusedError("report.plan.pairs are not pairs of the suite in its order")
    if plan["full_suite"] != (plan["pairs"] == every):
        raise RefusedError("report.plan.full_suite contradicts report.plan.pairs")
    return f"suite {suite.id}"


def check_plan(material: Material) -> str:
    """Refuse pair-trials that are not the planned ones, in the order that the seed gives."""
    report = material.report
    plan = plan_of(report)
    check_plan_shape(plan)
    if report["identity"]["agent"]["kind"] != plan["spec"]["kind"]:
        raise RefusedError("the agent's kind differs between identity.agent and plan.spec")
    agent, spec = report["identity"]["agent"], plan["spec"]
    for name in ("target", "model"):
        if name in agent and name in spec and agent[name] != spec[name]:
            raise RefusedError(f"the agent's {name} differs between identity.agent and plan.spec")
    try:
        check_references(report)
    except InputError as err:
        raise RefusedError(err.what) from None
    # Each look takes time to derive again, so there may not be more of them than trials.
    asked = [look["trial"] for look in report["identity"]["run"]["looks"]]
    if asked != sorted(set(asked)) or (asked and asked[-1] > report["plan"]["trials"]):
        raise RefusedError("report.identity.run.looks are not of one trial after another")
    started: dict[tuple[int, str], tuple[int, str]] = {}
    for key in planned_cases(report):
        started.setdefault((key.trial, key.pair), (len(started), key.twin))
    for row in report["pair_trials"]:
        if (row["order"], row["first"]) != started[row["trial"], row["pair"]]:
            raise RefusedError(
                f"{case_name(row['pair'], row['trial'])}: order and first are not those that the "
                "seed gives"
            )
    trials = report["plan"]["trials"]
    return f"{trials} trials of {len(plan['pairs'])} pairs, in the order of the seed"


def check_traces(material: Material) -> str:
    """Refuse a trace that isn't what its digest says, that nothing names, or that is missing."""
    traces = material.report["traces"]
    for name, entry in traces.items():
        if digest_parsed(trace_json(entry)) != name:
            raise RefusedError(f"report.traces: {name} is not the digest of its trace")
    named = set(_named_traces(material.report, traces))
    for name, entry in traces.items():
        if name not in named:
            raise RefusedError(f"report.traces: no case names {name}")
        # Figures compare decisions before rung 5 derives them; there may be few different ones.
        if entry["decision"] not in (None, *material.suite.pair(entry["pair"]).vendors):
            raise RefusedError(f"report.traces: {name} decides for no vendor of its pair")
    return f"{len(traces)} traces"


def check_texts(material: Material) -> str:
    """Refuse a text that isn't what its digest says, that nothing names, or that is missing."""
    report = material.report
    texts = report["texts"]
    for name, text in texts.items():
        if digest_bytes(text.encode("utf-8")) != name:
            raise RefusedError(f"report.texts: {name} is not the digest of its text")
    named = {event["output"] for entry in report["traces"].values() for event in entry["events"]}
    for row in iter_cases(report):
        named.update(row.case[field] for field in ("delivered_text", "detail") if field in row.case)
    for name in {row.case["detail"] for row in iter_cases(report) if "detail" in row.case}:
        _check_detail(name, texts[name])
    for name in texts:
        if name not in named:
            raise RefusedError(f"report.texts: nothing names {name}")
    return f"{len(texts)} texts"


def planned_cases(report: Mapping[str, JSON]) -> Iterator[CaseKey]:
    """Yield the planned cases of the trials that a report speaks of, in start order."""
    trials = report["plan"]["trials"]
    return takewhile(lambda key: key.trial <= trials, iter_plan(plan_of(report)))


def _named_traces(report: Mapping[str, JSON], traces: Mapping[str, JSON]) -> Iterator[str]:
    for row in iter_cases(report):
        for name in (row.case["trace"], *attempt_traces(row.case)):
            if name is None:
                continue
            where = case_name(row.pair, row.trial, row.twin)
            if name not in traces:
                raise RefusedError(f"{where}: report.traces has no {name}")
            if (traces[name]["pair"], traces[name]["twin"]) != (row.pair, row.twin):
                raise RefusedError(f"{where}: {name} is the trace of another pair or twin")
            yield name


def _check_detail(name: str, text: str) -> None:
    """Refuse a detail that isn't the canonical text of a JSON object."""
    try:
        value = loads_strict(text.encode("utf-8"))
        canonical = canonical_parsed(value).decode("utf-8")
    except InputError as err:
        raise RefusedError(f"report.texts: {name} is no detail: {err.what}") from None
    if not isinstance(value, dict) or canonical != text:
        raise RefusedError(f"report.texts: {name} is no detail: no JSON object in canonical form")
