"""Runs a plan: many cases at once, each on the disk before its worker starts the next one."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from impact_twin.agents.protocol import AgentSource
from impact_twin.errors import InputError, StoppedError
from impact_twin.procurement.model import JSON
from impact_twin.trials.breaker import Breaker
from impact_twin.trials.case import Backoff, CaseRunner
from impact_twin.trials.executor import Executor, ThreadExecutor
from impact_twin.trials.interrupt import Interrupt
from impact_twin.trials.journal import Journal, check_directory, create_run, open_journal
from impact_twin.trials.ledger import Ledger
from impact_twin.trials.plan import Limits, identity_difference, iter_cases, plan_limits
from impact_twin.trials.progress import Progress, ProgressCallback, ProgressKind
from impact_twin.trials.records import CaseKey, CaseRecord, RunData
from impact_twin.trials.schedule import Assignment, Schedule
from impact_twin.trials.throttle import Throttle

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

MAX_CONCURRENCY = 256
TICK_S = 1.0

StopRule = Callable[[RunData], str]


def run(
    plan: Mapping[str, JSON],
    suite: Suite,
    source: AgentSource,
    directory: Path,
    *,
    concurrency: int = 4,
    resume: bool = False,
    force: bool = False,
    progress: ProgressCallback | None = None,
    stop_rule: StopRule | None = None,
    interrupt: Interrupt | None = None,
    backoff: Backoff | None = None,
) -> RunData:
    """Run a plan, or what is left of it, in a run directory.

    A run that stops early (budget, breaker, full disk, signal) returns what it has: `stopped` says
    why in one line, and the caller ends with exit code 3, or with `interrupt.exit_code`.

    Args:
        plan: What `make_plan` gave (`renew_plan` when resuming).
        suite: The plan's suite.
        source: The agent, after its `prepare`.
        directory: The run directory.
        concurrency: Cases at once, from 1 to `MAX_CONCURRENCY`.
        resume: Go on with the run that the directory holds. The plan's budget holds for the run
            with its earlier sessions; it may differ from the stored one.
        force: Overwrite the run that the directory holds.
        progress: Told what happens, always from the calling thread.
        stop_rule: Asked after each trial, at a barrier, with the run so far; returns why the run
            is complete, or an empty string.
        interrupt: Set by signals; see `Interrupt`.
        backoff: Waits before another try.

    Returns:
        The run as it is on the disk.

    Raises:
        InputError: the directory can't be used, another run works in it, its journal is damaged, or
            the identity of the run to resume differs.
    """
    if isinstance(concurrency, bool) or not 1 <= concurrency <= MAX_CONCURRENCY:
        raise InputError(
            f"{concurrency} is out of range",
            where="--concurrency",
            mend=f"Give a whole number from 1 to {MAX_CONCURRENCY}.",
        )
    if not resume:
        check_directory(directory, force=force)
    executor = _executor(plan, source)
    try:
        journal = _open(plan, directory, resume=resume, force=force)
        try:
            if not journal.contents.complete(plan):
                journal.begin(concurrency)
            session = _Session(
                plan,
                journal,
                executor,
                concurrency=concurrency,
                progress=progress,
                stop_rule=stop_rule,
                interrupt=Interrupt() if interrupt is None else interrupt,
            )
            return session.run(suite, Backoff() if backoff is None else backoff)
        finally:
            journal.close()
    finally:
        executor.close()


class _Started(NamedTuple):
    assignment: Assignment


class _Ended(NamedTuple):
    record: CaseRecord | None


class _Left(NamedTuple):
    error: BaseException | None


_Message = _Started | _Ended | _Left | None


class _Session:
    """One go at a plan, from its first case to its last or to a stop."""

    def __init__(
        self,
        plan: Mapping[str, JSON],
        journal: Journal,
        executor: Executor,
        *,
        concurrency: int,
        progress: ProgressCallback | None,
        stop_rule: StopRule | None,
        interrupt: Interrupt,
    ) -> None:
        self._plan = plan
        self._journal = journal
        self._executor = executor
        self._concurrency = concurrency
        self._progress = progress
        self._stop_rule = stop_rule
        self._interrupt = interrupt
        self._ledger = Ledger(plan_limits(plan))
        self._throttle = Throttle()
        # `--model` names the setting in each message.
        self._breaker = Breaker(concurrency, told=plan["identity"]["agent"]["kind"] == "model")
        self._stopping = threading.Event()
        self._given_up = threading.Event()
        # A SimpleQueue may be put to from a signal handler.
        self._inbox: queue.SimpleQueue[_Message] = queue.SimpleQueue()
        self._begun = time.monotonic()
        self._earlier = len(journal.contents.cases)
        self._planned = plan["trials"] * len(plan["pairs"]) * 2
        self._ledger.add_earlier(journal.contents.cases.values())
        self._ledger.add_earlier(journal.contents.tries.values())
        self._schedule = Schedule(
            self._remaining(),
            self._next_position(),
            last_trial=self._trial_to_ask_about(),
            may_start=self._ledger.used_up,
            after_trial=None if stop_rule is None else self._ask_rule,
        )
        self._view = journal.view()
        self._told_stopping = False

    def run(self, suite: Suite, backoff: Backoff) -> RunData:
        cases = CaseRunner(
            self._plan,
            suite,
            self._executor,
            ledger=self._ledger,
            throttle=self._throttle,
            backoff=backoff,
            stopping=self._stopping,
        )
        self._interrupt.on_change(lambda: self._inbox.put(None))
        try:
            self._tell("begun")
            self._heed_signal()
            self._serve(cases)
        finally:
            # Set first: what ends only because it is killed now must not be recorded.
            self._given_up.set()
            self._stopping.set()
            self._interrupt.on_change(None)
            self._executor.close()
        self._settle(cases)
        self._tell("ended")
        return self._journal.run_data()

    def _serve(self, cases: CaseRunner) -> None:
        """Start the workers and follow them until the last one has left, or the run is aborted."""
        workers = min(self._concurrency, self._planned - self._earlier)
        if self._journal.contents.complete(self._plan):
            return
        workers = self._start_workers(cases, workers)
        while workers:
            try:
                message = self._inbox.get(timeout=TICK_S)
            except queue.Empty:
                self._tell("tick")
                continue
            if isinstance(message, _Left):
                workers -= 1
                if isinstance(message.error, StoppedError):
                    self._stop(message.error.line())
                    return
                if message.error is not None:
                    raise message.error
            elif isinstance(message, _Started):
                self._tell("started", key=message.assignment.key)
            elif isinstance(message, _Ended):
                if message.record is not None:
                    self._tell("finished", key=message.record.key, record=message.record)
            elif self._heed_signal():
                return
            self._tell_stopping()

    def _start_workers(self, cases: CaseRunner, wanted: int) -> int:
        """Start workers and return how many run: fewer when the system has no more threads."""
        for number in range(wanted):
            worker = threading.Thread(
                target=self._work, args=(cases,), name=f"worker-{number + 1}", daemon=True
            )
            try:
                worker.start()
            except RuntimeError:
                if number == 0:
                    raise StoppedError("no thread can be started", mend="Close programs.") from None
                return number
        return wanted

    def _heed_signal(self) -> bool:
        """Act on a signal; True when cases in flight are given up."""
        interrupt = self._interrupt
        if interrupt.draining:
            self._stop(f"interrupted by {interrupt.name}")
        return interrupt.aborted

    def _work(self, cases: CaseRunner) -> None:
        error: BaseException | None = None
        try:
            while (assignment := self._schedule.take()) is not None:
                self._post(_Started(assignment))
                try:
                    record = self._one_case(cases, assignment)
                finally:
                    self._schedule.done()
                self._post(_Ended(record))
        except BaseException as caught:  # it is raised again in the calling thread
            error = caught
            self._schedule.stop("")
            self._stopping.set()
        self._inbox.put(_Left(error))

    def _post(self, message: _Started | _Ended) -> None:
        # Waking the calling thread twice a case costs; without a listener it has nothing to do.
        if self._progress is not None:
            self._inbox.put(message)

    def _one_case(self, cases: CaseRunner, assignment: Assignment) -> CaseRecord | None:
        key = assignment.key
        earlier = self._journal.contents.tries.get(key)
        finished = cases.run(key, assignment.position, earlier)
        if self._given_up.is_set():
            return None
        if not finished.complete:
            self._journal.add_tries(finished.record, finished.traces, finished.texts)
            return None
        self._journal.add_case(finished.record, finished.traces, finished.texts)
        reason = self._breaker.saw(finished.record)
        if reason:
            self._schedule.stop(reason)
            self._stopping.set()
        return finished.record

    def _settle(self, cases: CaseRunner) -> None:
        """Write how the session ended."""
        try:
            if self._interrupt.aborted:
                self._journal.stop(
                    f"interrupted by {self._interrupt.name}, twice: cases in flight were given up"
                )
                return
            if self._journal.contents.closed == "end":
                return
            self._journal.add_late(cases.late_counts())
            for line in self._ledger.blind_spots():
                self._journal.note(line)
            if self._journal.contents.complete(self._plan):
                self._journal.end()
            else:
                self._journal.stop(self._schedule.reason or "not every case ended")
        except StoppedError as error:
            # The disk is full: the reason can't be written, but the caller can say it.
            self._journal.contents.stopped = error.line()

    def _stop(self, reason: str) -> None:
        self._schedule.stop(reason)
        self._stopping.set()
        self._tell_stopping()

    def _tell_stopping(self) -> None:
        if self._schedule.reason and not self._told_stopping:
            self._told_stopping = True
            self._tell("stopping", message=self._schedule.reason)

    def _remaining(self) -> Iterator[CaseKey]:
        done = self._journal.contents.cases
        return (key for key in iter_cases(self._plan) if key not in done)

    def _next_position(self) -> int:
        contents = self._journal.contents
        records = [*contents.cases.values(), *contents.tries.values()]
        return max((record.position for record in records), default=-1) + 1

    def _trial_to_ask_about(self) -> int:
        """Return the last trial of earlier sessions if the rule wasn't asked about it; else 0."""
        contents = self._journal.contents
        last = max((key.trial for key in contents.cases), default=0)
        return 0 if any(look["trial"] == last for look in contents.looks) else last

    def _ask_rule(self, trial: int) -> str:
        assert self._stop_rule is not None
        reason = self._stop_rule(self._view)
        self._journal.add_look(trial, bool(reason), reason)
        return reason

    def _tell(
        self,
        kind: ProgressKind,
        *,
        key: CaseKey | None = None,
        record: CaseRecord | None = None,
        message: str = "",
    ) -> None:
        if self._progress is None:
            return
        with contextlib.suppress(OSError):  # a closed terminal is no reason to lose a run
            self._progress(
                Progress(
                    kind=kind,
                    done=len(self._journal.contents.cases),
                    planned=self._planned,
                    earlier=self._earlier,
                    running=self._schedule.running,
                    elapsed_s=time.monotonic() - self._begun,
                    slowed=self._throttle.slowed,
                    spent=self._ledger.spent,
                    run=self._view,
                    key=key,
                    record=record,
                    message=message,
                )
            )


