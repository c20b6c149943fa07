"""A run's directory: what the run is, and one durable line for each finished run of a pair.

    run.json        the identity and the plan, written before the first model call
    records.jsonl   one line a finished run: {"crc": ..., "record": {...}}, fsync'd
    traces.jsonl    each different trace once, by digest, in the same form

A line counts once it is whole and its checksum holds. A torn last line, as a killed process leaves
it, is cut off when the run goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from impact_twin.canonical import digest, loads_strict, read_strict
from impact_twin.errors import InputError
from impact_twin.leaderboard import schema
from impact_twin.leaderboard.plan import SUBSET, Key, Plan, plan_from_json
from impact_twin.leaderboard.protocol import BENIGN, Protocol, parse_protocol
from impact_twin.leaderboard.records import Record, record_from_json

_RUN, _RECORDS, _TRACES, _LOCK = "run.json", "records.jsonl", "traces.jsonl", "lock"
_MAX_LINE = 16 * 1024 * 1024
_SAME = (
    ("model id", ("model", "id")),
    ("address", ("model", "api_base")),
    ("upstream providers", ("model", "upstreams")),
    ("protocol digest", ("protocol_digest",)),
    ("repeat count", ("plan", "repeats")),
    ("attack set", ("plan", "attacks")),
    ("coverage mode", ("plan", "coverage")),
    ("tasks", ("plan", "suites")),
    ("dspy version", ("versions", "dspy")),
    ("agentdojo version", ("versions", "agentdojo")),
    ("stimulus digest", ("stimulus_digest",)),
    ("scoring rules", ("rules",)),
)


@dataclass(frozen=True)
class StoredRun:
    """A run's directory, read: its identity, protocol, plan and records by key."""

    path: Path
    identity: dict[str, Any]
    protocol: Protocol
    plan: Plan
    records: dict[Key, Record]


class RunStore:
    """Appends to a run's directory; holds its lock while open.

    Args:
        directory: The run's directory; made if it isn't there.
        identity: The content of ``run.json``.
        force: Whether to discard a stored run that is another one.

    Raises:
        InputError: The directory holds a run with another identity, or something else, or another
            process writes there.
    """

    def __init__(self, directory: Path, identity: dict[str, Any], *, force: bool = False) -> None:
        self.directory = directory
        schema.check(identity, "run", where=str(directory / _RUN))
        check_directory(directory)
        self._mutex = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(directory / _LOCK)
        except OSError as error:
            raise _unusable(directory, error) from None
        try:
            stored = _stored_identity(directory)
            different = [] if stored is None else differences(stored, identity)
            if different and not force:
                raise InputError(
                    f"the stored run has another {', '.join(different)}",
                    where=str(directory),
                    mend="Results of different runs don't mix: name another folder, or discard "
                    "the stored run with --force.",
                )
            if stored is None or different:
                for name in (_RECORDS, _TRACES):
                    (directory / name).unlink(missing_ok=True)
                _write_whole(directory / _RUN, identity)
            self._records = _appendable(directory / _RECORDS)
            self._traces = _appendable(directory / _TRACES)
            self.run = read_run(directory)
            self._known = {entry["digest"] for entry in _lines(directory / _TRACES)}
        except BaseException:
            self._lock.close()
            raise

    def append(self, record: Record, traces: dict[str, Any]) -> None:
        """Store a record, and the traces that it names, before returning."""
        with self._mutex:
            for name, trace in traces.items():
                if name not in self._known:
                    _append(self._traces, {"digest": name, "trace": trace})
                    self._known.add(name)
            _append(self._records, record.to_json())
            self.run.records[record.key] = record

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._mutex:
            self._records.close()
            self._traces.close()
            self._lock.close()


def check_directory(directory: Path) -> None:
    """Refuse a place that can't be a run's directory, before anything is imported or paid for.

    Raises:
        InputError: It is a file, or a folder that holds other things.
    """
    try:
        if directory.exists() and not directory.is_dir():
            raise InputError("not a folder", where=str(directory))
        folder = next(
            place for place in (directory, *directory.absolute().parents) if place.exists()
        )
        if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"{folder} can't be written to", where=str(directory))
        fresh = directory.is_dir() and not (directory / _RUN).exists()
        others = (
            [entry.name for entry in directory.iterdir() if entry.name != _LOCK] if fresh else []
        )
    except OSError as error:
        raise _unusable(directory, error) from None
    if others:
        raise InputError(
            "the folder holds other files and no run",
            where=str(directory),
            mend="Name an empty or a new folder.",
        )


def _unusable(directory: Path, error: OSError) -> InputError:
    return InputError(
        f"can't be used: {error.strerror}", where=str(directory), mend="Name another folder."
    )


