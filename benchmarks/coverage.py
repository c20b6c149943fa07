"""How often each interval covers, and how often each word is wrong: the tables of docs/statistics.md.

Run: python benchmarks/coverage.py [--only NAME ...] [--write docs/statistics.md]

Everything is exact unless its table says how many seeded simulations it took.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import comb
from pathlib import Path

import numpy as np
import numpy.typing as npt

from impact_twin.statistics.bootstrap import cluster_bootstrap
from impact_twin.statistics.compare import NO_DIFFERENCE_SHOWN, GroupCount, compare_counts
from impact_twin.statistics.conditional import conditional_test
from impact_twin.statistics.decision import decision_changes
from impact_twin.statistics.difference import TwoGroups, constrained_estimate, newcombe
from impact_twin.statistics.fixed_suite import fixed_suite
from impact_twin.statistics.intervals import (
    Interval,
    two_sided_z,
    wilson,
    wilson_with_unresolved,
)
from impact_twin.statistics.order import order_effects
from impact_twin.statistics.passk import all_of_k_image
from impact_twin.statistics.sequential import always_valid
from impact_twin.statistics.stability import all_identical, other_outcome_bound
from impact_twin.statistics.table import RESISTED, ObservationTable, TwinColumns

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CONFIDENCE = 0.95
ALPHA = 1 - CONFIDENCE
KS = (5, 10, 20, 50)
SEED = 20_250_601
TINY = 1e-12
DIP = 0.93

VECTORS: dict[str, tuple[float, ...]] = {
    "A mixed": (0.05, 0.5, 0.95, 1.0, 0.2),
    "B all 0.5": (0.5,) * 5,
    "C all 0.9": (0.9,) * 5,
    "D all or nothing": (0.0, 0.0, 1.0, 1.0, 1.0),
    "E strong": (0.8, 0.9, 0.95, 1.0, 1.0),
    "F spread": (0.1, 0.3, 0.5, 0.7, 0.9),
    "G one flipper": (0.0, 0.0, 0.0, 0.0, 0.5),
    "H one rare": (1.0, 1.0, 1.0, 1.0, 0.9),
    "I all rare": (0.02,) * 5,
    "J nearly perfect": (0.98, 0.98, 0.98, 0.98, 0.6),
}


# --- laws -----------------------------------------------------------------------------------------


@cache
def binomial(n: int, p: float) -> Floats:
    """Probabilities of 0..n events."""
    return np.array([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


@cache
def suite_law(shares: tuple[float, ...], n: int) -> tuple[Ints, Ints, Floats]:
    """Law of (sum of counts, sum of squared counts) over pairs with n trials each, by convolution.

    Both suite intervals depend on the counts through these two sums only.
    """
    law = np.ones((1, 1))
    for share in shares:
        weights = binomial(n, share)
        grown = np.zeros((law.shape[0] + n, law.shape[1] + n * n))
        for k in np.flatnonzero(weights):
            grown[k : k + law.shape[0], k * k : k * k + law.shape[1]] += weights[k] * law
        law = grown
    sums, squares = np.nonzero(law)
    return sums, squares, law[sums, squares]


def suite_ends(sums: Ints, squares: Ints, n: int, pairs: int, fixed: bool) -> tuple[Floats, Floats]:
    """Ends of the pooled or the fixed-suite interval, as arrays (a test holds them to the tool's)."""
    total = float(pairs * n)
    share = sums / total
    size = np.full(len(sums), total)
    if fixed:
        shrunk = (sums + pairs / 2) / (n + 1)
        within = (shrunk - (squares + sums + pairs / 4) / (n + 1) ** 2) / pairs
        inner = (sums > 0) & (sums < total)
        deff = np.ones(len(sums))
        np.divide(within, share * (1 - share), out=deff, where=inner)
        size = total / np.minimum(deff, 1.0)
    square = two_sided_z(CONFIDENCE) ** 2
    centre = share * size + square / 2
    spread = np.sqrt(square * (share * (1 - share) * size + square / 4))
    low = np.where(sums == 0, 0.0, (centre - spread) / (size + square))
    high = np.where(sums == total, 1.0, (centre + spread) / (size + square))
    return low, high


# --- tables ---------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *([str(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def percent(value: float) -> str:
    """A probability in percent with one decimal, exact 0 and 1 without."""
    return f"{100 * value:.0f}" if value in (0.0, 1.0) else f"{100 * value:.1f}"


def dips(cells: dict[str, float], level: float = DIP) -> str:
    """A sentence that names every cell below the level, lowest first."""
    low = sorted((value, name) for name, value in cells.items() if value < level)
    if not low:
        return f"No cell is below {percent(level)} %."
    named = "; ".join(f"{name} ({100 * value:.2f} %)" for value, name in low)
    return f"Below {percent(level)} %: {named}."


def peaks(cells: dict[str, float], level: float) -> str:
    """A sentence that names every cell above the level, highest first."""
    high = sorted(((value, name) for name, value in cells.items() if value > level), reverse=True)
    if not high:
        return f"No cell is above {percent(level)} %."
    named = "; ".join(f"{name} ({100 * value:.2f} %)" for value, name in high)
    return f"Above {percent(level)} %: {named}."


def single() -> str:
    """Wilson's interval for one pair, over a fine grid of true rates."""
    grid = np.arange(1, 10_000) / 10_000
    rows = []
    for n in (*KS, 100, 250):
        ends = [wilson(k, n, CONFIDENCE) for k in range(n + 1)]
        ks = np.arange(n + 1)
        logs = np.array([float(np.log(float(comb(n, int(k))))) for k in ks])
        mass = np.exp(logs + ks * np.log(grid)[:, None] + (n - ks) * np.log1p(-grid)[:, None])
        low = np.array([end.lo for end in ends if end])
        high = np.array([end.hi for end in ends if end])
        covered = (mass * ((low <= grid[:, None]) & (grid[:, None] <= high))).sum(axis=1)
        above = (mass * (low > grid[:, None])).sum(axis=1)
        middle = (grid >= 0.05) & (grid <= 0.95)
        rows.append(
            [
                n,
                percent(covered.mean()),
                f"{percent(covered.min())} at {grid[covered.argmin()]:.4f}",
                percent(covered[middle].min()),
                percent((covered < DIP).mean()),
                f"{percent(above.max())} at {grid[above.argmax()]:.4f}",
            ]
        )
    head = [
        "n",
        "mean coverage %",
        "lowest % at rate",
        "lowest % within 0.05 to 0.95",
        "rates covered below 93 % (%)",
        "most often above the rate: lower end (%)",
    ]
    return table(head, rows)


def unresolved() -> str:
    """The interval with unresolved cases: coverage of both identification bounds together."""
    rows = []
    for n in KS:
        for seen, unknown in ((0.1, 0.2), (0.02, 0.1), (0.4, 0.1), (0.3, 0.02)):
            low = high = both = 0.0
            for k in range(n + 1):
                for u in range(n - k + 1):
                    rest = 1 - seen - unknown
                    chance = (
                        comb(n, k) * comb(n - k, u) * seen**k * unknown**u * rest ** (n - k - u)
                    )
                    found = wilson_with_unresolved(k, u, n, CONFIDENCE)
                    assert found is not None
                    at_low, at_high = found.contains(seen), found.contains(seen + unknown)
                    low += chance * at_low
                    high += chance * at_high
                    both += chance * (at_low and at_high)
            rows.append([n, seen, unknown, percent(low), percent(high), percent(both)])
    head = ["n", "rate seen", "rate unresolved", "lower bound %", "upper bound %", "both %"]
    return "\n\n".join([table(head, rows), unresolved_suite()])


def unresolved_suite(runs: int = 4_000, lost: float = 0.1) -> str:
    """Both suite intervals when a tenth of the cases is unresolved, event or not alike."""
    rows = []
    for name in ("A mixed", "C all 0.9", "F spread"):
        row: list[object] = [name]
        for n in KS:
            random = np.random.default_rng(SEED)
            covered = [0, 0]
            seen_mean = float(np.mean(VECTORS[name])) * (1 - lost)
            for _ in range(runs):
                known = random.binomial(n, 1 - lost, 5)
                seen = random.binomial(known, VECTORS[name]).tolist()
                unknown = (n - known).tolist()
                ends = (
                    wilson_with_unresolved(sum(seen), sum(unknown), 5 * n, CONFIDENCE),
                    fixed_suite(seen, unknown, [n] * 5, CONFIDENCE),
                )
                for place, found in enumerate(ends):
                    assert found is not None
                    both = found.contains(seen_mean) and found.contains(seen_mean + lost)
                    covered[place] += both
            row += [percent(count / runs) for count in covered]
        rows.append(row)
    head = ["pairs' rates", *(f"{kind} {n}" for n in KS for kind in ("pooled", "fixed"))]
    note = f"Both bounds of the suite, {100 * lost:.0f} % unresolved, {runs:,} simulations a cell."
    return "\n\n".join([table(head, rows), note])


def suite() -> str:
    """Pooled Wilson and fixed-suite interval for the suite's mean."""
    rows, low = [], {"pooled": {}, "fixed suite": {}}  # type: ignore[var-annotated]
    for name, shares in VECTORS.items():
        row: list[object] = [name, f"{np.mean(shares):.3f}"]
        for n in KS:
            for kind, cells in low.items():
                sums, squares, mass = suite_law(shares, n)
                ends = suite_ends(sums, squares, n, len(shares), kind == "fixed suite")
                mean = float(np.mean(shares))
                inside = (ends[0] <= mean + TINY) & (mean <= ends[1] + TINY)
                covered = min(float(mass[inside].sum()), 1.0)
                cells[f"{name} at {n}"] = covered
                row.append(percent(covered))
        rows.append(row)
    head = ["pairs' rates", "mean", *(f"{kind} {n}" for n in KS for kind in ("pooled", "fixed"))]
    notes = [f"{kind.capitalize()}: {dips(cells)}" for kind, cells in low.items()]
    return "\n\n".join([table(head, rows), *notes])


def difference(runs: int = 40_000) -> str:
    """Stratified Miettinen-Nurminen, for two reports or for the attack effect on utility."""
    z = two_sided_z(CONFIDENCE)
    rows, low = [], {}
    for name, shares in VECTORS.items():
        row: list[object] = [name]
        lowered = tuple(max(share - 0.3, 0.0) for share in shares)
        for other in (shares, lowered):
            for n in KS:
                delta = float(np.mean(shares) - np.mean(other))
                random = np.random.default_rng(SEED)
                a = random.binomial(n, shares, (runs, len(shares)))
                b = random.binomial(n, other, (runs, len(shares)))
                spread = variances(n, round(delta, 12))[a, b].sum(axis=1)
                distance = np.abs((a - b).sum(axis=1) / n - delta * len(shares))
                covered = float((distance <= z * np.sqrt(spread) + TINY).mean())
                low[f"{name}, {'same' if other is shares else 'lowered'}, at {n}"] = covered
                row.append(percent(covered))
        rows.append(row)
    head = ["rates of A", *(f"B the same, {n}" for n in KS), *(f"B lower by 0.3, {n}" for n in KS)]
    note = f"{runs:,} simulations a cell. {dips(low)}"
    return "\n\n".join([table(head, rows), note, one_pair_difference()])


def one_pair_difference() -> str:
    """Newcombe's interval for one pair, over every pair of counts."""
    rows, low = [], {}
    for a, b in ((0.5, 0.5), (0.9, 0.9), (0.98, 0.98), (0.9, 0.6), (0.98, 0.8), (0.7, 0.2)):
        row: list[object] = [a, b]
        for n in KS:
            covered = 0.0
            for k_a, mass_a in enumerate(binomial(n, a)):
                for k_b, mass_b in enumerate(binomial(n, b)):
                    covered += mass_a * mass_b * newcombe_ends(k_a, k_b, n).contains(a - b)
            low[f"{a} and {b} at {n}"] = covered
            row.append(percent(covered))
        rows.append(row)
    head = ["rate of A", "rate of B", *(f"Newcombe, {n}" for n in KS)]
    return "\n\n".join([table(head, rows), dips(low)])


@cache
def newcombe_ends(k_a: int, k_b: int, n: int) -> Interval:
    """Newcombe's interval, remembered."""
    return newcombe(TwoGroups(k_a, n, k_b, n), CONFIDENCE)


@cache
def variances(n: int, delta: float) -> Floats:
    """Constrained variance of one stratum at a difference, for all counts, shape (n+1, n+1)."""
    found = np.zeros((n + 1, n + 1))
    for a in range(n + 1):
        for b in range(n + 1):
            share_b = constrained_estimate(TwoGroups(a, n, b, n), delta)
            share_a = min(max(share_b + delta, 0.0), 1.0)
            spread = share_a * (1 - share_a) + share_b * (1 - share_b)
            found[a, b] = spread / n * 2 * n / (2 * n - 1)
    return found


def stable() -> str:
    """How often a pair that does flip is called stable, and how often the printed bound is wrong."""
    rows = []
    for n in KS:
        bound, joint = other_outcome_bound(n), other_outcome_bound(n, CONFIDENCE, 5)
        rates = [1 - (1 - eps) ** n - eps**n for eps in (0.01, 0.05, 0.1, 0.2, 0.5)]
        called = [percent(1 - variable) for variable in rates]
        # Every class rarer than 1 - bound makes the printed claim false when it repeats.
        wrong = all_identical(1 - bound, n)
        all_five = 1 - (1 - all_identical(1 - joint, n)) ** 5
        rows.append([n, *called, percent(bound), percent(wrong), percent(joint), percent(all_five)])
    head = [
        "n",
        *(f"called stable, other outcome {eps} %" for eps in (1, 5, 10, 20, 50)),
        "bound %",
        "bound wrong at worst %",
        "joint bound %",
        "any of five joint bounds wrong at worst %",
    ]
    return table(head, rows)


def repeated() -> str:
    """pass^k: coverage of the image of Wilson's interval, and the estimate's mean."""
    rows = []
    for n in KS:
        for share in (0.5, 0.9, 0.98):
            cells: list[object] = [n, share]
            for k in (1, 3, 5):
                ends = [wilson(c, n, CONFIDENCE) for c in range(n + 1)]
                images = [all_of_k_image(end, k) for end in ends if end]
                mass = binomial(n, share)
                covered = sum(m for m, i in zip(mass, images, strict=True) if i.contains(share**k))
                cells += [percent(share**k), percent(float(covered))]
            rows.append(cells)
    head = ["n", "rate", *(cell for k in (1, 3, 5) for cell in (f"pass^{k} %", "covered %"))]
    return table(head, rows)


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

    def twin(
        mission: npt.NDArray[np.bool_], goal: npt.NDArray[np.bool_], late: object
    ) -> TwinColumns:
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
            start=start + np.asarray(late, dtype=np.float64),
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
    rows = []
    for name, shares in VECTORS.items():
        row: list[object] = [name]
        for n in KS:
            random = np.random.default_rng(SEED)
            drift = twins = 0
            for _ in range(runs):
                found = order_effects(simulated(shares, n, random))
                drift += min(test.p_holm for test in found.trends) <= ALPHA
                twins += min(test.p_holm for test in found.twin_order) <= ALPHA
            row += [percent(drift / runs), percent(twins / runs)]
        rows.append(row)
    head = ["rates", *(f"{word} {n}" for n in KS for word in ("drift", "twin order"))]
    return "\n\n".join([table(head, rows), f"{runs} simulations a cell; at most 5 % promised."])


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
    rows = []
    for name, shares in VECTORS.items():
        row: list[object] = [name]
        for n in KS:
            random = np.random.default_rng(SEED)
            counts = random.binomial(n, shares, (runs, 2, len(shares))).tolist()
            found = [words(tuple(sorted(zip(a, b, strict=True))), n) for a, b in counts]
            row += [percent(float(np.mean([pick[side] for pick in found]))) for side in (0, 1)]
        rows.append(row)
    head = ["rates of both", *(f"{word} {n}" for n in KS for word in ("suite", "any pair"))]
    note = f"{runs:,} simulations a cell; at most 5 % promised, for one rate."
    return "\n\n".join([table(head, rows), note])


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
    rows, cells = [], {}
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


def sequential(trials: int = 50) -> str:
    """Looking after every trial: ever missing the suite's mean, and a false `holds`."""
    rows = []
    pairs = 5
    intervals = [
        [(always_valid(k, 0, pairs * t), wilson(k, pairs * t)) for k in range(pairs * t + 1)]
        for t in range(1, trials + 1)
    ]
    for name, shares in VECTORS.items():
        mean = float(np.mean(shares))
        step = np.ones(1)
        for share in shares:
            step = np.convolve(step, [1 - share, share])
        cells: list[object] = [name]
        for which in (0, 1):
            for wrong in (
                lambda i, mean=mean: not i.lo - TINY <= mean <= i.hi + TINY,
                lambda i, mean=mean: i.lo > mean + TINY,
            ):
                alive = np.ones(1)
                for line in intervals:
                    alive = np.convolve(alive, step)
                    alive[[wrong(ends[which]) for ends in line]] = 0.0
                cells.append(percent(max(1 - float(alive.sum()), 0.0)))
        rows.append(cells)
    head = [
        "rates",
        "always-valid: ever misses %",
        "false `holds` %",
        "Wilson: ever misses %",
        "false `holds` with Wilson %",
    ]
    return "\n\n".join([table(head, rows), f"A look after each of {trials} trials."])


def bootstrap() -> str:
    """The cluster bootstrap over pairs of one repeat, beside Wilson over pairs."""
    rows = []
    for n in (5, 20, 35, 60):
        ends = [cluster_bootstrap([1] * k + [0] * (n - k)).interval for k in range(n + 1)]
        for share in (0.5, 0.8, 0.9, 0.95, 0.98):
            mass = binomial(n, share)
            found = [
                sum(m for m, end in zip(mass, group, strict=True) if end and end.contains(share))
                for group in (ends, [wilson(k, n) for k in range(n + 1)])
            ]
            rows.append([n, share, *(percent(float(value)) for value in found)])
    return table(["pairs", "rate", "bootstrap covers %", "Wilson covers %"], rows)


TABLES: dict[str, Callable[[], str]] = {
    call.__name__: call
    for call in (
        single,
        unresolved,
        suite,
        difference,
        repeated,
        stable,
        replicates,
        order,
        decision,
        verdicts,
        gates,
        sequential,
        bootstrap,
    )
}


def inserted(text: str, name: str, made: str) -> str:
    """The page with one table replaced between its markers.

    Raises:
        ValueError: The page has no such markers.
    """
    start, end = f"<!-- table: {name} -->", f"<!-- end: {name} -->"
    before, found, rest = text.partition(start)
    if not found or end not in rest:
        raise ValueError(f"the page has no markers for the table {name}")
    return f"{before}{start}\n{made}\n{end}{rest.partition(end)[2]}"


def main(arguments: Sequence[str]) -> int:
    """Make the chosen tables; print them or put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    for name in options.only:
        made = TABLES[name]()
        if options.write is None:
            print(f"## {name}\n\n{made}\n", flush=True)
            continue
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(inserted(page, name, made), encoding="utf-8")
        print(f"{name}: written", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