def _open(plan: Mapping[str, JSON], directory: Path, *, resume: bool, force: bool) -> Journal:
    if not resume:
        return create_run(directory, plan, force=force)
    journal = open_journal(directory)
    try:
        differences = identity_difference(journal.plan, plan)
        if differences:
            raise InputError(
                f"the run can't go on: {'; '.join(differences)}",
                where=str(directory),
                mend="Results of different agents, suites or settings don't add up: start anew.",
            )
        _note_budget(journal, plan)
    except BaseException:
        journal.close()
        raise
    return journal


def _note_budget(journal: Journal, plan: Mapping[str, JSON]) -> None:
    if journal.contents.complete(plan):
        return
    before, after = plan_limits(journal.plan), plan_limits(plan)
    if _budget(before) != _budget(after):
        journal.note(f"resumed with the budget {_budget(after)} instead of {_budget(before)}")


def _budget(limits: Limits) -> str:
    cost = "no cost limit" if limits.max_cost_usd is None else f"{limits.max_cost_usd:g} USD"
    tokens = "no token limit" if limits.max_tokens is None else f"{limits.max_tokens} tokens"
    return f"{cost}, {tokens}"


def _executor(plan: Mapping[str, JSON], source: AgentSource) -> Executor:
    if plan["identity"]["run"]["isolation"] == "process":
        from impact_twin.trials.isolation import ProcessExecutor

        return ProcessExecutor(source.spec)
    return ThreadExecutor(source)