def differences(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Name what keeps a stored run's results from being reused for a wanted one."""
    return [name for name, path in _SAME if _at(stored, path) != _at(wanted, path)]


def read_run(directory: Path) -> StoredRun:
    """Read a run's directory as input from others: every line is checked against the schema.

    Raises:
        InputError: It is no run, or a line is damaged, unplanned, or contradicts an earlier one.
    """
    identity = _stored_identity(directory)
    if identity is None:
        raise InputError("no leaderboard run here", where=str(directory))
    where = f"{directory / _RUN}.protocol"
    protocol = parse_protocol(identity["protocol"], where=where)
    if protocol.digest != identity["protocol_digest"]:
        raise InputError("the protocol doesn't have the digest that is claimed", where=where)
    plan = plan_from_json(identity["plan"])
    _check_plan(plan, protocol, where=f"{directory / _RUN}.plan")
    planned = {key for cell in plan.cells(benign=True) for key in plan.keys(cell)}
    records: dict[Key, Record] = {}
    for number, content in enumerate(_lines(directory / _RECORDS), start=1):
        line = f"{directory / _RECORDS}: line {number}"
        schema.check(content, "record", where=line)
        record = record_from_json(content)
        if record.key not in planned:
            raise InputError("a run that the plan doesn't have", where=line)
        if (record.key.attack == BENIGN) != (record.key.injection_task is None):
            raise InputError("an attack without an injection task", where=line)
        earlier = records.get(record.key)
        if earlier is not None and not _continues(earlier, record):
            raise InputError("a finished run is recorded again", where=line)
        records[record.key] = record
    return StoredRun(directory, identity, protocol, plan, records)


def _check_plan(plan: Plan, protocol: Protocol, *, where: str) -> None:
    own = {suite.name: suite for suite in protocol.suites}
    known = [own[suite.name] for suite in plan.suites if suite.name in own]
    fits = (
        len(known) == len(own) == len(plan.suites)
        and plan.repeats == protocol.repeats
        and protocol.headline in plan.attacks
        and set(plan.attacks) <= set(protocol.attacks)
    )
    if fits and plan.coverage == SUBSET:
        fits = list(plan.suites) == known
    elif fits:
        fits = all(
            set(pinned.user_tasks) <= set(suite.user_tasks)
            and set(pinned.injection_tasks) <= set(suite.injection_tasks)
            for suite, pinned in zip(plan.suites, known, strict=True)
        )
    if not fits:
        raise InputError("the plan isn't one of the run's protocol", where=where)


def read_traces(directory: Path) -> dict[str, Any]:
    """Return the stored traces by digest.

    Raises:
        InputError: A trace doesn't have the digest under which it is stored.
    """
    traces: dict[str, Any] = {}
    for content in _lines(directory / _TRACES):
        name, trace = content.get("digest"), content.get("trace")
        if digest(trace) != name:
            raise InputError(f"a trace isn't what its digest says: {name}", where=str(directory))
        traces[name] = trace
    return traces


def _continues(earlier: Record, later: Record) -> bool:
    # Only what stayed unknown may be run again, and the earlier tries stay on record.
    kept = later.attempts[: len(earlier.attempts)] == earlier.attempts
    return earlier.unresolved and kept and earlier.attack_succeeded is not True


def _stored_identity(directory: Path) -> dict[str, Any] | None:
    path = directory / _RUN
    if not path.exists():
        return None
    identity: dict[str, Any] = read_strict(path)
    schema.check(identity, "run", where=str(path))
    return identity


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name]
    return value


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for line, _ in _whole_lines(path):
        yield line


def _whole_lines(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each whole line's content with the offset of its end; stop at a torn last line."""
    if not path.exists():
        return
    if not path.is_file():
        raise InputError("is no regular file", where=str(path))
    with path.open("rb") as handle:
        offset = 0
        for number, raw in enumerate(iter(lambda: handle.readline(_MAX_LINE + 1), b""), start=1):
            offset += len(raw)
            content = _parsed(raw, f"{path}: line {number}")
            if content is None:
                if handle.read(1):
                    raise InputError("damaged", where=f"{path}: line {number}")
                return
            yield content, offset


def _parsed(raw: bytes, where: str) -> dict[str, Any] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        outer = loads_strict(raw, where=where, max_bytes=_MAX_LINE)
    except InputError:
        return None
    if not isinstance(outer, dict) or set(outer) != {"crc", "record"}:
        return None
    if outer["crc"] != _crc(_text(outer["record"])) or not isinstance(outer["record"], dict):
        return None
    record: dict[str, Any] = outer["record"]
    return record


def _appendable(path: Path) -> BinaryIO:
    end = 0
    for _, end in _whole_lines(path):  # noqa: B007 - only the last offset matters
        pass
    handle = path.open("r+b" if path.exists() else "w+b")
    handle.seek(end)
    handle.truncate()
    return handle


def _append(handle: BinaryIO, content: dict[str, Any]) -> None:
    text = _text(content)
    handle.write(f'{{"crc":"{_crc(text)}","record":{text}}}\n'.encode("ascii"))
    handle.flush()
    os.fsync(handle.fileno())


def _text(content: Any) -> str:
    return json.dumps(
        content, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":")
    )


def _crc(text: str) -> str:
    return f"{zlib.crc32(text.encode('ascii')):08x}"


def _write_whole(path: Path, content: dict[str, Any]) -> None:
    temporary = path.with_suffix(".part")
    with temporary.open("w", encoding="ascii", newline="\n") as handle:
        json.dump(content, handle, ensure_ascii=True, allow_nan=False, indent=2)
        handle.write("\n")
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(path)
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _locked(path: Path) -> BinaryIO:
    handle = path.open("ab")
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows has no such lock
        return handle
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        handle.close()
        raise InputError(
            "another process is writing this run",
            where=str(path.parent),
            mend="Wait for it, or name another folder.",
        ) from None
    return handle
