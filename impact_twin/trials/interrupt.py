"""Signals: the first one lets cases in flight finish, the second one stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupt:
    """Turns SIGINT and SIGTERM into an orderly stop.

    Use it as a context manager in the main thread around `impact_twin.trials.runner.run`; the
    handlers that were there before come back at its end. Without `with` it is a plain switch that
    `request` sets, as a test or another front end may do.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signum: int | None = None
        self.count = 0
        self._wake: Callable[[], None] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupt:
        if threading.current_thread() is threading.main_thread():
            for signum in self.SIGNALS:
                self._before[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)
        self._before.clear()

    def request(self, signum: int = signal.SIGINT) -> None:
        """Act as if the signal had come."""
        self.count += 1
        if self.signum is None:
            self.signum = signum
        if self._wake is not None:
            self._wake()

    def on_change(self, wake: Callable[[], None] | None) -> None:
        """Name what is called, from a signal handler, after each signal: it must be reentrant."""
        self._wake = wake

    @property
    def draining(self) -> bool:
        """Whether no further case may start."""
        return self.count > 0

    @property
    def aborted(self) -> bool:
        """Whether cases in flight are given up."""
        return self.count > 1

    @property
    def name(self) -> str:
        """The first signal's name; empty without a signal."""
        return "" if self.signum is None else signal.Signals(self.signum).name

    @property
    def exit_code(self) -> int | None:
        """130 after SIGINT, 143 after SIGTERM, None without a signal."""
        return None if self.signum is None else 128 + self.signum

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        del frame
        self.request(signum)
