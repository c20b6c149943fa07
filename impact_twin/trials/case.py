"""One case from its first try to its record."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from impact_twin.agents.delivery import classify
from impact_twin.agents.protocol import CaseOutcome, CaseRequest, ModelCall, Usage
from impact_twin.errors import ImpactTwinError
from impact_twin.procurement.model import JSON, Trace, trace_digest
from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.text import storable
from impact_twin.trials.codec import clean_status, clean_usage, storable_json
from impact_twin.trials.executor import Executor
from impact_twin.trials.ledger import Ledger, total_usage
from impact_twin.trials.live import LiveTry, Monitor
from impact_twin.trials.plan import case_seed, plan_limits
from impact_twin.trials.records import Attempt, CaseKey, CaseRecord
from impact_twin.trials.throttle import Throttle

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

# Errors that the same request will meet again: another try would only cost.
PERMANENT_KINDS = frozenset({"auth", "quota", "no_such_model", "bad_request"})
AGENT_TERMINATIONS = frozenset(
    {"completed", "agent_error", "limit", "refused", "infrastructure_error"}
)
MAX_MESSAGE = 500


@dataclass(frozen=True)
class Backoff:
    """How long to wait before another try.

    Attributes:
        first_s: Seconds before the second try.
        cap_s: No wait is longer.
    """

    first_s: float = 1.0
    cap_s: float = 60.0

    def delay(self, seed: int, tries: int) -> float:
        """Return the seconds to wait after so many tries: doubled each time, with jitter.

        The jitter, a factor in [0.5, 1.5), comes from the case's seed, so that a run repeats.
        """
        hashed = hashlib.sha256(json.dumps(["backoff", seed, tries]).encode()).digest()
        jitter = 0.5 + int.from_bytes(hashed[:6], "big") / 2**48
        return min(self.cap_s, self.first_s * 2.0 ** (min(tries, 64) - 1) * jitter)


@dataclass
class Tries:
    """What the tries of one case gave so far."""

    attempts: list[Attempt] = field(default_factory=list)
    calls: list[ModelCall] = field(default_factory=list)
    reported: list[Usage] = field(default_factory=list)
    traces: dict[str, Mapping[str, JSON]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    delivered: str | None = None
    delivered_text: str | None = None
    late_calls: int = 0
    instance: int | None = None
    detail: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class Finished:
    """A case's record with the traces and texts it needs.

    Attributes:
        record: The record.
        traces: Its tries' traces by digest.
        texts: Their tool outputs by digest.
        complete: False when the run stopped while the case waited for its next try.
    """

    record: CaseRecord
    traces: Mapping[str, Mapping[str, JSON]]
    texts: Mapping[str, str]
    complete: bool


class CaseRunner:
    """Runs cases of one plan: a fresh agent and a fresh world for each try.

    Safe to use from several threads.

    Args:
        plan: The content of plan.json.
        suite: The plan's suite.
        executor: Where agents run.
        ledger: Adds up what the run spends.
        throttle: The run's shared slow-down.
        backoff: Waits between tries.
        stopping: Set when no further try may start.
    """

    def __init__(
        self,
        plan: Mapping[str, JSON],
        suite: Suite,
        executor: Executor,
        *,
        ledger: Ledger,
        throttle: Throttle,
        backoff: Backoff,
        stopping: threading.Event,
    ) -> None:
        self._plan = plan
        self._suite = suite
        self._executor = executor
        self._ledger = ledger
        self._throttle = throttle
        self._backoff = backoff
        self._stopping = stopping
        self._limits = plan_limits(plan)
        self._pairs = {pair.id: pair for pair in suite.pairs}
        # Elsewhere agent code says that its provider failed. Once it has called a tool, another try
        # would let it choose the better of two runs.
        self._errors_are_ours = plan["spec"]["kind"] == "model"
        self._digests = _TraceDigests()
        self._late: dict[CaseKey, int] = {}
        self._late_lock = threading.Lock()

    def run(self, key: CaseKey, position: int, earlier: CaseRecord | None) -> Finished:
        """Run a case to its end.

        Args:
            key: The case.
            position: Its start order within the run.
            earlier: Its tries before the run was interrupted, if any.
        """
        seed = case_seed(self._plan, key)
        tries = _tries_of(earlier)
        position = position if earlier is None else earlier.position
        while True:
            if tries.attempts and not self._may_go_on(seed, len(tries.attempts)):
                return self._finished(key, position, tries, complete=False)
            again = self._one_try(key, seed, tries)
            if not again or len(tries.attempts) > self._limits.retries:
                return self._finished(key, position, tries, complete=True)

    def late_counts(self) -> Mapping[CaseKey, int]:
        """Return how many tool calls came after the ends of cases so far, where any did."""
        with self._late_lock:
            return dict(self._late)

    def _may_go_on(self, seed: int, tries: int) -> bool:
        """Wait before another try; False when the run stops, or its budget is used up."""
        if self._ledger.used_up() or self._stopping.wait(self._backoff.delay(seed, tries)):
            return False
        return not self._ledger.used_up()

    def _one_try(self, key: CaseKey, seed: int, tries: Tries) -> bool:
        """Make one try and return whether another may follow."""
        pair = self._pairs[key.pair]
        runtime = CaseRuntime(self._suite, pair, key.twin, max_calls=self._limits.max_tool_calls)
        monitor = Monitor(self._ledger, self._throttle)
        live = LiveTry(runtime, monitor, self._late_counter(key))
        request = CaseRequest(
            query=pair.request,
            system_directive=self._suite.system_directive,
            tools=self._suite.tools,
            call=live.call,
            monitor=monitor,
            seed=seed,
            deadline_s=self._limits.timeout_s,
        )
        started, begun = time.time(), time.monotonic()
        try:
            self._executor.execute(request, live)
        except (
            RuntimeError,
            OSError,
            ImpactTwinError,
        ) as error:  # no thread or process is to be had
            live.finish(
                CaseOutcome("infrastructure_error", error_kind="no_worker", message=str(error))
            )
        waiting = monitor.outstanding()
        outcome = how_it_ended(live.close(), runtime.limit_reached, waiting)
        duration = time.monotonic() - begun
        self._keep(tries, live, outcome, started, duration)
        return (
            outcome.termination == "infrastructure_error"
            and outcome.error_kind not in PERMANENT_KINDS
            and not runtime.harm_so_far()
            and (self._errors_are_ours or not runtime.events)
        )

    def _keep(
        self, tries: Tries, live: LiveTry, outcome: CaseOutcome, started: float, duration: float
    ) -> None:
        runtime, monitor = live.runtime, live.monitor
        trace = runtime.trace(outcome.termination, outcome.final_answer)
        digest = self._digests.store(trace, tries)
        calls = monitor.calls
        tries.attempts.append(
            Attempt(
                termination=outcome.termination,
                error_kind=storable(outcome.error_kind)[:MAX_MESSAGE],
                message=storable(outcome.message)[:MAX_MESSAGE],
                http_status=clean_status(outcome.http_status),
                requests=monitor.requests,
                started=started,
                duration_s=duration,
                trace=digest,
            )
        )
        tries.calls.extend(calls)
        if not monitor.requests:
            usage = None if outcome.usage is None else clean_usage(outcome.usage)
            self._ledger.add_reported(usage)
            if usage is not None:
                tries.reported.append(usage)
        tries.instance = outcome.instance
        tries.detail = storable_json(outcome.detail) if outcome.detail else {}
        tries.late_calls += runtime.late_calls
        tries.delivered = tries.delivered_text = None
        served = runtime.served_texts()
        if served:
            tries.delivered, text = classify(
                served,
                runtime.pair.passage(runtime.twin),
                monitor.shown,
                outputs=[event.output for event in trace.events],
            )
            tries.delivered_text = None if text is None else storable(text)

    def _finished(self, key: CaseKey, position: int, tries: Tries, *, complete: bool) -> Finished:
        last = tries.attempts[-1]
        record = CaseRecord(
            key=key,
            position=position,
            termination=last.termination,
            trace=last.trace,
            duration_s=sum(attempt.duration_s for attempt in tries.attempts),
            usage=total_usage(tries.calls, tries.reported),
            model_calls=tuple(tries.calls),
            attempts=tuple(tries.attempts),
            delivered=tries.delivered,
            delivered_text=tries.delivered_text,
            late_calls=tries.late_calls,
            instance=tries.instance,
            detail=tries.detail,
        )
        return Finished(record, tries.traces, tries.texts, complete)

    def _late_counter(self, key: CaseKey) -> Callable[[], None]:
        def count() -> None:
            with self._late_lock:
                self._late[key] = self._late.get(key, 0) + 1

        return count


def how_it_ended(
    outcome: CaseOutcome | None, limit_reached: bool, request_outstanding: bool
) -> CaseOutcome:
    """Say how a try ended.

    Args:
        outcome: What the agent layer said; None when the try was cut off.
        limit_reached: Whether the agent asked for more tool calls than it has.
        request_outstanding: Whether a model request was under way when the try was cut off.
    """
    if outcome is not None and outcome.termination not in AGENT_TERMINATIONS:
        outcome = CaseOutcome(
            "agent_error", error_kind="bad_outcome", message="the agent layer said no known end"
        )
    if limit_reached and (outcome is None or outcome.termination in ("completed", "agent_error")):
        return CaseOutcome(
            "limit",
            final_answer="" if outcome is None else outcome.final_answer,
            error_kind="max_tool_calls",
            message="the case used up its tool calls",
            usage=None if outcome is None else outcome.usage,
            instance=None if outcome is None else outcome.instance,
            detail={} if outcome is None else outcome.detail,
        )
    if outcome is not None:
        return outcome
    if request_outstanding:
        return CaseOutcome(
            "infrastructure_error",
            error_kind="timeout_in_request",
            message="the case's time was over while a model request was under way",
        )
    return CaseOutcome("timeout", error_kind="timeout", message="the case's time was over")


_PLAIN = json.JSONEncoder(ensure_ascii=True)


class _TraceDigests:
    """Digests of traces; equal traces are put into canonical form once.

    The canonical form is made in pure Python and would be most of a short case's cost.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def store(self, trace: Trace, tries: Tries) -> str:
        """Put a trace and its texts into `tries` and return its digest."""
        data = trace.to_json(tries.texts)
        key = hashlib.sha256(_PLAIN.encode(data).encode("ascii")).digest()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = trace_digest(data)
        tries.traces[found] = data
        return found


def _tries_of(earlier: CaseRecord | None) -> Tries:
    if earlier is None:
        return Tries()
    tries = Tries(attempts=list(earlier.attempts), calls=list(earlier.model_calls))
    tries.late_calls = earlier.late_calls
    if not earlier.model_calls and earlier.usage != Usage():
        tries.reported.append(earlier.usage)
    return tries
