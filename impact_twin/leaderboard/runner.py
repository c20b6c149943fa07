"""Runs a plan: worker threads, another try after a provider's error, a record as each run ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from impact_twin.errors import StoppedError
from impact_twin.leaderboard.case import CaseResult, run_case
from impact_twin.leaderboard.clock import frozen
from impact_twin.leaderboard.endpoint import Endpoint
from impact_twin.leaderboard.plan import Key
from impact_twin.leaderboard.protocol import Protocol
from impact_twin.leaderboard.records import Record
from impact_twin.leaderboard.store import RunStore
from impact_twin.leaderboard.tasks import Benchmark

LONGEST_WAIT_S = 60.0
"""No server's wish for a pause is granted for longer."""

FAILURES_IN_A_ROW = 8
"""After so many unresolved runs on end, the provider is taken to be down."""


@dataclass
class _State:
    """What the workers share."""

    todo: Iterator[Key]
    lock: threading.Lock = field(default_factory=threading.Lock)
    stop: threading.Event = field(default_factory=threading.Event)
    failures: int = 0
    fault: BaseException | None = None

    def next(self) -> Key | None:
        with self.lock:
            return None if self.stop.is_set() else next(self.todo, None)

    def fail(self, fault: BaseException) -> None:
        with self.lock:
            self.fault = self.fault or fault
        self.stop.set()


@dataclass(frozen=True)
class Work:
    """All that a run of the plan needs.

    Attributes:
        protocol: The protocol.
        benchmark: AgentDojo's tasks.
        endpoint: The model.
        store: Where records go.
        jobs: Runs at a time.
        progress: Called with each record as it is stored, from a worker's thread.
    """

    protocol: Protocol
    benchmark: Benchmark
    endpoint: Endpoint
    store: RunStore
    jobs: int = 1
    progress: Callable[[Record], None] = lambda _: None


def pending(store: RunStore, *, benign: bool, again: bool) -> list[Key]:
    """Return the planned runs that the store lacks.

    Args:
        store: The run's store.
        benign: Whether runs without an injection are wanted.
        again: Whether runs whose result stayed unknown are wanted again.
    """
    run = store.run
    return [
        key
        for cell in run.plan.cells(benign=benign)
        for key in run.plan.keys(cell)
        if key not in run.records or (again and _may_repeat(run.records[key]))
    ]


def execute(work: Work, keys: list[Key]) -> None:
    """Run the keys in order, some at a time; each record is on disk before its worker goes on.

    An interrupt lets the runs under way finish and stores them; a second one leaves them behind.

    Raises:
        StoppedError: The provider refuses us for good, or failed many runs on end.
        KeyboardInterrupt: The user stopped it.
    """
    state = _State(iter(keys))
    ends = [threading.Event() for _ in range(max(1, min(work.jobs, len(keys))))]
    with frozen(work.protocol.clock):
        for end in ends:
            threading.Thread(
                target=_worker, args=(work, state, end), daemon=True, name="leaderboard-worker"
            ).start()
        try:
            _await(ends)
        except KeyboardInterrupt:
            state.stop.set()
            _await(ends)
            raise
    if state.fault is not None:
        raise state.fault


def _await(ends: list[threading.Event]) -> None:
    # An interrupted Thread.join takes a running thread for an ended one before Python 3.13.
    for end in ends:
        while not end.wait(0.1):
            pass


def _worker(work: Work, state: _State, end: threading.Event) -> None:
    try:
        while (key := state.next()) is not None:
            record, traces = _run(work, state, key)
            work.store.append(record, traces)
            work.progress(record)
            _watch(state, record)
    except BaseException as err:
        state.fail(err)
    finally:
        end.set()


def _watch(state: _State, record: Record) -> None:
    with state.lock:
        state.failures = state.failures + 1 if record.unresolved else 0
        down = state.failures >= FAILURES_IN_A_ROW
    if down:
        last = record.attempts[-1]["error"] or record.termination
        state.fail(
            StoppedError(
                f"{FAILURES_IN_A_ROW} runs on end stayed unresolved; the last error: {last}",
                mend="When the provider is well again, give the same command with "
                "--retry-unresolved.",
            )
        )


def _run(work: Work, state: _State, key: Key) -> tuple[Record, dict[str, Any]]:
    stored = work.store.run.records.get(key)
    tries = _Tries.after(stored)
    traces: dict[str, Any] = {}
    for tried in range(work.protocol.limits.attempts):
        world = work.benchmark.world(key)
        result = run_case(world, work.endpoint, work.protocol)
        if result.hopeless:
            raise StoppedError(
                f"the provider won't serve this model: {result.attempt.error}",
                where=work.endpoint.options.model,
                mend="What is stored stays; give the same command again once that is mended.",
            )
        tries = tries.plus(result)
        traces[result.attempt.trace] = result.trace
        # A goal met before the error is a result; running again could only hide it.
        if not result.retryable or result.attack_succeeded:
            break
        last = tried + 1 == work.protocol.limits.attempts
        if last or state.stop.wait(_pause(tried, result.attempt.retry_after)):
            break
    return _record(key, result, world.delivery, tries), traces


@dataclass(frozen=True)
class _Tries:
    attempts: tuple[dict[str, Any], ...] = ()
    requests: int = 0
    with_tools: int = 0

    @classmethod
    def after(cls, stored: Record | None) -> _Tries:
        if stored is None:
            return cls()
        return cls(stored.attempts, stored.requests, stored.with_tools)

    def plus(self, result: CaseResult) -> _Tries:
        return _Tries(
            (*self.attempts, result.attempt.to_json()),
            self.requests + result.attempt.requests,
            self.with_tools + result.with_tools,
        )


def _pause(tried: int, hint: float | None) -> float:
    wait = hint if hint is not None and hint >= 0 else 2.0**tried
    return min(wait, LONGEST_WAIT_S)


def _record(key: Key, result: CaseResult, delivery: str | None, tries: _Tries) -> Record:
    turns = result.turns
    return Record(
        key=key,
        termination=result.attempt.termination,
        utility=result.utility,
        attack_succeeded=result.attack_succeeded,
        exposed=result.exposed,
        delivery=delivery,
        ended_by=result.ended_by,
        trace=result.attempt.trace,
        requests=tries.requests,
        with_tools=tries.with_tools,
        response_ids=tuple(turn.response_id for turn in turns),
        served_models=tuple(sorted({turn.served_model for turn in turns})),
        finishes=tuple(turn.finish for turn in turns),
        usage={
            "input_tokens": _total(turn.input_tokens for turn in turns),
            "output_tokens": _total(turn.output_tokens for turn in turns),
        },
        attempts=tries.attempts,
    )


def _total(counts: Iterator[int | None]) -> int | None:
    found = list(counts)
    return None if any(count is None for count in found) else sum(c for c in found if c)


def _may_repeat(record: Record) -> bool:
    return record.unresolved and record.attack_succeeded is not True
