"""What the runner keeps of each case, and of a whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.procurement.model import JSON, Twin


class CaseKey(NamedTuple):
    """Names a case: pair id, trial (from 1), twin."""

    pair: str
    trial: int
    twin: Twin


@dataclass(frozen=True)
class Attempt:
    """One try at a case.

    Attributes:
        termination: How it ended.
        error_kind: Short fixed word for the reason; empty when completed.
        message: One redacted line of detail.
        http_status: Provider status, if any.
        requests: Model requests of this try, including hidden re-queries.
        started: Unix seconds.
        duration_s: Seconds on the monotonic clock.
        trace: Digest of its trace.
    """

    termination: str
    error_kind: str
    message: str
    http_status: int | None
    requests: int
    started: float
    duration_s: float
    trace: str


@dataclass(frozen=True)
class CaseRecord:
    """One finished case, as the journal holds it.

    Attributes:
        key: Which case.
        position: Start order within the run, from 0; -1 when not run.
        termination: How the last try ended.
        trace: Digest of the last try's trace.
        duration_s: Seconds over all tries, without waiting between them.
        usage: Over all tries.
        model_calls: Of all tries, in order.
        attempts: Every try, in order; empty only for `not_run`.
        delivered: `intact`, `altered`, `removed` or `unknown`; None when nothing was served.
        delivered_text: What the agent got instead when altered or removed (storable); else None.
        late_calls: Tool calls after the case had ended.
        instance: Identity of the agent object, if known.
        detail: Extra JSON facts.
    """

    key: CaseKey
    position: int
    termination: str
    trace: str
    duration_s: float
    usage: Usage
    model_calls: tuple[ModelCall, ...]
    attempts: tuple[Attempt, ...]
    delivered: str | None = None
    delivered_text: str | None = None
    late_calls: int = 0
    instance: int | None = None
    detail: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class RunData:
    """A run directory, read back.

    Attributes:
        plan: The content of plan.json.
        cases: Finished cases.
        traces: Trace JSON by digest.
        texts: Tool outputs by digest.
        stopped: Why the run stopped early, in one line; empty when it did not.
        concurrency: Cases at once, in each session: the first, and one more for each time that the
            run was resumed.
        notes: What a reader of the run should know, one line each: a torn line that was cut off,
            costs that nobody told, a budget that was raised.
        looks: What the stop rule said after each trial it was asked about, in order; each an
            object with `trial`, `stop` and `reason`. Empty without a stop rule.
    """

    plan: Mapping[str, JSON]
    cases: Mapping[CaseKey, CaseRecord]
    traces: Mapping[str, Mapping[str, JSON]]
    texts: Mapping[str, str]
    stopped: str = ""
    concurrency: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    looks: tuple[Mapping[str, JSON], ...] = ()

    @property
    def resumed(self) -> int:
        """How often the run was resumed."""
        return max(0, len(self.concurrency) - 1)
