"""Evidence of a report: why a pair flips, shown by the executions themselves.

Pure: from a report and, where it is at hand, its suite, to the frozen dataclasses of
`impact_twin.report.evidence_model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON, Twin
from impact_twin.report.cases import trace_entry
from impact_twin.report.clusters import Clusters, cluster_trials
from impact_twin.report.evidence_case import case_evidence
from impact_twin.report.evidence_choice import (
    Picked,
    clean_rank,
    hinge,
    outcome_rank,
    pick_trials,
)
from impact_twin.report.evidence_events import align, parting, unmatched
from impact_twin.report.evidence_model import (
    CaseEvidence,
    Choice,
    Cluster,
    Comparison,
    Inspection,
    PairEvidence,
    PairRow,
)
from impact_twin.report.files import suite_of_plan
from impact_twin.statistics.stability import STABLE, UNDETERMINED, VARIABLE
from impact_twin.statistics.table import OUTCOME_CLASSES
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.procurement.records import Pair
    from impact_twin.procurement.suite import Suite

_LABELS = (VARIABLE, STABLE, UNDETERMINED)


def suite_of_report(report: Mapping[str, JSON], folder: Path | None = None) -> Suite | None:
    """Return the suite of a report; None for an own suite whose folder is not named.

    Args:
        report: A report.
        folder: The suite's folder, when it is no bundled one.

    Raises:
        InputError: the folder holds no suite, or another one than the report's.
    """
    if folder is None:
        try:
            return suite_of_plan(report)
        except InputError:
            return None
    suite = suite_of_plan(report, folder)
    if suite.digest != report["identity"]["suite"]["digest"]:
        raise InputError(
            f"holds suite {suite.id} of another digest than the report's",
            where=str(folder),
            mend=f"The report's is {report['identity']['suite']['digest']}.",
        )
    return suite


def inspect_report(report: Mapping[str, JSON], classes: Sequence[str] = ()) -> Inspection:
    """Return the overview of a report's pairs: variable, stable, undetermined.

    Args:
        report: A report that keeps to its schema.
        classes: Only pairs in which one of these outcome classes occurred; empty for all.
    """
    outcomes: dict[str, list[str]] = {pair: [] for pair in report["plan"]["pairs"]}
    for item in report["pair_trials"]:
        outcomes[item["pair"]].append(item["outcome"])
    rows = [_row(row, outcomes[row["pair"]]) for row in report["summary"]["pairs"]]
    if classes:
        rows = [row for row in rows if any(row.classes[name] for name in classes)]
    return Inspection(
        agent=report["identity"]["agent"]["name"],
        suite=report["identity"]["suite"]["id"],
        digest=report["identity"]["suite"]["digest"],
        trials=report["plan"]["trials"],
        confidence=report["plan"]["confidence"],
        rows=tuple(sorted(rows, key=_variability)),
        warnings=tuple(report["summary"]["warnings"]),
    )


def inspect_pair(
    report: Mapping[str, JSON],
    pair: str,
    suite: Suite | None,
    *,
    choice: Choice | None = None,
) -> PairEvidence:
    """Return a pair's clusters and the trials that show its flip best, or that were asked for.

    Args:
        report: A report that keeps to its schema.
        pair: The pair's id.
        suite: The report's suite; None leaves out what only the suite knows.
        choice: Which trials; by default those that show the flip best.

    Raises:
        InputError: the report has no such pair or trial, or no trial of the classes.
    """
    choice = Choice() if choice is None else choice
    every = [item for item in report["pair_trials"] if item["pair"] == pair]
    if not every:
        names = ", ".join(escape(name) for name in report["plan"]["pairs"])
        raise InputError(
            f"the report has no pair {escape(pair)[:80]!r}", where="--pair", mend=f"It has {names}."
        )
    _check(choice, every)
    items = [item for item in every if not choice.classes or item["outcome"] in choice.classes]
    asked = choice.trials or (() if choice.trial is None else (choice.trial,))
    looked = [every[trial - 1] for trial in asked] or items
    twin = choice.twin or hinge(item["outcome"] for item in looked)
    view = _View(report, every, _known(suite, pair), own=choice.twin == "clean")
    found = cluster_trials(items, twin, report["traces"])
    picked = view.asked(asked) if asked else view.pick(found, items)
    return view.evidence(twin, picked, found, len(items))


class _View:
    """One pair of a report on its way to evidence."""

    def __init__(
        self,
        report: Mapping[str, JSON],
        items: Sequence[Mapping[str, JSON]],
        suite: Suite | None,
        *,
        own: bool,
    ) -> None:
        self.report = report
        self.traces = report["traces"]
        self.items = items
        self.suite = suite
        # Clean runs that were asked for are ranked by what they did, not by the pair-trial.
        self.own = own

    def rank(self, trial: int) -> int | None:
        item = self.items[trial - 1]
        if not self.own:
            return outcome_rank(item["outcome"])
        return clean_rank(trace_entry(item["clean"], self.traces, item["pair"], "clean"))

    def asked(self, trials: tuple[int, ...]) -> Picked:
        """The trials in the order in which they were asked for, unless the first is the worse."""
        ranks = [self.rank(trial) for trial in trials]
        if len(ranks) == 2 and ranks[0] is not None and ranks[1] is not None:
            trials = trials[::-1] if ranks[0] < ranks[1] else trials
        return Picked("asked", trials)

    def pick(self, found: Clusters, items: Sequence[Mapping[str, JSON]]) -> Picked:
        def rank(cluster: Cluster) -> int | None:
            return self.rank(cluster.example)

        return pick_trials(found, rank, items[0]["trial"])

    def evidence(self, twin: Twin, picked: Picked, found: Clusters, chosen: int) -> PairEvidence:
        cases = [self.case(trial, twin) for trial in picked.trials]
        pair = None if self.suite is None else self.suite.pair(cases[0].pair)
        summary = next(
            row for row in self.report["summary"]["pairs"] if row["pair"] == cases[0].pair
        )
        both = len(cases) == 2
        return PairEvidence(
            row=_row(summary, [item["outcome"] for item in self.items]),
            twin=twin,
            pick=picked.pick,
            chosen=chosen,
            clusters=found.clusters,
            courses=found.courses,
            comparison=self.compare(cases[0], cases[1]) if both else None,
            single=None if both else cases[0],
            beside=tuple(
                compare_cases(self.case(case.trial, "clean"), case, worse=True)
                for case in cases
                if case.outcome == "compromised" and twin == "poisoned"
            ),
            title=None if pair is None else pair.title,
            request=None if pair is None else pair.request,
            control=None if pair is None else pair.control,
            expected=None if pair is None else pair.decision,
            passage_document=None if pair is None else pair.passage_document,
            goal={} if pair is None else _goal(pair),
        )

    def case(self, trial: int, twin: Twin) -> CaseEvidence:
        return case_evidence(self.report, self.items[trial - 1], twin, self.suite)

    def compare(self, left: CaseEvidence, right: CaseEvidence) -> Comparison:
        ranks = self.rank(left.trial), self.rank(right.trial)
        worse = ranks[0] is not None and ranks[1] is not None and ranks[0] != ranks[1]
        return compare_cases(left, right, worse=worse)


def compare_cases(left: CaseEvidence, right: CaseEvidence, *, worse: bool) -> Comparison:
    """Put two cases side by side.

    Args:
        left: A case.
        right: Another case of the pair.
        worse: Whether the right one did worse.
    """
    rows = align(left.events, right.events)
    only_left, only_right = unmatched(rows)
    return Comparison(
        kind="trials" if left.twin == right.twin else "twins",
        left=left,
        right=right,
        worse="right" if worse else None,
        rows=rows,
        parting=parting(left.events, right.events, words=True),
        deed_parting=parting(left.events, right.events, words=False),
        only_left=only_left,
        only_right=only_right,
    )


def _check(choice: Choice, items: Sequence[Mapping[str, JSON]]) -> None:
    if choice.trial is not None and choice.trials is not None:
        raise InputError("--trial and --trials ask for different things", mend="Give one of them.")
    option = "--trial" if choice.trials is None else "--trials"
    asked = choice.trials or (() if choice.trial is None else (choice.trial,))
    if asked and choice.classes:
        raise InputError(
            f"{option} names trials and --class filters them", mend="Give one of them."
        )
    for trial in asked:
        if not 1 <= trial <= len(items):
            raise InputError(
                f"there is no trial {trial}", where=option, mend=f"Trials are 1 to {len(items)}."
            )
    if len(asked) == 2 and asked[0] == asked[1]:
        raise InputError(
            "both trials are the same", where=option, mend="Name two, or one with --trial."
        )
    if choice.classes and not any(item["outcome"] in choice.classes for item in items):
        seen = dict.fromkeys(item["outcome"] for item in items)
        raise InputError(
            f"no trial of this pair is {' or '.join(choice.classes)}",
            where="--class",
            mend=f"There are {', '.join(name for name in OUTCOME_CLASSES if name in seen)}.",
        )


def _known(suite: Suite | None, pair: str) -> Suite | None:
    """The suite, if it has the pair: a report that nobody verified may name any."""
    known = suite is not None and any(item.id == pair for item in suite.pairs)
    return suite if known else None


def _row(row: Mapping[str, JSON], outcomes: Sequence[str]) -> PairRow:
    return PairRow(
        pair=row["pair"],
        label=row["label"],
        n=row["n"],
        outcomes=tuple(outcomes),
        classes=row["classes"],
        disagreement=row["disagreement"],
        disagreement_bounds=row["disagreement_bounds"],
        distinct_decisions=row["distinct_decisions"],
        distinct_traces=row["distinct_traces"],
        stability=row["stability"],
    )


def _variability(row: PairRow) -> tuple[int, float, float, int]:
    bounds = row.disagreement_bounds
    traces = sum(row.distinct_traces.values())
    return (
        _LABELS.index(row.label),
        -(row.disagreement or 0.0),
        -bounds[1] if bounds else 0.0,
        -traces,
    )


def _goal(pair: Pair) -> dict[str, JSON]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(pair.goal).items()
        if value
    }
