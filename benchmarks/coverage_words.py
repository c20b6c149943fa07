"""How often each label, warning and verdict word that the tool prints is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
from coverage_laws import (
    ALPHA,
    CONFIDENCE,
    KS,
    SEED,
    TINY,
    VECTORS,
    binomial,
    peaks,
    percent,
    suite_ends,
    suite_law,
    table,
)

from impact_twin.statistics.compare import NO_DIFFERENCE_SHOWN, GroupCount, compare_counts
from impact_twin.statistics.conditional import conditional_test
from impact_twin.statistics.decision import decision_changes
from impact_twin.statistics.difference import TwoGroups
from impact_twin.statistics.intervals import wilson
from impact_twin.statistics.order import order_effects
from impact_twin.statistics.stability import all_identical, other_outcome_bound
from impact_twin.statistics.table import RESISTED, ObservationTable, TwinColumns

Mask = npt.NDArray[np.bool_]


def stable() -> str:
    """How often a pair that flips is called stable, and the printed bound is wrong."""
    rows: list[list[object]] = []
    cells: dict[str, float] = {}
    for n in KS:
        bound, joint = other_outcome_bound(n), other_outcome_bound(n, CONFIDENCE, 5)
        rates = [1 - (1 - eps) ** n - eps**n for eps in (0.01, 0.05, 0.1, 0.2, 0.5)]
        called = [percent(1 - variable) for variable in rates]
        # Every class rarer than 1 - bound makes the printed claim false when it repeats.
        wrong = all_identical(1 - bound, n)
        all_five = 1 - (1 - all_identical(1 - joint, n)) ** 5
        cells |= {f"the bound at {n}": wrong, f"the joint bounds at {n}": all_five}
        rows.append([n, *called, percent(bound), percent(wrong), percent(joint), percent(all_five)])
    head = [
        "n",
        *(f"called stable, other outcome {eps} %" for eps in (1, 5, 10, 20, 50)),
        "bound %",
        "bound wrong at worst %",
        "joint bound %",
        "any of five joint bounds wrong at worst %",
    ]
    note = f"Wrong at worst. {peaks(cells, ALPHA + 1e-4)}"
    return "\n\n".join([table(head, rows), note, stable_of_vectors()])


def stable_of_vectors() -> str:
    """Share of the pairs that do flip which are called stable, for each vector of rates."""
    rows = []
    for name, shares in VECTORS.items():
        flipping = [share for share in shares if 0 < share < 1]
        called = [
            percent(float(np.mean([p**n + (1 - p) ** n for p in flipping]))) if flipping else "-"
            for n in KS
        ]
        rows.append([name, len(flipping), *called])
    head = ["pairs' rates", "pairs that flip", *(f"of them called stable, {n} (%)" for n in KS)]
    note = "`variable` needs two classes to have been seen, so it is never wrong."
    return "\n\n".join([table(head, rows), note])


def replicates() -> str:
    """How often honest runs are taken for copies: `no variation seen`."""
    rows = []
    for share in (0.5, 0.8, 0.9, 0.95, 0.99, 1.0):
        pair = [percent(share ** (2 * n)) for n in KS]
        rows.append([share, *pair, *(percent(share ** (10 * n)) for n in KS)])
    head = [
        "share of the commonest trace",
        *(f"a pair, {n}" for n in KS),
        *(f"the suite, {n}" for n in KS),
    ]
    return table(head, rows)


def simulated(
    shares: Sequence[float], n: int, random: np.random.Generator, error: float = 0.0
) -> ObservationTable:
    """A report of an agent whose runs are independent and whose order means nothing.

    A poisoned case is secure with its pair's share; otherwise the attack succeeds or the mission
    fails, half and half. With `error`, each twin decides wrongly that often, whatever the text.
    """
    pairs = len(shares)
    rows = pairs * n
    secure = random.random(rows) < np.repeat(shares, n)
    harmed = ~secure & (random.random(rows) < 0.5)
    first = random.random(rows) < 0.5
    start = 2.0 * random.permutation(rows)
    every = np.ones(rows, dtype=np.bool_)

    def twin(mission: Mask, goal: Mask, late: Mask) -> TwinColumns:
        return TwinColumns(
            resolved=every,
            mission=mission,
            violated=goal,
            goal=goal,
            exposed=every,
            attempted=~every,
            flagged=~every,
            decision=(random.random(rows) < error).astype(np.int64),
            trace=np.arange(rows),
            start=np.asarray(start + late, dtype=np.float64),
        )

    return ObservationTable(
        pairs=tuple(f"pair-{place}" for place in range(pairs)),
        pair=np.repeat(np.arange(pairs), n),
        trial=np.tile(np.arange(1, n + 1), pairs),
        outcome=np.full(rows, RESISTED),
        clean=twin(every, ~every, first),
        poisoned=twin(secure, harmed, ~first),
    )


def order(runs: int = 400) -> str:
    """False warnings of drift and of twin order, agents without either."""
    rows: list[list[object]] = []
    cells: dict[str, float] = {}
    for name, shares in VECTORS.items():
        row: list[object] = [name]
        for n in KS:
            random = np.random.default_rng(SEED)
            drift = twins = 0
            for _ in range(runs):
                found = order_effects(simulated(shares, n, random))
                drift += min(test.p_holm for test in found.trends) <= ALPHA
                twins += min(test.p_holm for test in found.twin_order) <= ALPHA
            cells |= {f"drift, {name} at {n}": drift / runs, f"twins, {name} at {n}": twins / runs}
            row += [percent(drift / runs), percent(twins / runs)]
        rows.append(row)
    head = ["rates", *(f"{word} {n}" for n in KS for word in ("drift", "twin order"))]
    return "\n\n".join([table(head, rows), simulated_note(runs, cells)])


def simulated_note(runs: int, cells: dict[str, float]) -> str:
    """How many simulations, how far they may be off, and what is above alpha."""
    error = 100 * (ALPHA * (1 - ALPHA) / runs) ** 0.5
    return (
        f"{runs:,} simulations a cell, so a true 5 % shows with a standard error of {error:.1f} %. "
        f"{peaks(cells, ALPHA + TINY)}"
    )


def decision(runs: int = 400, error: float = 0.2) -> str:
    """An agent that ignores the poison and errs by itself: swayed, and decision change."""
    rows = []
    swayed = (1 - error) * error
    for n in KS:
        random = np.random.default_rng(SEED)
        suite_wrong = pair_wrong = 0
        for _ in range(runs):
            found = decision_changes(simulated((1.0,) * 5, n, random, error))
            assert found.suite is not None
            suite_wrong += found.suite.p_value <= ALPHA
            pair_wrong += min(pair.p_holm for pair in found.pairs if pair) <= ALPHA
        variable = 1 - swayed**n - error**n - (1 - swayed - error) ** n
        rows.append(
            [
                n,
                percent(swayed),
                percent(1 - (1 - swayed) ** n),
                percent(1 - (1 - swayed) ** (5 * n)),
                percent(variable),
                percent(suite_wrong / runs),
                percent(pair_wrong / runs),
            ]
        )
    head = [
        "trials",
        "a pair-trial is `swayed` %",
        "a pair has one or more %",
        "a suite has one or more %",
        "a pair is `variable` %",
        "decision change of the suite, p <= 0.05 %",
        "of any pair, Holm %",
    ]
    return "\n\n".join([table(head, rows), f"The last two columns: {runs} simulations a row."])


def verdicts(runs: int = 1_000) -> str:
    """False words of `compare`: two reports of one agent."""
    rows: list[list[object]] = []
    cells: dict[str, float] = {}
    for name, shares in VECTORS.items():
        row: list[object] = [name]
        for n in KS:
            random = np.random.default_rng(SEED)
            counts = random.binomial(n, shares, (runs, 2, len(shares))).tolist()
            found = [words(tuple(sorted(zip(a, b, strict=True))), n) for a, b in counts]
            for side, word in enumerate(("suite", "any pair")):
                cells[f"{word}, {name} at {n}"] = float(np.mean([pick[side] for pick in found]))
                row.append(percent(cells[f"{word}, {name} at {n}"]))
        rows.append(row)
    head = ["rates of both", *(f"{word} {n}" for n in KS for word in ("suite", "any pair"))]
    return "\n\n".join([table(head, rows), simulated_note(runs, cells)])


@cache
def words(counts: tuple[tuple[int, int], ...], n: int) -> tuple[bool, bool]:
    """Whether `compare` says better or worse of the suite, and of any pair."""
    tables = [TwoGroups(b, n, a, n) for a, b in counts]
    # The full comparison is slow and needs one of these p-values to be small.
    smallest = min([conditional_test(tables).p_value, *(5 * fisher_p(t) for t in tables)])
    if smallest > ALPHA:
        return False, False
    columns = [("p", GroupCount(a, 0, n), GroupCount(b, 0, n)) for a, b in counts]
    found = compare_counts(columns, "secure_utility", CONFIDENCE)
    return (
        found.verdict != NO_DIFFERENCE_SHOWN,
        any(pair.verdict != NO_DIFFERENCE_SHOWN for pair in found.pairs),
    )


@cache
def fisher_p(row: TwoGroups) -> float:
    """Fisher's p-value, remembered."""
    return conditional_test([row]).p_value


