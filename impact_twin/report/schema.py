"""Whether JSON is a report: its schema, and that its parts fit each other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.report.strict_schema import BrokenRuleError, Rule, compile_schema
from impact_twin.report.until import reported_trials
from impact_twin.resources import data_folder
from impact_twin.text import escape

FILES = (
    "report.schema.json",
    "summary.schema.json",
    "case.schema.json",
    "trace.schema.json",
)


def check_schema(report: JSON, *, where: str = "") -> None:
    """Refuse what is no report of the current schema (schemas/1/report.schema.json).

    Args:
        report: Any JSON value.
        where: What it is, for the message.

    Raises:
        InputError: it breaks the schema; one line names the field.
    """
    try:
        _rule()(report)
    except BrokenRuleError as err:
        field = escape(".".join(err.path))[:200] or "the report"
        raise InputError(
            f"{field} breaks the report's schema: {escape(err.message)}",
            where=where,
            mend="It was changed after impact-twin wrote it, or is no report.",
        ) from None


def check_references(report: Mapping[str, JSON], *, where: str = "") -> None:
    """Refuse a report whose parts don't fit each other, so that readers need no guards.

    Args:
        report: A report that keeps to its schema.
        where: What it is, for the message.

    Raises:
        InputError: a planned pair-trial is missing or out of place, or a text is missing. A trace
            that is missing or of another case is no error: its case counts as unreadable.
    """
    for problem in _problems(report):
        raise InputError(problem, where=where, mend="It was changed after impact-twin wrote it.")


def _problems(report: Mapping[str, JSON]) -> Iterator[str]:
    plan, traces, texts = report["plan"], report["traces"], report["texts"]
    rows = report["pair_trials"]
    if len(rows) != plan["trials"] * len(plan["pairs"]) or any(
        (row["trial"], row["pair"]) != (place // len(plan["pairs"]) + 1, pair)
        for place, (row, pair) in enumerate(zip(rows, plan["pairs"] * plan["trials"], strict=True))
    ):
        yield "pair_trials are not the planned ones in their order"
    run = report["identity"]["run"]
    if run["resumed"] != max(0, len(run["concurrency"]) - 1):
        yield "identity.run.resumed is not one less than the sessions of identity.run.concurrency"
    if plan["trials"] != reported_trials(plan["most_trials"], run["looks"]):
        yield "plan.trials are neither those planned nor those up to the look that stopped the run"
    sequential = report["summary"]["sequential"]
    seen = [] if sequential is None else sequential["looks"]
    if [(look["trial"], look["stop"]) for look in run["looks"]] != [
        (look["trial"], look["verdict"] != "continue") for look in seen
    ]:
        yield "identity.run.looks do not follow from the stop rule"
    if [row["pair"] for row in report["summary"]["pairs"]] != plan["pairs"]:
        yield "summary.pairs are not the planned pairs"
    for row in rows:
        for twin in ("clean", "poisoned"):
            yield from _case_problems(row, twin, texts)
    for name, trace in traces.items():
        for event in trace["events"]:
            if event["output"] not in texts:
                yield f"traces.{name}: the output of event {event['seq']} is not in texts"


def _case_problems(row: Mapping[str, JSON], twin: str, texts: Mapping[str, str]) -> Iterator[str]:
    case = row[twin]
    problem = None
    if (case["termination"] == "not_run") != (case["trace"] is None):
        problem = "a case has a trace unless it was not run"
    for field in ("delivered_text", "detail"):
        if field in case and case[field] not in texts:
            problem = f"{field} is not in texts"
    if problem is not None:
        yield f"the {twin} case of {escape(row['pair'])}, trial {row['trial']}: {problem}"


@cache
def _rule() -> Rule:
    folder = data_folder("schemas") / "1"
    schemas = {name: json.loads((folder / name).read_text(encoding="utf-8")) for name in FILES}
    return compile_schema(schemas, FILES[0])
