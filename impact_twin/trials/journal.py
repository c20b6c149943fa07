"""The run directory: plan.json, and a journal with one durable record a case.

A line of journal.jsonl is ``{"crc":"<CRC-32 of entry>","entry":{...}}``. Entries: `header` (the
plan's digest), `case` (with the traces and texts that no earlier line holds), `tries` (of a case
that was interrupted between two tries), `late` (tool calls after a case's end), `look` (what the
stop rule said), `note`, `session` (the run begins, or goes on), `stop` and `end`. Reasons:
docs/adr/0002-journal.md.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from impact_twin.canonical import canonical_bytes
from impact_twin.errors import InputError, StoppedError
from impact_twin.procurement.model import JSON
from impact_twin.trials.codec import case_to_json, dumps
from impact_twin.trials.lock import FileLock
from impact_twin.trials.plan import PLAN_FILE, plan_digest, read_plan
from impact_twin.trials.readback import JOURNAL_FILE, Contents, encode_line, read_journal
from impact_twin.trials.records import CaseKey, CaseRecord, RunData

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def check_directory(directory: Path, *, force: bool = False) -> None:
    """Refuse a folder that a new run can't be written to; writes nothing.

    Args:
        directory: Where the run shall go.
        force: Whether an earlier run there may be overwritten.

    Raises:
        InputError: it is a file, holds something, or can't be written to.
    """
    if directory.exists() and not directory.is_dir():
        raise InputError("is a file", where=str(directory), mend="Name a folder for the run.")
    if directory.is_dir():
        _check_content(directory, force)
        folder = directory
    else:
        folder = next(parent for parent in directory.absolute().parents if parent.exists())
        if not folder.is_dir():
            raise InputError(f"{folder} is a file", where=str(directory))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder} can't be written to", where=str(directory))


def create_run(directory: Path, plan: Mapping[str, JSON], *, force: bool = False) -> Journal:
    """Make a run directory, with its plan on disk, and lock it.

    Args:
        directory: Made with its parents when it does not exist.
        plan: The content of plan.json.
        force: Whether an earlier run there is overwritten.

    Raises:
        InputError: the folder can't be used, or another run works in it.
    """
    lock = _claim(directory, plan, force=force)
    try:
        return Journal(directory, plan, lock, Contents())
    except BaseException:
        lock.release()
        raise


def write_plan(directory: Path, plan: Mapping[str, JSON], *, force: bool = False) -> None:
    """Make a run directory that holds a plan and an empty journal: a run that has not begun.

    Raises:
        InputError: the folder can't be used, or another run works in it.
    """
    _claim(directory, plan, force=force).release()


def _claim(directory: Path, plan: Mapping[str, JSON], *, force: bool) -> FileLock:
    """Make and lock a run directory, with an empty journal and its plan on disk."""
    check_directory(directory, force=force)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = _lock_journal(directory, os.O_CREAT)
    except OSError as error:
        raise InputError(f"can't be written: {error.strerror}", where=str(directory)) from None
    try:
        if not force and os.fstat(lock.fd).st_size:
            raise InputError("another run has just begun there", where=str(directory))
        os.ftruncate(lock.fd, 0)
        _write_plan(directory, plan)
    except OSError as error:
        lock.release()
        raise InputError(f"can't be written: {error.strerror}", where=str(directory)) from None
    except BaseException:
        lock.release()
        raise
    return lock


def open_journal(directory: Path) -> Journal:
    """Lock an earlier run's directory to go on with it; a torn last line is cut off.

    Raises:
        InputError: it is no run directory, another run works in it, or its journal is damaged.
    """
    plan = read_plan(directory)
    try:
        lock = _lock_journal(directory, os.O_CREAT)
    except OSError as error:
        raise InputError(f"can't be opened: {error.strerror}", where=str(directory)) from None
    try:
        contents = read_journal(directory, plan)
        if contents.torn:
            os.ftruncate(lock.fd, contents.size)
            os.fsync(lock.fd)
        return Journal(directory, plan, lock, contents)
    except BaseException:
        lock.release()
        raise


def load_run(directory: Path) -> RunData:
    """Read a run directory, finished or not; a run that still goes on may be read.

    Raises:
        InputError: it is no run directory, its journal is damaged or of another plan, or a case
            occurs twice with different content.
    """
    plan = read_plan(directory)
    contents = read_journal(directory, plan)
    killed = not contents.closed and not contents.complete(plan)
    return contents.run_data(plan, killed=killed)


class Journal:
    """A locked run directory that is being written.

    Safe to use from several threads: lines are written one after the other and flushed to the disk
    together when several wait for it. When a write fails, what was on disk before stays readable
    and every later write fails too.

    Attributes:
        directory: The run directory.
        plan: The content of its plan.json.
        contents: What is on disk already.
    """

    def __init__(
        self, directory: Path, plan: Mapping[str, JSON], lock: FileLock, contents: Contents
    ) -> None:
        self.directory = directory
        self.plan = plan
        self.contents = contents
        self._lock = lock
        self._fd = lock.fd
        self._writing = threading.Lock()
        self._flushing = threading.Lock()
        self._size = os.lseek(self._fd, 0, os.SEEK_END)
        self._flushed = self._size
        self._failure: StoppedError | None = None
        if self._size == 0:
            self._append({"type": "header", "plan": plan_digest(plan), "schema_version": 1})
            _flush_folder(directory)
        if contents.torn:
            self.note(f"cut off a torn last line of {contents.torn} bytes")
            contents.torn = 0

    def add_case(
        self,
        record: CaseRecord,
        traces: Mapping[str, Mapping[str, JSON]],
        texts: Mapping[str, str],
    ) -> None:
        """Write a finished case and return when it is on the disk.

        Args:
            record: The case.
            traces: Traces of its tries, by digest.
            texts: Tool outputs of those traces, by digest.

        Raises:
            StoppedError: the disk is full or fails; the case isn't recorded.
        """
        self._add("case", case_to_json(record), traces, texts)
        self.contents.cases[record.key] = record
        self.contents.tries.pop(record.key, None)

    def add_tries(
        self,
        record: CaseRecord,
        traces: Mapping[str, Mapping[str, JSON]],
        texts: Mapping[str, str],
    ) -> None:
        """Write the tries of a case that waited for its next one when the run stopped.

        A resumed run goes on from there, so that no try is lost or made twice.

        Raises:
            StoppedError: the disk is full or fails.
        """
        self._add("tries", case_to_json(record), traces, texts)
        self.contents.tries[record.key] = record

    def add_late(self, counts: Mapping[CaseKey, int]) -> None:
        """Write how many tool calls came after the ends of cases, in all."""
        if counts:
            rows = [[*key, count] for key, count in sorted(counts.items())]
            self._append({"type": "late", "counts": rows})
            self.contents.set_late(counts)

    def add_look(self, trial: int, stop: bool, reason: str) -> None:
        """Write what the stop rule said after a trial."""
        look: dict[str, JSON] = {"trial": trial, "stop": stop, "reason": reason}
        self._append({"type": "look", **look})
        self.contents.looks.append(look)

    def begin(self, concurrency: int) -> None:
        """Write that the run begins, or goes on after an interruption.

        Args:
            concurrency: Cases at once in this session.
        """
        self._append({"type": "session", "concurrency": concurrency, "at": int(time.time())})
        self.contents.concurrency.append(concurrency)
        self.contents.stopped = self.contents.closed = ""

    def note(self, line: str) -> None:
        """Write a line for the run's reader, once."""
        if line not in self.contents.notes:
            self._append({"type": "note", "line": line})
            self.contents.notes.append(line)

    def stop(self, reason: str) -> None:
        """Write why the run stops before its plan ends."""
        self.contents.stopped, self.contents.closed = reason, "stop"
        self._append({"type": "stop", "reason": reason, "at": int(time.time())})

    def end(self) -> None:
        """Write that every planned case is recorded."""
        self._append({"type": "end", "at": int(time.time())})
        self.contents.stopped, self.contents.closed = "", "end"

    def view(self) -> RunData:
        """Return the run so far without copying: it grows as the run goes on."""
        return RunData(
            plan=self.plan,
            cases=MappingProxyType(self.contents.cases),
            traces=MappingProxyType(self.contents.traces),
            texts=MappingProxyType(self.contents.texts),
            concurrency=tuple(self.contents.concurrency),
        )

    def run_data(self) -> RunData:
        """Return the run as `load_run` would read it now; not copied."""
        return self.contents.run_data(self.plan)

    def close(self) -> None:
        """Give up the lock; every later write fails."""
        with self._writing, self._flushing:
            if self._failure is None:
                self._failure = StoppedError("the run is over", where=str(self.directory))
            self._lock.release()

    def _add(
        self,
        kind: str,
        case: Mapping[str, JSON],
        traces: Mapping[str, Mapping[str, JSON]],
        texts: Mapping[str, str],
    ) -> None:
        known = self.contents
        with self._writing:
            new_traces = {key: traces[key] for key in traces if key not in known.traces}
            new_texts = {key: texts[key] for key in texts if key not in known.texts}
            end = self._write(
                {"type": kind, "case": case, "traces": new_traces, "texts": new_texts}
            )
            known.traces.update(new_traces)
            known.texts.update(new_texts)
        self._flush(end)

    def _append(self, entry: Mapping[str, JSON]) -> None:
        with self._writing:
            end = self._write(entry)
        self._flush(end)

    def _write(self, entry: Mapping[str, JSON]) -> int:
        if self._failure is not None:
            raise self._failure
        data = encode_line(dumps(entry).encode("ascii"))
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError as error:
            # Without its tail the line is as if it had never been begun.
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise self._fail(error) from None
        self._size += len(data)
        return self._size

    def _flush(self, end: int) -> None:
        with self._flushing:
            if self._flushed >= end:
                return
            if self._failure is not None:
                raise self._failure
            written = self._size
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise self._fail(error) from None
            self._flushed = written

    def _fail(self, error: OSError) -> StoppedError:
        full = error.errno in _DISK_FULL
        self._failure = StoppedError(
            "the disk is full" if full else f"the journal can't be written: {error.strerror}",
            where=str(self.directory),
            mend="What was recorded is kept. Make room, then go on with --resume."
            if full
            else "What was recorded is kept. Mend the disk, then go on with --resume.",
        )
        return self._failure


