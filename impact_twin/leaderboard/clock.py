"""Stops the clock that AgentDojo's tools read, so that two runs see the same time.

Measured on agentdojo 0.1.35: of the workspace's tools, those that send an email (``send_email``
and the calendar tools that write to participants) and those that write a file (``create_file``,
``append_to_file``) stamp what they make with the wall clock; the banking tools read no clock.
"""

from __future__ import annotations

import datetime
import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

CLOCK_READERS = (
    "agentdojo.default_suites.v1.tools.cloud_drive_client",
    "agentdojo.default_suites.v1.tools.email_client",
)
"""The modules whose functions call ``datetime.datetime.now()`` when a tool runs."""

_lock = threading.Lock()
_frozen_at: list[datetime.datetime] = []


@contextmanager
def frozen(instant: datetime.datetime) -> Iterator[None]:
    """Make AgentDojo's clock-reading tools see one instant while the block runs.

    The modules' name ``datetime`` is replaced for the whole process and put back at the end.
    Blocks may overlap when they ask for the same instant.

    Raises:
        RuntimeError: A block with another instant is open.
    """
    modules = [importlib.import_module(name) for name in CLOCK_READERS]
    with _lock:
        if _frozen_at and _frozen_at[0] != instant:
            raise RuntimeError("the clock is frozen at another instant already")
        if not _frozen_at:
            for module in modules:
                module.__dict__["datetime"] = _stopped(instant)
        _frozen_at.append(instant)
    try:
        yield
    finally:
        with _lock:
            _frozen_at.pop()
            if not _frozen_at:
                for module in modules:
                    module.__dict__["datetime"] = datetime


def _stopped(instant: datetime.datetime) -> ModuleType:
    class StoppedDatetime(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> datetime.datetime:  # type: ignore[override]
            return instant if tz is None else instant.replace(tzinfo=tz)

    copy = ModuleType("datetime")
    copy.__dict__.update(vars(datetime))
    copy.__dict__["datetime"] = StoppedDatetime
    return copy
