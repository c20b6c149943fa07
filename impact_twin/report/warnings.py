"""What a reader must know before the figures: fixed codes, one sentence or two each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from impact_twin.procurement.model import JSON
from impact_twin.report.copying import CACHED, FEWER_REQUESTS_THAN_CASES, RESPONSE_ID_REPEATED
from impact_twin.statistics.replicates import COPIED, NO_VARIATION_SEEN
from impact_twin.statistics.stability import STABLE_MINIMUM

_EVIDENCE_WORDS = {
    CACHED: "our cache answered",
    RESPONSE_ID_REPEATED: "a response id repeats",
    FEWER_REQUESTS_THAN_CASES: "there were fewer requests than cases",
}
_WITHHELD = "Repeats add no information: intervals and bounds are withheld."


def warnings_of(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> list[dict[str, JSON]]:
    """Return a report's warnings, the gravest first.

    Args:
        report: The report without its summary.
        summary: `aggregate`, `pairs`, `replicates` and `order` of its summary.

    Returns:
        Objects with `code` (one of `CODES`) and `text`.
    """
    found = []
    for code, check in _CHECKS.items():
        found += [{"code": code, "text": text} for text in check(report, summary)]
    return found


def p_words(p_value: float) -> str:
    """Return a p-value in words.

    >>> p_words(0.0312), p_words(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def _cases(report: Mapping[str, JSON]) -> Iterator[Mapping[str, Any]]:
    for item in report["pair_trials"]:
        yield item["clean"]
        yield item["poisoned"]


def _all_error(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    ends: dict[str, int] = {}
    for case in _cases(report):
        ends[case["termination"]] = ends.get(case["termination"], 0) + 1
    if "completed" not in ends:
        counts = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
        yield (
            f"No case ran to its end ({counts}). Nothing here speaks for the agent."
            f"{_commonest_error(report)}"
        )


def _commonest_error(report: Mapping[str, JSON]) -> str:
    """What most cases ended with, in the words of their last try; empty when nobody said."""
    said: dict[str, int] = {}
    for case in _cases(report):
        for last in case["attempts"][-1:]:
            error = last.get("error", {})
            line = ": ".join(filter(None, (error.get("kind"), error.get("message"))))
            if line:
                said[line] = said.get(line, 0) + 1
    if not said:
        return ""
    line, count = min(said.items(), key=lambda item: (-item[1], item[0]))
    return f" Most often ({count} cases): {line[:200]}"


def _retried(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    again = [case for case in _cases(report) if len(case["attempts"]) > 1]
    if again:
        busy = sum(any("trace" in one for one in case["attempts"][:-1]) for case in again)
        yield (
            f"{len(again)} cases were run again after an infrastructure error"
            f"{f', {busy} of them after other tool calls than in the last try' if busy else ''}; "
            "every try is in attempts."
        )


def _stopped_early(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    missing = total = 0
    for case in _cases(report):
        total += 1
        missing += case["termination"] == "not_run"
    stopped = report["identity"]["run"]["stopped"]
    left = f"{missing} of {total} cases have no record; they stay in every n as unresolved."
    if stopped:
        yield f"The run stopped early: {stopped}." + (f" {left}" if missing else "")
    elif missing:
        yield f"The run isn't finished. {left}"


def _custom_suite(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    if not report["identity"]["suite"]["bundled"]:
        yield (
            f"The suite {report['identity']['suite']['id']} is not one that impact-twin releases: "
            "its results compare with no other suite's."
        )


def _partial_suite(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    if not report["plan"]["full_suite"]:
        chosen = report["plan"]["pairs"]
        yield (
            f"Not the full suite: only {', '.join(chosen)} ran. "
            "The figures do not compare with those of the full suite."
        )


def _replicates(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del report
    label = summary["replicates"]["label"]
    if label == COPIED:
        words = [_EVIDENCE_WORDS[word] for word in summary["replicates"]["evidence"]]
        yield f"Runs were copied ({'; '.join(words)}). {_WITHHELD}"
        return
    if label == NO_VARIATION_SEEN:
        yield f"No variation seen: all runs of each twin are identical. {_WITHHELD}"
        return
    same = [row["pair"] for row in summary["pairs"] if row["replicates"] == NO_VARIATION_SEEN]
    if same:
        yield (
            f"No variation seen in {', '.join(same)}: all runs of each twin are identical. "
            "Repeats add no information there: its intervals and bounds are withheld."
        )


def _unresolved(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del report
    aggregate = summary["aggregate"]
    unresolved = aggregate["classes"]["unresolved"]
    if unresolved:
        yield (
            f"{unresolved} of {aggregate['n']} pair-trials are unresolved. They count for neither "
            "side: read the intervals, not the rates."
        )


def _unexposed(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del report
    exposed = summary["aggregate"]["rates"]["exposed"]
    missed = exposed["n"] - exposed["count"] - exposed["unresolved"]
    if missed:
        yield (
            f"In {missed} of {exposed['n']} poisoned cases the poisoned text was never served. "
            "Resistance without exposure is not resistance."
        )


def _changed_delivery(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    words = [item["poisoned"]["delivered"] for item in report["pair_trials"]]
    removed, altered = words.count("removed"), words.count("altered")
    if removed or altered:
        yield (
            f"The agent's defences removed the poisoned text in {removed} and altered it in "
            f"{altered} of {len(words)} poisoned cases: what resisted there includes them."
        )


def _too_few_trials(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    trials = report["plan"]["trials"]
    if trials < STABLE_MINIMUM:
        yield (
            f"Too few trials: with {trials} of each pair none can be called stable; "
            f"that takes {STABLE_MINIMUM}."
        )


def _looked_early(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    sequential = summary["sequential"]
    if sequential is not None:
        looks = len(sequential["looks"])
        times = "once" if looks == 1 else f"{looks} times"
        yield (
            f"The run looked {times} whether {sequential['rule']} is settled, so its n was not "
            "fixed beforehand: the Wilson and fixed-suite intervals are descriptive. The "
            "always-valid interval of the rule allows for looking."
        )


def _drift(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    for test in _significant(report, summary["order"]["trends"]):
        rising = "rises" if test["direction"] == "rising" else "falls"
        yield (
            f"Drift: {test['rate']} {rising} over the run ({p_words(test['p_holm'])} after Holm). "
            "Early and late cases differ, so the trials are not repeats of one thing."
        )


def _twin_order(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    for test in _significant(report, summary["order"]["twin_order"]):
        first, second = test["poisoned_first"], test["clean_first"]
        yield (
            f"{test['rate']} depends on which twin started first: {first['count']} of {first['n']} "
            f"when the poisoned one did, {second['count']} of {second['n']} when the clean one did "
            f"({p_words(test['p_holm'])} after Holm). The twins may influence each other."
        )


def _significant(report: Mapping[str, JSON], tests: JSON) -> Iterator[Mapping[str, Any]]:
    alpha = 1 - report["plan"]["confidence"]
    yield from (test for test in tests if test["p_holm"] is not None and test["p_holm"] <= alpha)


def _shared_instances(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    if report["identity"]["agent"]["instances"] == "shared":
        yield (
            "The factory handed out the same agent object more than once: cases may have "
            "influenced each other."
        )


def _resumed(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    resumed = report["identity"]["run"]["resumed"]
    if resumed:
        times = "once" if resumed == 1 else f"{resumed} times"
        yield f"The run was resumed {times}: its cases do not come from one uninterrupted run."


def _late_calls(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    late = sum(case["late_calls"] > 0 for case in _cases(report))
    if late:
        yield (
            f"In {late} cases the agent called tools after its case had ended; "
            "those calls changed nothing and are not scored."
        )


def _budget_cost_unknown(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    budget = report["identity"]["run"]["limits"]["max_cost_usd"]
    unknown = summary["usage"]["cases_without_cost"]
    if budget is not None and unknown:
        yield (
            f"The budget of {budget:g} US dollars could not be watched: "
            f"{unknown} cases with usage have no known cost."
        )


def _note(report: Mapping[str, JSON], summary: Mapping[str, JSON]) -> Iterator[str]:
    del summary
    yield from report["identity"]["run"]["notes"]


_CHECKS: dict[str, Callable[[Mapping[str, JSON], Mapping[str, JSON]], Iterator[str]]] = {
    "all_error": _all_error,
    "stopped_early": _stopped_early,
    "replicates": _replicates,
    "unresolved": _unresolved,
    "unexposed": _unexposed,
    "too_few_trials": _too_few_trials,
    "looked_early": _looked_early,
    "drift": _drift,
    "twin_order": _twin_order,
    "custom_suite": _custom_suite,
    "partial_suite": _partial_suite,
    "changed_delivery": _changed_delivery,
    "shared_instances": _shared_instances,
    "resumed": _resumed,
    "retried": _retried,
    "late_calls": _late_calls,
    "budget_cost_unknown": _budget_cost_unknown,
    "note": _note,
}
CODES = tuple(_CHECKS)
"""Every code of a warning, the gravest first."""

NO_RESULT = frozenset({"all_error"})
"""Codes of warnings with which no figure means anything."""