def _check_content(directory: Path, force: bool) -> None:
    try:
        content = {path.name for path in directory.iterdir()}
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(directory)) from None
    if not content or (force and PLAN_FILE in content):
        return
    if PLAN_FILE not in content:
        # A run that was killed before its plan was written leaves an empty journal.
        if content == {JOURNAL_FILE} and not (directory / JOURNAL_FILE).stat().st_size:
            return
        raise InputError("is not empty and no run", where=str(directory), mend="Name another.")
    raise InputError(
        "holds a run already",
        where=str(directory),
        mend="Go on with it by --resume, name another folder, or overwrite it with --force.",
    )


def _lock_journal(directory: Path, flags: int) -> FileLock:
    path = directory / JOURNAL_FILE
    fd = os.open(path, os.O_RDWR | os.O_APPEND | flags | getattr(os, "O_BINARY", 0), 0o644)
    try:
        return FileLock(fd)
    except BlockingIOError:
        os.close(fd)
        raise InputError(
            "another run works in this folder",
            where=str(directory),
            mend="Wait for it, or name another folder.",
        ) from None
    except OSError:
        os.close(fd)
        raise


def _write_plan(directory: Path, plan: Mapping[str, JSON]) -> None:
    temporary = directory / f".{PLAN_FILE}.new"
    with temporary.open("wb") as stream:
        # Canonical, so that the file's own SHA-256 is the plan's digest, which may be attested.
        stream.write(canonical_bytes(plan))
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(directory / PLAN_FILE)
    _flush_folder(directory)


def _flush_folder(directory: Path) -> None:
    if os.name != "posix":
        return
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
