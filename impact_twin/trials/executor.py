"""Where agents run: in daemon threads of this process."""

from __future__ import annotations

import itertools
import threading
from typing import Protocol

from impact_twin.agents.protocol import AgentSource, CaseOutcome, CaseRequest
from impact_twin.trials.live import LiveTry


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
    """One daemon thread a try: a hung agent is left behind and never keeps the process alive.

    Args:
        source: Makes and calls the agents.
    """

    def __init__(self, source: AgentSource) -> None:
        self._source = source
        self._serial = itertools.count(1)

    def execute(self, request: CaseRequest, live: LiveTry) -> None:
        """See `Executor`."""
        thread = threading.Thread(
            target=self._run,
            args=(request, live),
            name=f"agent-{next(self._serial)}",
            daemon=True,
        )
        thread.start()
        live.wait(request.deadline_s)

    def close(self) -> None:
        """Threads can't be stopped; nothing to do."""

    def _run(self, request: CaseRequest, live: LiveTry) -> None:
        try:
            outcome: object = self._source.run_case(request)
        except BaseException as error:  # a source promises to raise nothing
            outcome = CaseOutcome(
                "agent_error", error_kind="exception", message=type(error).__name__
            )
        if not isinstance(outcome, CaseOutcome):
            kind = type(outcome).__name__
            outcome = CaseOutcome("agent_error", error_kind="bad_outcome", message=kind)
        live.finish(outcome)
