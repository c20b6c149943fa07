"""Foreign reports on disk: written for our commands, and read back as strictly as everything."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import BinaryIO

from impact_twin.canonical import digest, loads_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.foreign import KIND, SCHEMA_VERSION, STATEMENT, notes_of
from impact_twin.proofrun.foreign_figures import summary_of
from impact_twin.reading import standard_input
from impact_twin.report.files import MAX_BYTES
from impact_twin.report.strict_schema import BrokenRuleError, Rule, compile_schema
from impact_twin.resources import data_folder
from impact_twin.text import escape

_FILE = "foreign-report.schema.json"
_HEAD = 200


def foreign_text(report: Mapping[str, JSON]) -> str:
    """Return a foreign report as JSON text, ASCII only; its kind stands first."""
    return json.dumps(report, ensure_ascii=True, allow_nan=False) + "\n"


def take_foreign(source: str, stdin: BinaryIO | None = None) -> tuple[JSON, BinaryIO | None]:
    """Read a foreign report, if a source is one.

    Args:
        source: What a command takes for a REPORT: a run directory, a file, or `-`.
        stdin: What `-` reads; the process's standard input when None.

    Returns:
        The foreign report and None; or None and what `load_report` must read instead of standard
        input, None when the source isn't `-`.

    Raises:
        InputError: it is a foreign report, and is refused.
    """
    if source == "-":
        stream = standard_input() if stdin is None else stdin
        data = stream.read(MAX_BYTES + 1)
        if _is_foreign(data[:_HEAD]):
            return parse_foreign(data, where="standard input"), None
        return None, io.BytesIO(data)
    path = Path(source)
    try:
        if not path.is_file():
            return None, None
        with path.open("rb") as handle:
            head = handle.read(_HEAD)
            if not _is_foreign(head):
                return None, None
            data = head + handle.read(MAX_BYTES + 1 - len(head))
    except (OSError, ValueError):
        return None, None  # load_report says what is wrong
    return parse_foreign(data, where=source), None


def parse_foreign(data: bytes, *, where: str = "") -> JSON:
    """Return the foreign report that bytes hold.

    Raises:
        InputError: they hold none, one that was changed, or one of a newer version.
    """
    report = loads_strict(data, where=where, max_bytes=MAX_BYTES)
    if not isinstance(report, dict) or report.get("kind") != KIND:
        raise InputError(f"its kind is not {KIND!r}", where=where, mend="Import the file again.")
    version = report.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InputError(
            f"its schema version {version} is newer than {SCHEMA_VERSION}",
            where=where,
            mend="Upgrade impact-twin.",
        )
    try:
        _rule()(report)
    except BrokenRuleError as err:
        field = escape(".".join(err.path))[:200] or "the report"
        raise _changed(f"{field} breaks its schema: {escape(err.message)}", where) from None
    _check_parts(report, where)
    return report


def _check_parts(report: Mapping[str, JSON], where: str) -> None:
    names = [item["pair"] for item in report["pairs"]]
    places = [(row["trial"], row["pair"]) for row in report["pair_trials"]]
    # The count first: a hostile number of trials must not be listed.
    if len(places) != report["trials"] * len(names) or places != [
        (trial, name) for trial in range(1, report["trials"] + 1) for name in names
    ]:
        raise _changed("pair_trials are not the trials of its pairs in their order", where)
    if len(set(names)) != len(names):
        raise _changed("a pair is named twice", where)
    for name, trace in report["traces"].items():
        if digest(trace) != name:
            raise _changed(f"a trace is not what its digest {name[:19]} names", where)
    for row in report["pair_trials"]:
        if any(row[twin]["trace"] not in report["traces"] for twin in ("clean", "poisoned")):
            raise _changed("a trace is missing", where)
    if summary_of(report) != report["summary"]:
        raise _changed("its summary does not follow from its pair_trials", where)
    if report["statement"] != STATEMENT or list(notes_of(report)) != report["notes"]:
        raise _changed("its statement and notes are not what belongs to it", where)


@cache
def _rule() -> Rule:
    path = data_folder("schemas") / "1" / _FILE
    return compile_schema({_FILE: json.loads(path.read_text(encoding="utf-8"))}, _FILE)


def _is_foreign(head: bytes) -> bool:
    return KIND.encode() in head


def _changed(what: str, where: str) -> InputError:
    return InputError(what, where=where, mend="It was changed after impact-twin wrote it.")
