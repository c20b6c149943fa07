"""Reading a journal back, line by line, and refusing what can't be trusted."""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from impact_twin.canonical import digest_bytes
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON, TWINS
from impact_twin.trials.codec import case_from_json
from impact_twin.trials.plan import plan_digest
from impact_twin.trials.records import CaseKey, CaseRecord, RunData

JOURNAL_FILE = "journal.jsonl"
MAX_LINE_BYTES = 256 * 1024 * 1024
KILLED = "it was killed, or still goes on"

_START = b'{"crc":"'
_MIDDLE = b'","entry":'
_BODY_AT = len(_START) + 8 + len(_MIDDLE)


@dataclass
class Contents:
    """What a journal holds.

    Attributes:
        cases: Finished cases.
        tries: Earlier tries of cases that were interrupted between two tries.
        traces: Trace JSON by digest.
        texts: Tool outputs by digest.
        looks: What the stop rule said, in order.
        notes: Lines for the reader.
        stopped: Why the run stopped early; empty when it did not.
        concurrency: Cases at once, in each session of the run.
        closed: How the last session said that it was over: `stop`, `end`, or nothing.
        size: Bytes of whole lines.
        torn: Bytes of a torn last line behind them.
    """

    cases: dict[CaseKey, CaseRecord] = field(default_factory=dict)
    tries: dict[CaseKey, CaseRecord] = field(default_factory=dict)
    traces: dict[str, Mapping[str, JSON]] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    looks: list[Mapping[str, JSON]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stopped: str = ""
    concurrency: list[int] = field(default_factory=list)
    closed: str = ""
    size: int = 0
    torn: int = 0

    def set_late(self, counts: Mapping[CaseKey, int]) -> None:
        """Put the count of late tool calls into the records."""
        for key, count in counts.items():
            if key in self.cases:
                self.cases[key] = replace(self.cases[key], late_calls=count)

    def complete(self, plan: Mapping[str, JSON]) -> bool:
        """Return whether every planned case is there, or the stop rule has ended the run."""
        if self.looks and self.looks[-1]["stop"] is True:
            return True
        return len(self.cases) == int(plan["trials"]) * len(plan["pairs"]) * 2

    def run_data(self, plan: Mapping[str, JSON], *, killed: bool = False) -> RunData:
        """Return it as `RunData`, not copied; `killed` when nothing says how the run ended."""
        notes = list(self.notes)
        if self.torn:
            notes.append(f"left out a torn last line of {self.torn} bytes")
        return RunData(
            plan=plan,
            cases=self.cases,
            traces=self.traces,
            texts=self.texts,
            stopped=KILLED if killed else self.stopped,
            concurrency=tuple(self.concurrency),
            notes=tuple(notes),
            looks=tuple(self.looks),
        )


def encode_line(body: bytes) -> bytes:
    """Return an entry's ASCII JSON as a line with its CRC-32."""
    return b"%s%08x%s%s}\n" % (_START, zlib.crc32(body), _MIDDLE, body)


def read_journal(directory: Path, plan: Mapping[str, JSON]) -> Contents:
    """Read the journal of a run.

    A last line that is torn is left out and counted: its case was never acknowledged. The same line
    twice counts once.

    Args:
        directory: The run directory.
        plan: Its plan.

    Raises:
        InputError: there is no journal; a line is damaged; the journal is of another plan; a case
            isn't in the plan, or occurs twice with different content.
    """
    path = directory / JOURNAL_FILE
    contents = Contents()
    reader = _Reader(path, plan, contents)
    try:
        with path.open("rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise InputError("is not a regular file", where=str(path))
            for number, (raw, last) in enumerate(_lines(stream), 1):
                entry = _decode(raw)
                if entry is None:
                    if last:
                        contents.torn = len(raw)
                        break
                    raise _damaged(path, number, "its check sum is wrong")
                reader.take(number, entry)
                contents.size += len(raw)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    return contents


class _Reader:
    """Puts entries into `Contents`, each kind by its own method."""

    def __init__(self, path: Path, plan: Mapping[str, JSON], contents: Contents) -> None:
        self._path = path
        self._digest = plan_digest(plan)
        self._pairs = frozenset(plan["pairs"])
        self._trials = plan["trials"]
        self._into = contents
        self._first_seen: dict[CaseKey, int] = {}
        self._kinds: dict[str, Callable[[int, Mapping[str, JSON]], None]] = {
            "case": self._case,
            "tries": self._tries,
            "late": self._late,
            "look": self._look,
            "note": self._note,
            "session": self._session,
            "stop": self._stop,
            "end": self._end,
        }

    def take(self, number: int, entry: Mapping[str, JSON]) -> None:
        try:
            kind = entry["type"]
            if (kind == "header") != (number == 1):
                raise _damaged(self._path, number, "the header isn't its first line")
            if kind == "header":
                self._header(entry)
            else:
                self._kinds[kind](number, entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise _damaged(self._path, number, "it isn't an entry of a journal") from None

    def _header(self, entry: Mapping[str, JSON]) -> None:
        if entry["plan"] != self._digest:
            raise InputError(
                "is the journal of another plan than the plan.json beside it",
                where=str(self._path),
                mend="Put the plan.json back that the run was started with.",
            )

    def _case(self, number: int, entry: Mapping[str, JSON]) -> None:
        record = self._record(number, entry)
        known = self._into.cases.get(record.key)
        if known is not None and known != record:
            key = record.key
            raise InputError(
                f"lines {self._first_seen[key]} and {number} both hold the {key.twin} case of "
                f"{key.pair}, trial {key.trial}, and differ",
                where=str(self._path),
                mend="Two runs were mixed: none of them can be trusted. Start again.",
            )
        self._into.cases[record.key] = record
        self._into.tries.pop(record.key, None)
        self._first_seen.setdefault(record.key, number)

    def _tries(self, number: int, entry: Mapping[str, JSON]) -> None:
        record = self._record(number, entry)
        self._into.tries[record.key] = record

    def _record(self, number: int, entry: Mapping[str, JSON]) -> CaseRecord:
        record = case_from_json(entry["case"])
        pair, trial, twin = record.key
        if pair not in self._pairs or twin not in TWINS or not 1 <= trial <= self._trials:
            raise InputError(
                f"line {number} holds a case that isn't in the plan",
                where=str(self._path),
                mend="Put the plan.json back that the run was started with.",
            )
        for key, text in entry["texts"].items():
            if digest_bytes(text.encode("utf-8")) != key:
                raise _damaged(self._path, number, "a text isn't what its digest says")
        self._into.traces.update(entry["traces"])
        self._into.texts.update(entry["texts"])
        if any(attempt.trace not in self._into.traces for attempt in record.attempts):
            raise _damaged(self._path, number, "a trace is missing")
        return record

    def _late(self, number: int, entry: Mapping[str, JSON]) -> None:
        del number
        self._into.set_late({CaseKey(*row[:3]): row[3] for row in entry["counts"]})

    def _look(self, number: int, entry: Mapping[str, JSON]) -> None:
        del number
        self._into.looks.append({key: entry[key] for key in ("trial", "stop", "reason")})

    def _note(self, number: int, entry: Mapping[str, JSON]) -> None:
        del number
        if entry["line"] not in self._into.notes:
            self._into.notes.append(entry["line"])

    def _session(self, number: int, entry: Mapping[str, JSON]) -> None:
        del number
        self._into.concurrency.append(int(entry["concurrency"]))
        self._into.stopped = self._into.closed = ""

    def _stop(self, number: int, entry: Mapping[str, JSON]) -> None:
        del number
        self._into.stopped = entry["reason"]
        self._into.closed = "stop"

    def _end(self, number: int, entry: Mapping[str, JSON]) -> None:
        del number, entry
        self._into.stopped = ""
        self._into.closed = "end"


def _lines(stream: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield each line, and whether it is the last."""
    held = stream.readline(MAX_LINE_BYTES)
    while held:
        following = stream.readline(MAX_LINE_BYTES)
        yield held, not following
        held = following


def _decode(raw: bytes) -> Mapping[str, JSON] | None:
    """Return a line's entry; None when its frame or check sum is wrong."""
    if not (raw.startswith(_START) and raw.endswith(b"}\n")):
        return None
    body = raw[_BODY_AT:-2]
    if raw[len(_START) : _BODY_AT] != b"%08x%s" % (zlib.crc32(body), _MIDDLE):
        return None
    try:
        entry = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _damaged(path: Path, number: int, why: str) -> InputError:
    return InputError(
        f"line {number} is damaged: {why}",
        where=str(path),
        mend="The run can't be trusted as it stands: put an undamaged copy back, or start again.",
    )
