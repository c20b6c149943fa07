"""Hands out cases in plan order, and holds them back at barriers and when the run stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

from impact_twin.trials.records import CaseKey

TrialRule = Callable[[int], str]


class Assignment(NamedTuple):
    """A case to run, and its start order within the run."""

    key: CaseKey
    position: int


class Schedule:
    """The cases that are left, trial by trial. Safe to use from several threads.

    Args:
        cases: What is left, in plan order.
        first_position: Start order of the first one.
        last_trial: The trial before the first one, if `after_trial` is still to be asked about it.
        may_start: Returns why no further case may start, or an empty string.
        after_trial: With it, no case of the next trial starts before every case of a trial is
            done; it then gets the trial's number and returns why the run is complete, or an empty
            string. Called by one thread at a time.
    """

    def __init__(
        self,
        cases: Iterator[CaseKey],
        first_position: int,
        *,
        last_trial: int = 0,
        may_start: Callable[[], str],
        after_trial: TrialRule | None = None,
    ) -> None:
        self._cases = cases
        self._position = first_position
        self._may_start = may_start
        self._after_trial = after_trial
        self._changed = threading.Condition()
        self._next = next(cases, None)
        self._trial = last_trial or (self._next.trial if self._next else 0)
        self._asked = self._trial == 0
        self._running = 0
        self._stopped = False
        self.reason = ""

    def take(self) -> Assignment | None:
        """Return the next case, waiting at a barrier if need be; None when none is left."""
        with self._changed:
            while not self._stopped and self._at_barrier():
                if self._running:
                    self._changed.wait()
                else:
                    self._pass_barrier()
            if self._next is None or self._stopped:
                return None
            reason = self._may_start()
            if reason:
                self._halt(reason)
                return None
            assignment = Assignment(self._next, self._position)
            self._position += 1
            self._running += 1
            self._next = next(self._cases, None)
            return assignment

    def done(self) -> None:
        """Say that a case that was taken has ended."""
        with self._changed:
            self._running -= 1
            if self._running == 0:
                self._changed.notify_all()

    def stop(self, reason: str) -> None:
        """Let no further case start; the first reason stays."""
        with self._changed:
            self._halt(reason)

    @property
    def running(self) -> int:
        """Cases that were taken and are not done."""
        return self._running

    def _halt(self, reason: str) -> None:
        self.reason = self.reason or reason
        self._stopped = True
        self._changed.notify_all()

    def _at_barrier(self) -> bool:
        if self._after_trial is None or self._asked:
            return False
        return self._next is None or self._next.trial != self._trial

    def _pass_barrier(self) -> None:
        assert self._after_trial is not None
        complete = self._after_trial(self._trial)
        if self._next is None:
            self._asked = True
        else:
            self._trial = self._next.trial
        if complete:
            self._stopped = True
        self._changed.notify_all()
