"""Coverage of every interval that the tool prints."""

from __future__ import annotations

from functools import cache
from math import comb, log

import numpy as np
from coverage_laws import (
    CONFIDENCE,
    DIP,
    KS,
    SEED,
    TINY,
    VECTORS,
    Floats,
    binomial,
    dips,
    percent,
    suite_ends,
    suite_law,
    table,
)

from impact_twin.statistics.bootstrap import cluster_bootstrap
from impact_twin.statistics.difference import TwoGroups, constrained_estimate, newcombe
from impact_twin.statistics.fixed_suite import fixed_suite
from impact_twin.statistics.intervals import (
    Interval,
    two_sided_z,
    wilson,
    wilson_with_unresolved,
)
from impact_twin.statistics.passk import all_of_k_image
from impact_twin.statistics.sequential import always_valid

GRID = np.arange(1, 10_000) / 10_000


def wilson_over_grid(n: int) -> tuple[Floats, Floats]:
    """For each rate of `GRID`: coverage, and the chance of a lower end above the rate."""
    ends = [wilson(k, n, CONFIDENCE) for k in range(n + 1)]
    ks = np.arange(n + 1)
    logs = np.array([log(comb(n, int(k))) for k in ks])
    mass = np.exp(logs + ks * np.log(GRID)[:, None] + (n - ks) * np.log1p(-GRID)[:, None])
    low = np.array([end.lo for end in ends if end])
    high = np.array([end.hi for end in ends if end])
    inside = (low <= GRID[:, None]) & (GRID[:, None] <= high)
    return (mass * inside).sum(axis=1), (mass * (low > GRID[:, None])).sum(axis=1)


def single() -> str:
    """Wilson's interval for one pair, over a fine grid of true rates."""
    rows = []
    middle = (GRID >= 0.05) & (GRID <= 0.95)
    for n in (*KS, 100, 250):
        covered, above = wilson_over_grid(n)
        rows.append(
            [
                n,
                percent(covered.mean()),
                f"{percent(covered.min())} at {GRID[covered.argmin()]:.4f}",
                percent(covered[middle].min()),
                percent((covered < DIP).mean()),
                f"{percent(above.max())} at {GRID[above.argmax()]:.4f}",
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
    rows, cells = [], {}
    for n in KS:
        for seen, unknown in ((0.1, 0.2), (0.02, 0.1), (0.4, 0.1), (0.3, 0.02)):
            covered = unresolved_coverage(n, seen, unknown)
            cells[f"{seen} and {unknown} at {n}"] = covered[2]
            rows.append([n, seen, unknown, *map(percent, covered)])
    head = ["n", "rate seen", "rate unresolved", "lower bound %", "upper bound %", "both %"]
    return "\n\n".join([table(head, rows), f"Both: {dips(cells)}", unresolved_suite()])


def unresolved_coverage(n: int, seen: float, unknown: float) -> tuple[float, float, float]:
    """Coverage of the lower bound, of the upper one, and of both, over every outcome."""
    low = high = both = 0.0
    rest = 1 - seen - unknown
    for k in range(n + 1):
        for u in range(n - k + 1):
            chance = comb(n, k) * comb(n - k, u) * seen**k * unknown**u * rest ** (n - k - u)
            found = wilson_with_unresolved(k, u, n, CONFIDENCE)
            assert found is not None
            at_low, at_high = found.contains(seen), found.contains(seen + unknown)
            low += chance * at_low
            high += chance * at_high
            both += chance * (at_low and at_high)
    return low, high, both


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
                covered = suite_coverage(shares, n, kind == "fixed suite")
                cells[f"{name} at {n}"] = covered
                row.append(percent(covered))
        rows.append(row)
    head = ["pairs' rates", "mean", *(f"{kind} {n}" for n in KS for kind in ("pooled", "fixed"))]
    notes = [f"{kind.capitalize()}: {dips(cells)}" for kind, cells in low.items()]
    return "\n\n".join([table(head, rows), *notes])


def suite_coverage(shares: tuple[float, ...], n: int, fixed: bool) -> float:
    """Coverage of the suite's mean by the pooled or the fixed-suite interval, exactly."""
    sums, squares, mass = suite_law(shares, n)
    low, high = suite_ends(sums, squares, n, len(shares), fixed)
    mean = float(np.mean(shares))
    inside = (low <= mean + TINY) & (mean <= high + TINY)
    return min(float(mass[inside].sum()), 1.0)


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


def repeated() -> str:
    """pass^k: coverage of the image of Wilson's interval."""
    rows, low = [], {}
    for n in KS:
        for share in (0.5, 0.9, 0.98):
            cells: list[object] = [n, share]
            for k in (1, 3, 5):
                ends = [wilson(c, n, CONFIDENCE) for c in range(n + 1)]
                images = [all_of_k_image(end, k) for end in ends if end]
                mass = binomial(n, share)
                covered = sum(m for m, i in zip(mass, images, strict=True) if i.contains(share**k))
                low[f"rate {share} at {n}"] = float(covered)
                cells += [percent(share**k), percent(float(covered))]
            rows.append(cells)
    head = ["n", "rate", *(cell for k in (1, 3, 5) for cell in (f"pass^{k} %", "covered %"))]
    return "\n\n".join([table(head, rows), dips(low)])


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
    rows, low = [], {}
    for n in (5, 20, 35, 60):
        ends = [cluster_bootstrap([1] * k + [0] * (n - k)).interval for k in range(n + 1)]
        for share in (0.5, 0.8, 0.9, 0.95, 0.98):
            mass = binomial(n, share)
            found = [
                sum(m for m, end in zip(mass, group, strict=True) if end and end.contains(share))
                for group in (ends, [wilson(k, n) for k in range(n + 1)])
            ]
            low[f"{n} pairs at {share}"] = float(found[0])
            rows.append([n, share, *(percent(float(value)) for value in found)])
    made = table(["pairs", "rate", "bootstrap covers %", "Wilson covers %"], rows)
    return "\n\n".join([made, f"Bootstrap: {dips(low)}"])
