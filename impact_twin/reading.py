"""Reading bytes that strangers may have put there: a capped file, or standard input."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from impact_twin.errors import InputError


def read_file(path: str | Path, most: int, *, follow: bool = True) -> bytes:
    """Return a regular file's bytes, at most one more than allowed.

    Args:
        path: The file.
        most: Bytes that are allowed; the caller refuses what is longer.
        follow: Whether a symbolic link is followed.

    Raises:
        InputError: it can't be read, or is no regular file (which might never end).
    """
    # Without O_NONBLOCK, opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    if not follow:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise InputError("is no regular file", where=str(path))
            return stream.read(most + 1)
    except OSError as error:
        raise InputError(f"can't be read: {error.strerror}", where=str(path)) from None
    except ValueError:
        raise InputError("is no file name", where=str(path)) from None


def standard_input() -> BinaryIO:
    """Return the process's standard input, as bytes.

    Raises:
        InputError: the process was started with it closed.
    """
    if sys.stdin is None:
        raise InputError("is closed", where="standard input", mend="Name a file instead of '-'.")
    return sys.stdin.buffer


def read_standard_input(most: int) -> bytes:
    """Return what standard input holds, at most one byte more than allowed.

    Raises:
        InputError: it is closed, or can't be read.
    """
    try:
        return standard_input().read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is closed"
        raise InputError(f"can't be read: {reason}", where="standard input") from None
