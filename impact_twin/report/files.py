"""Reports on disk: written whole or not at all, and read from a run, a file or standard input."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from impact_twin.canonical import loads_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.procurement.suite import load_suite, suite_by_digest
from impact_twin.reading import read_file, standard_input
from impact_twin.report.gates import Gate, gates_of
from impact_twin.report.migrate import migrate
from impact_twin.report.model import KIND, SCHEMA_VERSION, build_report
from impact_twin.report.schema import check_references, check_schema

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

REPORT_FILE = "report.json"
"""The report that `repeat` leaves in a run directory."""

MAX_BYTES = 512 * 1024 * 1024
"""Largest report that is read, in bytes."""

_LISTED = ("pair_trials", "traces", "texts")


def report_lines(report: Mapping[str, JSON]) -> Iterator[str]:
    """Yield a report as JSON text, line by line with the line ends.

    ASCII only. One line a pair-trial, trace and text, so that two reports can be compared line by
    line and none is built whole in memory a second time.
    """
    last = len(report) - 1
    yield "{\n"
    for place, (name, value) in enumerate(report.items()):
        comma = "" if place == last else ","
        if name not in _LISTED or not value:
            yield f"{_json(name)}:{_json(value)}{comma}\n"
        elif isinstance(value, list):
            yield f"{_json(name)}:[\n"
            yield from _joined(_json(item) for item in value)
            yield f"]{comma}\n"
        else:
            yield f"{_json(name)}:{{\n"
            yield from _joined(f"{_json(key)}:{_json(item)}" for key, item in value.items())
            yield f"}}{comma}\n"
    yield "}\n"


def write_report(report: Mapping[str, JSON], path: Path, *, force: bool = False) -> None:
    """Write a report, whole or not at all.

    Args:
        report: The report.
        path: The file.
        force: Whether a file that exists is replaced.

    Raises:
        InputError: the file exists and `force` is false, or it can't be written.
    """
    if path.exists() and not force:
        raise InputError("exists", where=str(path), mend="Name another file, or add --force.")
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as stream:
            stream.writelines(report_lines(report))
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except OSError as err:
        raise InputError(f"can't be written: {err.strerror}", where=str(path)) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                Path(temporary).unlink(missing_ok=True)


def load_report(
    source: str | Path,
    *,
    suite_folder: Path | None = None,
    gates: Iterable[Gate] = (),
    stdin: BinaryIO | None = None,
) -> dict[str, JSON]:
    """Read a report.

    Args:
        source: A run directory, a report file, or `-` for standard input.
        suite_folder: The suite of a run directory, when it is no bundled one.
        gates: Gates to evaluate for a run directory; without any, those of its report.json. A
            stored report keeps its own.
        stdin: What `-` reads; the process's standard input when None.

    Returns:
        A report of the current schema that keeps to it, with its parts fitting each other. Nothing
        in it is verified beyond that.

    Raises:
        InputError: there is no report there, or it is refused.
    """
    if str(source) == "-":
        stream = standard_input() if stdin is None else stdin
        return parse_report(stream.read(MAX_BYTES + 1), where="standard input")
    path = Path(source)
    if path.is_dir():
        return _from_run(path, suite_folder, gates)
    try:
        data = read_file(path, MAX_BYTES)
    except InputError as err:
        mend = "Name a run directory or a report file."
        raise InputError(err.what, where=err.where, mend=mend) from None
    return parse_report(data, where=str(path))


def parse_report(data: bytes, *, where: str = "") -> dict[str, JSON]:
    """Return the report that bytes hold; see `load_report`.

    Raises:
        InputError: the bytes hold no report, one that was cut short or changed, or one of a newer
            version.
    """
    if not data.strip():
        raise InputError("is empty", where=where, mend="Give a report of impact-twin.")
    try:
        report = loads_strict(data, where=where, max_bytes=MAX_BYTES)
    except InputError as err:
        raise InputError(err.what, where=err.where, mend=_mend(data)) from None
    if not isinstance(report, dict) or report.get("kind") != KIND:
        raise InputError(
            f"is no report of impact-twin: its kind is not {KIND!r}",
            where=where,
            mend="Name a run directory or the file that --json wrote.",
        )
    report = migrate(report, current=SCHEMA_VERSION, where=where)
    check_schema(report, where=where)
    check_references(report, where=where)
    return report


def suite_of_plan(plan: Mapping[str, JSON], folder: Path | None = None) -> Suite:
    """Return the suite that a plan names.

    Args:
        plan: The content of a plan.json.
        folder: The suite's folder; None looks among the bundled ones.

    Raises:
        InputError: no bundled suite has its digest, or the folder holds another suite.
    """
    named = plan["identity"]["suite"]
    found = suite_by_digest(named["digest"]) if folder is None else load_suite(folder)
    if found is None:
        raise InputError(
            f"its suite {named['id']} ({named['digest']}) is not one of this impact-twin's",
            mend="Name its folder with --suite, or use the impact-twin that ran it.",
        )
    if found.digest != named["digest"]:
        raise InputError(
            f"{folder} holds a suite of another digest than the run ({named['digest']})",
            where="--suite",
            mend="Name the folder as it was when the run was made.",
        )
    return found


def _from_run(path: Path, folder: Path | None, gates: Iterable[Gate]) -> dict[str, JSON]:
    from impact_twin.trials.journal import load_run

    run = load_run(path)
    chosen = list(gates) or gates_beside(path)
    return build_report(run, suite_of_plan(run.plan, folder), gates=chosen)


def gates_beside(path: Path) -> list[Gate]:
    """The gates of the report that the run itself wrote; none when there is no such report."""
    try:
        stored = load_report(path / REPORT_FILE)
        return gates_of(stored["summary"]["gates"])
    except InputError:
        return []


def _mend(data: bytes) -> str:
    if KIND.encode() in data[:200]:
        return "The report was cut short or changed: copy or write it again."
    return "Give a report of impact-twin."


def _joined(items: Iterable[str]) -> Iterator[str]:
    held: str | None = None
    for item in items:
        if held is not None:
            yield f"{held},\n"
        held = item
    if held is not None:
        yield f"{held}\n"


def _json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
