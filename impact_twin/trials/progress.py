"""What a run tells its front end while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from impact_twin.trials.ledger import Spent
from impact_twin.trials.records import CaseKey, CaseRecord, RunData

ProgressKind = Literal["begun", "started", "finished", "tick", "stopping", "ended"]


@dataclass(frozen=True)
class Progress:
    """One thing that happened. All events come from the thread that called `run`.

    Attributes:
        kind: `begun` (once, before the first case), `started`, `finished` (the record is on the
            disk), `tick` (nothing new, about once a second), `stopping` (no further case starts;
            `message` says why), `ended` (once, last).
        done: Cases recorded, those of earlier sessions included.
        planned: Cases of the plan.
        earlier: Cases recorded in earlier sessions.
        running: Cases in flight.
        elapsed_s: Seconds since this session began.
        slowed: Whether a rate limit holds requests back.
        spent: Tokens and cost of the whole run so far.
        run: The run so far; it grows as the run goes on.
        key: The case, for `started` and `finished`.
        record: Its record, for `finished`.
        message: One line, for `stopping`.
    """

    kind: ProgressKind
    done: int
    planned: int
    earlier: int
    running: int
    elapsed_s: float
    slowed: bool
    spent: Spent
    run: RunData
    key: CaseKey | None = None
    record: CaseRecord | None = None
    message: str = ""


ProgressCallback = Callable[[Progress], None]
