"""Progress of a run on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from impact_twin.cli.output import say
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite
    from impact_twin.trials.progress import Progress, ProgressCallback

PLAIN_EVERY_S = 30.0
REDRAW_EVERY_S = 0.1


@contextmanager
def show_progress(suite: Suite, *, quiet: bool) -> Iterator[ProgressCallback | None]:
    """Yield the callback for a run of a suite, or None when nothing shall be shown."""
    stream = sys.stderr
    if quiet or stream is None or stream.closed:
        yield None
        return
    counter = ClassCounter(suite)
    if stream.isatty():
        line = LiveLine(stream, counter)
        try:
            yield line
        finally:
            line.clear()
    else:
        yield PlainLines(stream, counter)


class ClassCounter:
    """Counts outcome classes as pair-trials end; what an earlier session did isn't counted.

    Args:
        suite: The suite that runs.
    """

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self.counts: Counter[str] = Counter()

    def add(self, event: Progress) -> None:
        """Count the pair-trial of a finished case if its other twin has finished too."""
        if event.key is None or event.kind != "finished":
            return
        clean, poisoned = (
            event.run.cases.get(event.key._replace(twin=twin)) for twin in ("clean", "poisoned")
        )
        if clean is not None and poisoned is not None:
            from impact_twin.report.model import judge_records

            self.counts[judge_records(self._suite, event.run, clean, poisoned).outcome] += 1

    def words(self) -> list[str]:
        """Return the classes so far, most frequent first."""
        return [f"{count} {name}" for name, count in self.counts.most_common()]


class LiveLine:
    """One line that is drawn again and again."""

    def __init__(self, stream: TextIO, counter: ClassCounter) -> None:
        self._stream = stream
        self._counter = counter
        self._drawn = -1.0

    def __call__(self, event: Progress) -> None:
        """Draw the line again, at most ten times a second."""
        self._counter.add(event)
        if event.kind == "stopping":
            self.clear()
            say(f"{escape(event.message)}; cases in flight finish first", self._stream)
        elif event.elapsed_s - self._drawn >= REDRAW_EVERY_S or event.kind == "ended":
            self._drawn = event.elapsed_s
            width = shutil.get_terminal_size((80, 24)).columns
            self._write("\r\x1b[2K" + describe(event, self._counter.words())[: width - 1])

    def clear(self) -> None:
        """Remove the line."""
        self._write("\r\x1b[2K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return


class PlainLines:
    """A line now and then."""

    def __init__(self, stream: TextIO, counter: ClassCounter) -> None:
        self._stream = stream
        self._counter = counter
        self._said = 0.0

    def __call__(self, event: Progress) -> None:
        """Say something when it is time to, or when the run stops early."""
        self._counter.add(event)
        if event.kind == "stopping":
            say(f"{escape(event.message)}; cases in flight finish first", self._stream)
        elif event.elapsed_s - self._said >= PLAIN_EVERY_S:
            self._said = event.elapsed_s
            say(describe(event, self._counter.words()), self._stream)


def describe(event: Progress, classes: Sequence[str] = ()) -> str:
    """Return cases done, rate, time left, classes so far, tokens and cost as one line of text."""
    fresh = event.done - event.earlier
    parts = [f"{event.done}/{event.planned} cases"]
    if fresh and event.elapsed_s > 0:
        rate = fresh / event.elapsed_s
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
        parts.append(f"{clock((event.planned - event.done) / rate)} left")
    if event.spent.tokens:
        parts.append(f"{event.spent.tokens:,} tokens")
    if event.spent.cost_usd:
        parts.append(f"${event.spent.cost_usd:.2f}")
    if event.slowed:
        parts.append("slowed by rate limit")
    return ", ".join([*parts, *classes])


def clock(seconds: float) -> str:
    """Return a duration for people.

    >>> clock(4.2), clock(75), clock(7500)
    ('4 s', '1:15', '2:05:00')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