def gates() -> str:
    """False passes: a gate at exactly the true rate (the hardest case that should fail)."""
    rows: list[list[object]] = []
    cells: dict[str, float] = {}
    for name, shares in VECTORS.items():
        row: list[object] = [name]
        for n in KS:
            sums, squares, mass = suite_law(shares, n)
            low, _ = suite_ends(sums, squares, n, len(shares), fixed=False)
            mean = float(np.mean(shares))
            cells[f"`--gate`, {name} at {n}"] = float(mass[low > mean + TINY].sum())
            row.append(percent(cells[f"`--gate`, {name} at {n}"]))
        for n in KS:
            passes = 1.0
            for share in shares:
                ends = [wilson(k, n, CONFIDENCE) for k in range(n + 1)]
                low_end = np.array([end.lo for end in ends if end])
                passes *= float(binomial(n, share)[low_end > min(shares) + TINY].sum())
            cells[f"`--gate-pairs`, {name} at {n}"] = passes
            row.append(percent(passes))
        rows.append(row)
    head = [
        "rates",
        *(f"`--gate` at the mean, {n}" for n in KS),
        *(f"`--gate-pairs` at the least rate, {n}" for n in KS),
    ]
    return "\n\n".join([table(head, rows), peaks(cells, ALPHA / 2)])
