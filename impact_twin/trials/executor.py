"""Where agents run: in daemon threads of this process."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
from collections import deque
from typing import Protocol

from impact_twin.agents.protocol import AgentSource, CaseOutcome, CaseRequest
from impact_twin.trials.live import LiveTry

_Errand = tuple[CaseRequest, LiveTry] | None


class Executor(Protocol):
    """Runs one try somewhere and returns when it has ended or its time is over."""

    def execute(self, request: CaseRequest, live: LiveTry) -> None:
        """Run the agent on `request`, and tell `live` how it ended.

        Returns when the agent ended, used up its tool calls, or after `request.deadline_s`
        seconds, whatever the agent does. Safe to call from several threads.
        """

    def close(self) -> None:
        """Give up whatever still runs. Safe to call twice, and while tries run."""


class ThreadExecutor:
    """Daemon threads: a hung agent is left behind and never keeps the process alive.

    A thread whose agent has ended serves another try: starting one costs more than a short case.
    Context variables start afresh with each try.

    Args:
        source: Makes and calls the agents.
    """

    def __init__(self, source: AgentSource) -> None:
        self._source = source
        self._serial = itertools.count(1)
        # Taken from and put back at the same end: the operations of a deque are atomic.
        self._idle: deque[queue.SimpleQueue[_Errand]] = deque()
        self._closed = False

    def execute(self, request: CaseRequest, live: LiveTry) -> None:
        """See `Executor`."""
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = self._start_thread()
        inbox.put((request, live))
        live.wait(request.deadline_s)

    def close(self) -> None:
        """Let idle threads end; those that still run an agent can't be stopped."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _start_thread(self) -> queue.SimpleQueue[_Errand]:
        inbox: queue.SimpleQueue[_Errand] = queue.SimpleQueue()
        threading.Thread(
            target=self._serve, args=(inbox,), name=f"agent-{next(self._serial)}", daemon=True
        ).start()
        return inbox

    def _serve(self, inbox: queue.SimpleQueue[_Errand]) -> None:
        while (errand := inbox.get()) is not None:
            request, live = errand
            outcome = contextvars.Context().run(self._run, request)
            # First idle, then finished: whoever waits for the outcome finds this thread free.
            self._idle.append(inbox)
            live.finish(outcome)
            del errand, request, live, outcome
            if self._closed:
                return

    def _run(self, request: CaseRequest) -> CaseOutcome:
        try:
            outcome: object = self._source.run_case(request)
        except BaseException as error:  # a source promises to raise nothing
            return CaseOutcome("agent_error", error_kind="exception", message=type(error).__name__)
        if isinstance(outcome, CaseOutcome):
            return outcome
        kind = type(outcome).__name__
        return CaseOutcome("agent_error", error_kind="bad_outcome", message=kind)
