"""CPU time of summarising a million pair-trials, as ratios within one run.

Run: python benchmarks/summary_speed.py [ROWS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from impact_twin.statistics.decision import decision_changes
from impact_twin.statistics.order import order_effects
from impact_twin.statistics.summary import summarise
from impact_twin.statistics.table import (
    OUTCOME_CLASSES,
    UNRESOLVED,
    ObservationTable,
    TwinColumns,
)

BUDGET_SECONDS = 1.0
PAIRS = 5


def random_table(rows: int, seed: int = 0) -> ObservationTable:
    """A table with every class, 5 % unresolved, and as many distinct traces as cases."""
    random = np.random.default_rng(seed)
    trials = rows // PAIRS
    outcome = random.integers(0, len(OUTCOME_CLASSES), rows)
    order = random.permutation(2 * rows).astype(np.float64)

    def twin(resolved: np.ndarray, half: int) -> TwinColumns:
        flags = {
            name: random.random(rows) < 0.5
            for name in ("mission", "violated", "goal", "exposed", "attempted", "flagged")
        }
        return TwinColumns(
            resolved=resolved,
            **flags,
            decision=random.integers(-1, 3, rows),
            trace=np.arange(rows) + half * rows,
            start=order[half * rows : (half + 1) * rows],
        )

    return ObservationTable(
        pairs=tuple(f"pair-{place}" for place in range(PAIRS)),
        pair=np.repeat(np.arange(PAIRS), trials),
        trial=np.tile(np.arange(1, trials + 1), PAIRS),
        outcome=outcome,
        clean=twin(random.random(rows) < 0.95, 0),
        poisoned=twin(outcome != UNRESOLVED, 1),
    )


def cpu(call: Callable[[], object], repeats: int = 3) -> float:
    """Least CPU seconds of a few calls."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def main(rows: int) -> int:
    """Print the figures; 1 when `summarise` takes more than its budget."""
    table, tenth = random_table(rows), random_table(rows // 10)
    unit = cpu(lambda: np.sort(table.poisoned.start))
    print(f"{rows:,} pair-trials; unit: sorting one column of doubles ({unit:.3f} s CPU)")
    print(f"{'':24}{'s CPU':>8}{'units':>8}{'x a tenth of the rows':>24}")
    steps: list[tuple[str, Callable[[ObservationTable], object]]] = [
        ("summarise", summarise),
        ("order_effects", order_effects),
        ("decision_changes", decision_changes),
    ]
    total = budget = 0.0
    for name, step in steps:
        seconds = cpu(lambda step=step: step(table))  # type: ignore[misc]
        smaller = cpu(lambda step=step: step(tenth))  # type: ignore[misc]
        total += seconds
        budget = budget or seconds / BUDGET_SECONDS
        print(f"{name:24}{seconds:8.3f}{seconds / unit:8.1f}{seconds / smaller:24.1f}")
    print(f"{'together':24}{total:8.3f}{total / unit:8.1f}")
    print(f"summarise takes {budget:.2f} of its budget of {BUDGET_SECONDS:g} s of CPU")
    return int(budget > 1.0)


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
