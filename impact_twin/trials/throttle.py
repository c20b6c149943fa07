"""Slows all cases of a run down together when the provider asks for it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

LONGEST_PAUSE_S = 120.0
FIRST_SPACING_S = 0.05
LARGEST_SPACING_S = 2.0
SMALLEST_SPACING_S = 0.005
_RELIEF = 0.9


class Throttle:
    """A pause that all cases share, and a spacing of requests after it.

    When a provider limits the rate, no case sends a request until the pause is over; then requests
    leave one after the other, some way apart, instead of all at once. That spacing doubles with
    each rate limit and shrinks with each request that went well.

    Args:
        clock: Seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next = -math.inf
        self._spacing = 0.0
        self._slowed_at = -math.inf

    def slow_down(self, seconds: float) -> None:
        """Let no request leave for so many seconds, at most `LONGEST_PAUSE_S`."""
        if not math.isfinite(seconds):
            return
        now = self._clock()
        pause = min(max(seconds, 0.0), LONGEST_PAUSE_S)
        with self._lock:
            # Requests that left together are limited together: that is one reason, not many.
            if now - self._slowed_at > self._spacing:
                self._spacing = min(LARGEST_SPACING_S, max(FIRST_SPACING_S, 2 * self._spacing))
            self._slowed_at = now
            self._next = max(self._next, now + pause)

    def went_well(self) -> None:
        """Shrink the spacing: a request got its answer."""
        if self._spacing == 0.0:
            return
        with self._lock:
            spacing = self._spacing * _RELIEF
            self._spacing = spacing if spacing >= SMALLEST_SPACING_S else 0.0

    def turn(self) -> float:
        """Take the next turn and return the seconds until it, >= 0."""
        if self._spacing == 0.0:
            return 0.0
        with self._lock:
            now = self._clock()
            at = max(now, self._next)
            self._next = at + self._spacing
            return at - now

    @property
    def slowed(self) -> bool:
        """Whether requests are held back now."""
        return self._spacing > 0.0
