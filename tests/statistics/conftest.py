"""Reference values and table builders for the statistics tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from impact_twin.statistics.table import (
    OUTCOME_CLASSES,
    UNRESOLVED,
    CaseObservation,
    Observation,
    ObservationTable,
    TwinColumns,
)

# A property test fails for what it finds, not for how long a busy machine took.
settings.register_profile("statistics", deadline=None)
settings.load_profile("statistics")

HERE = Path(__file__).parent
SHARED = HERE.parents[1].parent / "shared" / "reference" / "statistics.json"


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """The sections of the shared reference file."""
    if not SHARED.exists():
        pytest.skip("../shared is not here")
    return json.loads(SHARED.read_text(encoding="utf-8"))["sections"]


@pytest.fixture(scope="session")
def kept() -> dict[str, Any]:
    """The committed handful of reference values; the file names their origin."""
    return json.loads((HERE / "kept_values.json").read_text(encoding="utf-8"))


def close(found, wanted, tolerance):
    """Whether two numbers or sequences of numbers agree within the tolerance."""
    return np.allclose(np.array(found, float), np.array(wanted, float), rtol=0, atol=tolerance)


@pytest.fixture(scope="session")
def agree():
    """The comparison with an absolute tolerance."""
    return close


def case(outcome: str, poisoned: bool, **changes: Any) -> CaseObservation:
    """A case as a pair-trial of that class would have it."""
    if not poisoned:
        base = CaseObservation(True, mission=True, decision="A", trace="clean")
    elif outcome == "compromised":
        base = CaseObservation(
            True, violated=True, goal=True, exposed=True, decision="B", trace="harm"
        )
    elif outcome == "unresolved":
        base = CaseObservation(False)
    else:
        done = outcome == "resisted"
        decision = "A" if done else "B"
        base = CaseObservation(True, mission=done, exposed=True, decision=decision, trace=outcome)
    return base._replace(**changes)


def rows_of(pair: str, outcomes: str) -> list[Observation]:
    """Rows from letters: R resisted, C compromised, U unresolved, S swayed, D derailed."""
    names = {
        "R": "resisted",
        "C": "compromised",
        "U": "unresolved",
        "S": "swayed",
        "D": "derailed",
    }
    return [
        Observation(
            pair,
            trial,
            names[letter],
            case(names[letter], poisoned=False, trace=f"c{trial}", start=2 * trial),
            case(names[letter], poisoned=True, start=2 * trial + 1),
        )
        for trial, letter in enumerate(outcomes, start=1)
    ]


@pytest.fixture(scope="session")
def table_of():
    """Build a table from pair -> letters (see `rows_of`)."""

    def build(**pairs: str) -> ObservationTable:
        rows = [row for pair, letters in pairs.items() for row in rows_of(pair, letters)]
        return ObservationTable.from_rows(rows, list(pairs))

    return build


def random_twin(random: np.random.Generator, rows: int, resolved: np.ndarray) -> TwinColumns:
    """Columns with every combination of facts."""
    flags = {
        name: random.random(rows) < 0.5
        for name in ("mission", "violated", "goal", "exposed", "attempted", "flagged")
    }
    return TwinColumns(
        resolved=resolved,
        **flags,
        decision=random.integers(-1, 3, rows),
        trace=random.integers(-1, 6, rows),
        start=random.permutation(rows).astype(float),
    )


@pytest.fixture(scope="session")
def random_table():
    """A random table of `pairs` pairs with `trials` trials each, from a seed."""

    def build(seed: int, pairs: int = 5, trials: int = 7) -> ObservationTable:
        random = np.random.default_rng(seed)
        rows = pairs * trials
        outcome = random.integers(0, len(OUTCOME_CLASSES), rows)
        unresolved = outcome == UNRESOLVED
        return ObservationTable(
            pairs=tuple(f"pair-{place}" for place in range(pairs)),
            pair=np.repeat(np.arange(pairs), trials),
            trial=np.tile(np.arange(1, trials + 1), pairs),
            outcome=outcome,
            clean=random_twin(random, rows, random.random(rows) < 0.8),
            poisoned=random_twin(random, rows, ~unresolved),
        )

    return build
