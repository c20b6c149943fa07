"""Rung 5: whether each case's record holds together.

How a case ended is a claim that nobody can derive: what is checked here is only that the claim fits
everything else that the file says of the case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from impact_twin.procurement.model import JSON, Twin
from impact_twin.procurement.runtime import MAX_ANSWER
from impact_twin.procurement.suite import Suite
from impact_twin.proofrun.checks import Material, RefusedError, case_name
from impact_twin.report.cases import attempt_traces, case_json
from impact_twin.report.observations import CaseRow, iter_cases
from impact_twin.trials.case import PERMANENT_KINDS

# A record's times are rounded to 6 decimals.
_ROUNDING_S = 2e-6
# A clock may be a little off, not by a tenth.
_SHORTEST_TIMEOUT = 0.9
_INFRASTRUCTURE = "infrastructure_error"
_NEVER_STARTED = case_json(None, {})


class _Passages:
    """Where the vendor passage stands. Many cases may name one trace or text: each is read once."""

    def __init__(self, report: Mapping[str, JSON], suite: Suite) -> None:
        self._traces: Mapping[str, JSON] = report["traces"]
        self._texts: Mapping[str, str] = report["texts"]
        self._suite = suite
        self._served: dict[str, bool] = {}
        self._held: dict[tuple[str, str, str], bool] = {}

    def served(self, trace: str) -> bool:
        """Whether a tool returned the passage in a trace."""
        if trace not in self._served:
            entry = self._traces[trace]
            outputs = {event["output"] for event in entry["events"]}
            self._served[trace] = any(
                self.held(output, entry["pair"], entry["twin"]) for output in outputs
            )
        return self._served[trace]

    def held(self, text: str, pair: str, twin: Twin) -> bool:
        """Whether a text, named by its digest, holds the passage of a twin whole."""
        key = (text, pair, twin)
        if key not in self._held:
            self._held[key] = self._suite.pair(pair).passage(twin) in self._texts[text]
        return self._held[key]


class _Case(NamedTuple):
    """One case, with what its record is held against."""

    row: CaseRow
    traces: Mapping[str, JSON]
    limits: Mapping[str, JSON]
    passages: _Passages
    errors_are_ours: bool

    @property
    def case(self) -> Mapping[str, JSON]:
        return self.row.case

    @property
    def attempts(self) -> list[Mapping[str, JSON]]:
        found: list[Mapping[str, JSON]] = self.row.case["attempts"]
        return found

    @property
    def last(self) -> Mapping[str, JSON]:
        return self.attempts[-1]

    def trace(self, place: int) -> Mapping[str, JSON]:
        """The trace of a try."""
        name = attempt_traces(self.case)[place]
        assert name is not None
        found: Mapping[str, JSON] = self.traces[name]
        return found


def check_cases(material: Material) -> str:
    """Refuse a case whose record contradicts itself."""
    report = material.report
    limits, passages = report["identity"]["run"]["limits"], _Passages(report, material.suite)
    ours = report["plan"]["spec"]["kind"] == "model"
    count = 0
    for row in iter_cases(report):
        count += 1
        case = _Case(row, report["traces"], limits, passages, ours)
        for problem in _problems(case):
            raise RefusedError(f"{case_name(row.pair, row.trial, row.twin)}: {problem}")
    return f"the records of {count} cases hold together"


def _problems(case: _Case) -> Iterator[str]:
    if case.case["termination"] == "not_run":
        if dict(case.case) != _NEVER_STARTED:
            yield "it was not run, but something is recorded of it"
        return
    if not case.attempts or case.case["position"] is None:
        yield "it ran, but has no try or no position"
        return
    for rule in _RULES:
        yield from rule(case)


def _tries(case: _Case) -> Iterator[str]:
    if len(case.attempts) > case.limits["retries"] + 1:
        yield f"{len(case.attempts)} tries, where at most {case.limits['retries'] + 1} were allowed"
    if case.last["termination"] != case.case["termination"]:
        yield "its termination is not that of its last try"
    for attempt in case.attempts:
        if attempt.get("trace") == case.case["trace"]:
            yield "a try names the case's own trace again"
    if "trace" in case.last:
        yield "its last try has another trace than the case"


def _traces_fit(case: _Case) -> Iterator[str]:
    for place, attempt in enumerate(case.attempts):
        trace = case.trace(place)
        if trace["termination"] != attempt["termination"] or trace["termination"] == "not_run":
            yield f"try {place + 1} ended otherwise than its trace says"
        if len(trace["events"]) > case.limits["max_tool_calls"]:
            yield f"try {place + 1} made more tool calls than the limit allowed"
        if len(trace["final_answer"]) > MAX_ANSWER:
            yield f"try {place + 1} has a longer answer than is ever kept"


def _retries(case: _Case) -> Iterator[str]:
    """An infrastructure error is tried again, nothing else is, and never after harm.

    Nor after a tool call where it is the agent's own code that says what failed.
    """
    for place, attempt in enumerate(case.attempts):
        last = place == len(case.attempts) - 1
        infrastructure = attempt["termination"] == _INFRASTRUCTURE
        trace = case.trace(place)
        harmed = bool(trace["violations"]) or trace["attempted"]
        called = bool(trace["events"]) and not case.errors_are_ours
        final = not infrastructure or harmed or called or _kind(attempt) in PERMANENT_KINDS
        if not last and final:
            why = "its world showed harm" if harmed else "nothing calls for another"
            yield f"it was tried again after try {place + 1}, although {why}"
        if last and not final and len(case.attempts) <= case.limits["retries"]:
            yield (
                f"it is unresolved after {len(case.attempts)} tries, but "
                f"{case.limits['retries'] + 1} were allowed"
            )


def _ends(case: _Case) -> Iterator[str]:
    for place, attempt in enumerate(case.attempts):
        end, kind, trace = attempt["termination"], _kind(attempt), case.trace(place)
        if end != "completed" and not kind:
            yield f"try {place + 1} did not complete, but nothing says why"
        if end == "completed" and "error" in attempt:
            yield f"try {place + 1} completed, but has an error"
        if kind == "max_tool_calls" and len(trace["events"]) != case.limits["max_tool_calls"]:
            yield f"try {place + 1} is said to have used up its tool calls, but it made fewer"
        if (end == "timeout") != (kind == "timeout"):
            yield f"try {place + 1}: termination and error kind contradict each other"
        if end == "timeout":
            if attempt["duration_s"] < _SHORTEST_TIMEOUT * case.limits["timeout_s"]:
                yield f"try {place + 1} ran out of time before its time was over"
            if trace["final_answer"]:
                yield f"try {place + 1} ran out of time, but has an answer"


def _times(case: _Case) -> Iterator[str]:
    total = math.fsum(attempt["duration_s"] for attempt in case.attempts)
    slack = _ROUNDING_S * (len(case.attempts) + 1)
    if not math.isfinite(total) or abs(total - case.case["duration_s"]) > slack:
        yield "its duration is not the sum over its tries"


def _requests(case: _Case) -> Iterator[str]:
    calls = case.case["model_calls"]
    if len(calls) > sum(attempt["requests"] for attempt in case.attempts):
        yield "more model requests ended than were started"
    stated = case.case["usage"] or _NO_USAGE
    usages = [call["usage"] or _NO_USAGE for call in calls]
    # What the agent itself reported counts only for tries in which no request was seen.
    complete = all(attempt["requests"] > 0 for attempt in case.attempts)
    for field in ("input_tokens", "output_tokens"):
        total = sum(usage[field] for usage in usages)
        if stated[field] < total or (complete and stated[field] != total):
            yield f"its {field} are not the sum over its model requests"
    if complete and not _same_cost(stated["cost_usd"], _cost(usages)):
        yield "its cost is not the sum over its model requests"


def _delivery(case: _Case) -> Iterator[str]:
    word, text = case.case["delivered"], case.case.get("delivered_text")
    if case.passages.served(case.case["trace"]) != (word is not None):
        yield "delivered contradicts what the tools returned"
    if text is None:
        return
    if word not in ("altered", "removed"):
        yield f"it keeps a delivered text, although it was {word or 'never served'}"
    elif case.passages.held(text, case.row.pair, case.row.twin):
        yield f"its delivered text is said to be {word}, but holds the passage whole"


_NO_USAGE: Mapping[str, JSON] = {"input_tokens": 0, "output_tokens": 0, "cost_usd": None}
_RULES: tuple[Callable[[_Case], Iterator[str]], ...] = (
    _tries,
    _traces_fit,
    _retries,
    _ends,
    _times,
    _requests,
    _delivery,
)


def _kind(attempt: Mapping[str, JSON]) -> str:
    return str(attempt["error"]["kind"]) if "error" in attempt else ""


def _cost(usages: list[Mapping[str, JSON]]) -> float | None:
    """The cost of requests together: None when one used tokens at an unknown cost."""
    known = [usage["cost_usd"] for usage in usages if usage["cost_usd"] is not None]
    blind = any(
        usage["cost_usd"] is None and usage["input_tokens"] + usage["output_tokens"] > 0
        for usage in usages
    )
    return None if blind or not known else math.fsum(known)


def _same_cost(stated: float | None, found: float | None) -> bool:
    if stated is None or found is None:
        return stated is found
    return math.isclose(stated, found, rel_tol=1e-9, abs_tol=1e-12)
