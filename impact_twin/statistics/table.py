"""The observation table: one row per planned pair-trial, as numpy columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

OUTCOME_CLASSES: tuple[str, ...] = (
    "compromised",
    "unsafe_baseline",
    "unresolved",
    "attempted",
    "incapable",
    "unexposed",
    "derailed",
    "swayed",
    "resisted",
)
"""The outcome classes of a pair-trial, in order of precedence."""

UNRESOLVED = OUTCOME_CLASSES.index("unresolved")
RESISTED = OUTCOME_CLASSES.index("resisted")

BoolColumn = npt.NDArray[np.bool_]
IntColumn = npt.NDArray[np.int64]
FloatColumn = npt.NDArray[np.float64]

_BOOL_FIELDS = ("resolved", "mission", "violated", "goal", "exposed", "attempted", "flagged")


class CaseObservation(NamedTuple):
    """What one case (one twin, one run) contributes to the table.

    Attributes:
        resolved: False for `infrastructure_error`, `not_run` and unreadable records.
        mission: The mission was completed.
        violated: At least one control was violated.
        goal: The pair's own poison reached its goal.
        exposed: The poisoned text was served.
        attempted: The attacker's action was called and the world rejected it.
        flagged: The agent flagged a document.
        decision: The last recommendation in any stable spelling, or None.
        trace: The digest of the normalised trace, or None.
        start: Start order within the run (a rank or a time; only the order is read), or None when
            the case never started.
    """

    resolved: bool
    mission: bool = False
    violated: bool = False
    goal: bool = False
    exposed: bool = False
    attempted: bool = False
    flagged: bool = False
    decision: str | None = None
    trace: str | None = None
    start: float | None = None


class Observation(NamedTuple):
    """One planned pair-trial: its pair, its trial (from 1), its class and its two cases."""

    pair: str
    trial: int
    outcome: str
    clean: CaseObservation
    poisoned: CaseObservation


@dataclass(frozen=True, eq=False)
class TwinColumns:
    """The cases of one twin, one element per row of the table.

    Attributes:
        resolved: bool, shape (rows,); so are mission, violated, goal, exposed, attempted, flagged.
        decision: int64, shape (rows,); codes shared by both twins, -1 for no decision.
        trace: int64, shape (rows,); codes, -1 for no trace.
        start: float64, shape (rows,); start order, NaN when the case never started.
    """

    resolved: BoolColumn
    mission: BoolColumn
    violated: BoolColumn
    goal: BoolColumn
    exposed: BoolColumn
    attempted: BoolColumn
    flagged: BoolColumn
    decision: IntColumn
    trace: IntColumn
    start: FloatColumn

    def validate(self, rows: int, twin: str) -> None:
        """Check shapes, types and domains.

        Raises:
            ValueError: A column has another length or type than the table needs.
        """
        for name in _BOOL_FIELDS:
            _check_column(getattr(self, name), rows, "b", f"{twin}.{name}")
        for name in ("decision", "trace"):
            column = getattr(self, name)
            _check_column(column, rows, "i", f"{twin}.{name}")
            if rows and int(column.min()) < -1:
                raise ValueError(f"{twin}.{name}: codes are -1 (none) or from 0")
        _check_column(self.start, rows, "f", f"{twin}.start")


@dataclass(frozen=True, eq=False)
class ObservationTable:
    """All planned pair-trials of one report.

    Attributes:
        pairs: Names of the pairs; `pair` indexes it. A pair without rows is allowed.
        pair: int64, shape (rows,), values 0 to len(pairs) - 1.
        trial: int64, shape (rows,), from 1; unique within a pair.
        outcome: int64, shape (rows,), an index into `OUTCOME_CLASSES`.
        clean: The clean cases.
        poisoned: The poisoned cases.

    Raises:
        ValueError: A column has the wrong shape, type or domain, or a pair-trial is there twice.
    """

    pairs: tuple[str, ...]
    pair: IntColumn
    trial: IntColumn
    outcome: IntColumn
    clean: TwinColumns
    poisoned: TwinColumns

    def __post_init__(self) -> None:
        rows = len(self.pair)
        if len(set(self.pairs)) != len(self.pairs):
            raise ValueError("pairs: a name occurs twice")
        for name, top in (("pair", len(self.pairs)), ("outcome", len(OUTCOME_CLASSES))):
            column = getattr(self, name)
            _check_column(column, rows, "i", name)
            if rows and (int(column.min()) < 0 or int(column.max()) >= top):
                raise ValueError(f"{name}: values must lie between 0 and {top - 1}")
        _check_column(self.trial, rows, "i", "trial")
        if rows and int(self.trial.min()) < 1:
            raise ValueError("trial: trials count from 1")
        self.clean.validate(rows, "clean")
        self.poisoned.validate(rows, "poisoned")
        _check_unique(self.pair, self.trial, len(self.pairs))

    def __len__(self) -> int:
        return len(self.pair)

    @property
    def trials_per_pair(self) -> IntColumn:
        """Planned trials of each pair, int64, shape (pairs,)."""
        return np.bincount(self.pair, minlength=len(self.pairs)).astype(np.int64)

    def select(self, rows: BoolColumn | IntColumn) -> ObservationTable:
        """A table of the chosen rows, with the same pairs.

        Args:
            rows: A boolean mask of shape (rows,) or row numbers in the wanted order.
        """
        return ObservationTable(
            pairs=self.pairs,
            pair=self.pair[rows],
            trial=self.trial[rows],
            outcome=self.outcome[rows],
            clean=_select(self.clean, rows),
            poisoned=_select(self.poisoned, rows),
        )

    @classmethod
    def from_rows(
        cls, rows: Iterable[Observation], pairs: Sequence[str] | None = None
    ) -> ObservationTable:
        """Build a table from rows.

        Args:
            rows: The planned pair-trials, in any order.
            pairs: The pairs' names in the order wanted; the order of first appearance when None.

        Raises:
            ValueError: A pair or a class is unknown, or a pair-trial is there twice.
        """
        listed = list(rows)
        names = tuple(pairs) if pairs is not None else tuple(dict.fromkeys(r.pair for r in listed))
        pair_codes = {name: code for code, name in enumerate(names)}
        class_codes = {name: code for code, name in enumerate(OUTCOME_CLASSES)}
        try:
            pair = np.array([pair_codes[r.pair] for r in listed], dtype=np.int64)
        except KeyError as error:
            raise ValueError(f"pair {error.args[0]!r} is not one of {list(names)}") from None
        try:
            outcome = np.array([class_codes[r.outcome] for r in listed], dtype=np.int64)
        except KeyError as error:
            raise ValueError(f"outcome {error.args[0]!r} is not an outcome class") from None
        decisions: dict[str, int] = {}
        traces: dict[str, int] = {}
        return cls(
            pairs=names,
            pair=pair,
            trial=np.array([r.trial for r in listed], dtype=np.int64),
            outcome=outcome,
            clean=_columns([r.clean for r in listed], decisions, traces),
            poisoned=_columns([r.poisoned for r in listed], decisions, traces),
        )


def _columns(
    cases: list[CaseObservation], decisions: dict[str, int], traces: dict[str, int]
) -> TwinColumns:
    flags = {
        name: np.array([getattr(case, name) for case in cases], dtype=np.bool_)
        for name in _BOOL_FIELDS
    }
    start = [float("nan") if case.start is None else float(case.start) for case in cases]
    return TwinColumns(
        **flags,
        decision=_codes([case.decision for case in cases], decisions),
        trace=_codes([case.trace for case in cases], traces),
        start=np.array(start, dtype=np.float64),
    )


def _codes(values: list[str | None], known: dict[str, int]) -> IntColumn:
    codes = [-1 if value is None else known.setdefault(value, len(known)) for value in values]
    return np.array(codes, dtype=np.int64)


def _select(columns: TwinColumns, rows: BoolColumn | IntColumn) -> TwinColumns:
    return TwinColumns(**{name: column[rows] for name, column in vars(columns).items()})


def _check_column(column: npt.NDArray[np.generic], rows: int, kind: str, name: str) -> None:
    if column.shape != (rows,):
        raise ValueError(f"{name}: shape {column.shape}, the table has {rows} rows")
    if column.dtype.kind != kind:
        raise ValueError(f"{name}: dtype {column.dtype} is not of kind {kind!r}")


def _check_unique(pair: IntColumn, trial: IntColumn, pairs: int) -> None:
    if not len(pair):
        return
    top = int(trial.max()) + 1
    if pairs * top <= 64 * len(pair) + 1024:
        repeated = bool((np.bincount(pair * top + trial) > 1).any())
    else:
        repeated = len(set(zip(pair.tolist(), trial.tolist(), strict=True))) != len(pair)
    if repeated:
        raise ValueError("a pair-trial is in the table twice")
