"""Writing results: to a terminal that may not speak Unicode, to a pipe that may close, to files."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from impact_twin.errors import InputError

NARROWEST = 40
WIDEST = 80


def terminal_width() -> int:
    """Return the columns to fill, at most 80."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns))


def wants_color(stream: TextIO | None) -> bool:
    """Return whether to colour: a terminal, and neither NO_COLOR nor a dumb one."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    with contextlib.suppress(ValueError):
        return stream is not None and stream.isatty()
    return False


def say(text: str, stream: TextIO | None = None) -> None:
    """Write text and a newline; what the encoding can't show is written as an escape.

    A stream that is closed or full is no error of the run: the report is on disk already.
    """
    with contextlib.suppress(OSError, ValueError):
        _write(text, sys.stdout if stream is None else stream)


def _write(text: str, stream: TextIO | None) -> None:
    if stream is None:  # the process was started with it closed
        raise ValueError("the stream is closed")
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def check_target(target: str | None, *, force: bool, option: str) -> None:
    """Refuse an output file that can't be written, before anything is paid for.

    Raises:
        InputError: it exists and `force` is false, no regular file, or its folder isn't writable.
    """
    if target is None or target == "-":
        return
    path = Path(target)
    if path.is_dir():
        raise InputError(f"{target} is a folder", where=option, mend="Name a file.")
    if path.exists() and not path.is_file():
        raise InputError(
            f"{target} is no regular file", where=option, mend="Use - for standard output."
        )
    if path.exists() and not force:
        raise InputError(
            f"{target} exists", where=option, mend="Name another file, or add --force."
        )
    parent = path.parent
    if not parent.is_dir():
        raise InputError(f"{parent} is not a folder", where=option, mend="Make it first.")
    if not os.access(parent, os.W_OK):
        raise InputError(f"{parent} can't be written to", where=option)


def check_apart(targets: Mapping[str, str | None]) -> None:
    """Refuse two outputs to one place.

    Args:
        targets: Output files by option.

    Raises:
        InputError: two of them are the same file, or both are standard output.
    """
    seen: dict[str, str] = {}
    for option, target in targets.items():
        if target is None:
            continue
        place = target if target == "-" else str(Path(target).resolve())
        if place in seen:
            what = "standard output" if target == "-" else target
            raise InputError(f"both would go to {what}", where=f"{seen[place]}, {option}")
        seen[place] = option


def write_target(target: str, text: str) -> None:
    """Write text to a file, whole or not at all, or to standard output for `-`.

    Raises:
        InputError: the file can't be written.
    """
    if target == "-":
        try:
            _write(text.removesuffix("\n"), sys.stdout)
        except BrokenPipeError:
            raise  # the reader has gone; main ends quietly
        except (OSError, ValueError) as err:
            reason = getattr(err, "strerror", None) or str(err)
            raise InputError(f"can't be written: {reason}", where="standard output") from None
        return
    path = Path(target)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except OSError as err:
        with contextlib.suppress(OSError, NameError):
            Path(name).unlink()
        raise InputError(f"can't be written: {err.strerror}", where=str(path)) from None


def write_json(target: str, value: Any) -> None:
    """Write a JSON value, ASCII only, to a file or `-`."""
    write_target(target, json.dumps(value, ensure_ascii=True, allow_nan=False) + "\n")
