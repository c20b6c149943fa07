"""The summary of one report: the suite's figures and each pair's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.difference import (
    TwoGroups,
    miettinen_nurminen,
    stratified_difference,
)
from impact_twin.statistics.disagreement import code_counts, disagreement, disagreement_bounds
from impact_twin.statistics.intervals import Interval, check_confidence
from impact_twin.statistics.passk import RepeatedRate, attack_at_k, pass_hat_k
from impact_twin.statistics.rates import (
    RATE_NAMES,
    Rate,
    RateCounts,
    pair_rate,
    rate_counts,
    suite_rate,
)
from impact_twin.statistics.replicates import replicates, withholds
from impact_twin.statistics.stability import (
    STABLE,
    StabilityBound,
    stability_bound,
    stability_label,
)
from impact_twin.statistics.table import (
    OUTCOME_CLASSES,
    UNRESOLVED,
    IntColumn,
    ObservationTable,
    TwinColumns,
)

SAMPLING_UNIT = "fixed_suite_pair_trial"

ClassMatrix = npt.NDArray[np.int64]


@dataclass(frozen=True)
class UtilityEffect:
    """What the poison does to utility: utility_under_attack minus benign_utility.

    Attributes:
        difference: Mean over the pairs of (poisoned count - clean count) / n; None when nothing was
            planned. With unresolved cases read `bounds`.
        bounds: Smallest and largest difference over every way to resolve the unresolved.
        interval: Stratified Miettinen-Nurminen over the pairs, its ends from those two extremes;
            None when nothing was planned or the repeats add no information.
        confidence: Two-sided.
    """

    difference: float | None
    bounds: Interval | None
    interval: Interval | None
    confidence: float


@dataclass(frozen=True)
class PerTwin:
    """A count for the clean and for the poisoned twin."""

    clean: int
    poisoned: int


@dataclass(frozen=True)
class AggregateSummary:
    """Figures over all pair-trials: repeated executions of these pairs, not other tasks.

    Attributes:
        sampling_unit: Always `fixed_suite_pair_trial`.
        n: Planned pair-trials.
        equal_n: Whether all pairs have the same number of trials.
        classes: Outcome class -> count; every class is there.
        rates: Rate name -> rate, in the order of `RATE_NAMES`.
        attack_effect_on_utility: Poisoned minus clean utility.
        replicates: Replicates label of the suite.
    """

    sampling_unit: str
    n: int
    equal_n: bool
    classes: Mapping[str, int]
    rates: Mapping[str, Rate]
    attack_effect_on_utility: UtilityEffect
    replicates: str


@dataclass(frozen=True)
class PairSummary:
    """Figures of one pair.

    Attributes:
        pair: Its name.
        label: `stable`, `variable` or `undetermined`.
        n: Planned trials.
        classes: Outcome class -> count; every class is there.
        rates: Rate name -> rate; `fixed_suite` is None in them.
        disagreement: Unbiased probability that two runs end in different classes, resolved runs
            only; None with fewer than two.
        disagreement_bounds: The same over every way to resolve the unresolved; None with fewer than
            two planned trials.
        distinct_decisions: Different decisions of resolved cases, per twin (no decision isn't one).
        distinct_traces: Different traces of resolved cases, per twin.
        attack_at_k: At least one reached goal in k runs, for k of 1, 2, 3, 5, 10 up to n.
        pass_k: All of k runs with secure utility.
        stability: What a stable pair can't exclude; None unless `stable`, or when the repeats add
            no information.
        replicates: Replicates label of the pair.
    """

    pair: str
    label: str
    n: int
    classes: Mapping[str, int]
    rates: Mapping[str, Rate]
    disagreement: float | None
    disagreement_bounds: Interval | None
    distinct_decisions: PerTwin
    distinct_traces: PerTwin
    attack_at_k: tuple[RepeatedRate, ...]
    pass_k: tuple[RepeatedRate, ...]
    stability: StabilityBound | None
    replicates: str


@dataclass(frozen=True)
class Summary:
    """Everything that `summarise` derives."""

    aggregate: AggregateSummary
    pairs: tuple[PairSummary, ...]


def summarise(
    table: ObservationTable, confidence: float = 0.95, *, copied: bool = False
) -> Summary:
    """Derive the summary of a report from its observation table.

    Args:
        table: All planned pair-trials. The order of the rows doesn't matter.
        confidence: Two-sided for intervals, one-sided for the stability bounds; in (0, 1).
        copied: Evidence from outside the table that runs are copies (see `replicates`). It, or
            `no variation seen`, withholds intervals and stability bounds.

    Raises:
        ValueError: Impossible confidence.
    """
    check_confidence(confidence)
    labels = replicates(table, copied)
    counts = {name: rate_counts(table, name) for name in RATE_NAMES}
    classes = class_counts(table)
    aggregate = _aggregate(table, classes, counts, labels.suite, confidence)
    parts = _Parts(
        names=table.pairs,
        classes=classes,
        counts=counts,
        decisions=_distinct(table, "decision"),
        traces=_distinct(table, "trace"),
        replicates=labels.pairs,
        confidence=confidence,
    )
    return Summary(aggregate, tuple(_pair(parts, place) for place in range(len(table.pairs))))


def class_counts(table: ObservationTable) -> ClassMatrix:
    """Outcome classes of each pair, int64, shape (pairs, 9), columns as `OUTCOME_CLASSES`."""
    pairs, width = len(table.pairs), len(OUTCOME_CLASSES)
    flat = np.bincount(table.pair * width + table.outcome, minlength=pairs * width)
    return flat.reshape(pairs, width).astype(np.int64)


def utility_effect(
    clean: RateCounts, poisoned: RateCounts, confidence: float, *, withheld: bool = False
) -> UtilityEffect:
    """Utility under attack minus benign utility, over pairs with trials.

    Args:
        clean: Counts of `benign_utility`.
        poisoned: Counts of `utility_under_attack`.
        confidence: Two-sided, in (0, 1).
        withheld: Leave the interval out.
    """
    rows = [
        TwoGroups(int(p), int(n), int(c), int(n))
        for p, c, n in zip(poisoned.seen, clean.seen, clean.planned, strict=True)
        if n
    ]
    if not rows:
        return UtilityEffect(None, None, None, confidence)
    unknown = [
        (int(p), int(c))
        for p, c, n in zip(poisoned.unknown, clean.unknown, clean.planned, strict=True)
        if n
    ]
    lowest = [row._replace(k_b=row.k_b + c) for row, (_, c) in zip(rows, unknown, strict=True)]
    highest = [row._replace(k_a=row.k_a + p) for row, (p, _) in zip(rows, unknown, strict=True)]
    interval = Interval(
        miettinen_nurminen(lowest, confidence).lo, miettinen_nurminen(highest, confidence).hi
    )
    return UtilityEffect(
        difference=stratified_difference(rows),
        bounds=Interval(stratified_difference(lowest), stratified_difference(highest)),
        interval=None if withheld else interval,
        confidence=confidence,
    )


def _aggregate(
    table: ObservationTable,
    classes: ClassMatrix,
    counts: Mapping[str, RateCounts],
    label: str,
    confidence: float,
) -> AggregateSummary:
    withheld = withholds(label)
    return AggregateSummary(
        sampling_unit=SAMPLING_UNIT,
        n=len(table),
        equal_n=len(set(table.trials_per_pair.tolist())) <= 1,
        classes=_named(classes.sum(axis=0)),
        rates={
            name: suite_rate(
                c.seen.tolist(),
                c.unknown.tolist(),
                c.planned.tolist(),
                confidence,
                withheld=withheld,
            )
            for name, c in counts.items()
        },
        attack_effect_on_utility=utility_effect(
            counts["benign_utility"],
            counts["utility_under_attack"],
            confidence,
            withheld=withheld,
        ),
        replicates=label,
    )


@dataclass(frozen=True, eq=False)
class _Parts:
    """What every pair's summary is made from, indexed by the pair's place."""

    names: tuple[str, ...]
    classes: ClassMatrix
    counts: Mapping[str, RateCounts]
    decisions: list[PerTwin]
    traces: list[PerTwin]
    replicates: tuple[str, ...]
    confidence: float


def _pair(parts: _Parts, place: int) -> PairSummary:
    withheld = withholds(parts.replicates[place])
    tally = [int(count) for count in parts.classes[place]]
    resolved = [count for code, count in enumerate(tally) if code != UNRESOLVED]
    label, n = stability_label(tally), sum(tally)
    counts = {name: _one(c, place) for name, c in parts.counts.items()}
    bound = None
    if label == STABLE and not withheld:
        bound = stability_bound(n, parts.confidence, len(parts.names))
    return PairSummary(
        pair=parts.names[place],
        label=label,
        n=n,
        classes=_named(parts.classes[place]),
        rates={
            name: pair_rate(*numbers, parts.confidence, withheld=withheld)
            for name, numbers in counts.items()
        },
        disagreement=disagreement(resolved),
        disagreement_bounds=disagreement_bounds(resolved, tally[UNRESOLVED]),
        distinct_decisions=parts.decisions[place],
        distinct_traces=parts.traces[place],
        attack_at_k=attack_at_k(*counts["attack_success"], parts.confidence, withheld=withheld),
        pass_k=pass_hat_k(*counts["secure_utility"], parts.confidence, withheld=withheld),
        stability=bound,
        replicates=parts.replicates[place],
    )


def _one(counts: RateCounts, place: int) -> tuple[int, int, int]:
    return int(counts.seen[place]), int(counts.unknown[place]), int(counts.planned[place])


def _named(classes: IntColumn) -> dict[str, int]:
    return {name: int(count) for name, count in zip(OUTCOME_CLASSES, classes, strict=True)}


def _distinct(table: ObservationTable, column: str) -> list[PerTwin]:
    def per_pair(twin: TwinColumns) -> list[int]:
        codes: IntColumn = getattr(twin, column)
        return [len(c) for c in code_counts(table.pair, codes, len(table.pairs), twin.resolved)]

    return [
        PerTwin(c, p) for c, p in zip(per_pair(table.clean), per_pair(table.poisoned), strict=True)
    ]
