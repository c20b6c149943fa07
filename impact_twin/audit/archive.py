"""Reads the files of a folder or a tar archive that strangers made, without unpacking it.

Nothing is written, no link is followed and no name is used as a path. Every entry is yielded: one
that may not be read comes with the reason, so that it can be counted.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from impact_twin.errors import InputError
from impact_twin.text import storable

MAX_ENTRY = 16 * 1024 * 1024
MAX_TOTAL = 2 * 1024 * 1024 * 1024
MAX_ENTRIES = 200_000
_CHUNK = 1024 * 1024
_MAGIC = ((b"\xfd7zXZ\x00", lzma.open), (b"\x1f\x8b", gzip.open), (b"BZh", bz2.open))


@dataclass(frozen=True)
class Entry:
    """One file of the folder or archive.

    Attributes:
        name: Its name there, with forward slashes; untrusted text, storable.
        data: Its bytes, or None when it may not be read.
        refused: Why it was not read; empty when it was.
    """

    name: str
    data: bytes | None
    refused: str = ""


@dataclass(frozen=True)
class Caps:
    """Limits on what is read, in bytes and entries."""

    entry: int = MAX_ENTRY
    total: int = MAX_TOTAL
    entries: int = MAX_ENTRIES


def entries(path: Path, caps: Caps | None = None) -> Iterator[Entry]:
    """Yield every file of a folder or tar archive (plain, xz, gzip or bzip2), in a fixed order.

    Args:
        path: The folder or archive.
        caps: Limits; more entries or bytes in all than these end the reading with an error.

    Raises:
        InputError: the path is neither, the archive is damaged, or a limit on the whole is passed.
    """
    caps = caps or Caps()
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as err:
        reason = getattr(err, "strerror", None) or "not a usable name"
        raise InputError(f"can't be read: {reason}", where=str(path)) from None
    if stat.S_ISDIR(mode):
        yield from _folder(path, caps)
    elif stat.S_ISREG(mode):
        yield from _archive(path, caps)
    else:
        raise InputError(
            "neither a folder nor a file", where=str(path), mend="Give a folder or a tar archive."
        )


def _folder(root: Path, caps: Caps) -> Iterator[Entry]:
    total = count = 0
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            children = sorted(folder.iterdir())
        except OSError as err:
            count += 1
            yield Entry(_inside(folder, root), None, f"can't be opened: {err.strerror}")
            continue
        folders = []
        for child in children:
            count += 1
            _check_count(count, caps, root)
            try:
                status = child.lstat()
            except OSError as err:
                yield Entry(_inside(child, root), None, f"can't be opened: {err.strerror}")
                continue
            if stat.S_ISDIR(status.st_mode):
                folders.append(child)
            elif stat.S_ISREG(status.st_mode):
                entry = _file(child, root, caps)
                total += len(entry.data or b"")
                _check_total(total, caps, root)
                yield entry
            else:
                yield Entry(_inside(child, root), None, "a link or a device, not a file")
        waiting.extend(reversed(folders))


def _file(path: Path, root: Path, caps: Caps) -> Entry:
    name = _inside(path, root)
    try:
        with path.open("rb") as handle:
            data = handle.read(caps.entry + 1)
    except OSError as err:
        return Entry(name, None, f"can't be opened: {err.strerror}")
    if len(data) > caps.entry:
        return Entry(name, None, f"larger than {caps.entry} bytes")
    return Entry(name, data)


def _inside(path: Path, root: Path) -> str:
    return storable(path.relative_to(root).as_posix())


def _archive(path: Path, caps: Caps) -> Iterator[Entry]:
    where = str(path)
    with _unpacked(path) as plain:
        stream = _Forward(plain, caps.total, where)
        try:
            with tarfile.open(
                fileobj=cast("IO[bytes]", stream), mode="r:", errorlevel=1
            ) as archive:
                yield from _members(archive, caps, path)
                stream.check_end()
        except (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError) as err:
            raise InputError(
                f"not one whole tar archive: {type(err).__name__}",
                where=where,
                mend="Give a folder or a tar archive (plain, xz, gzip or bzip2).",
            ) from None
        # tarfile turns hostile header numbers into these.
        except (ValueError, OverflowError, UnicodeError, IndexError, RecursionError) as err:
            raise InputError(f"a damaged tar header: {type(err).__name__}", where=where) from None


def _members(archive: tarfile.TarFile, caps: Caps, path: Path) -> Iterator[Entry]:
    count = 0
    while (member := archive.next()) is not None:
        count += 1
        _check_count(count, caps, path)
        # tarfile keeps every header it has seen; a long archive would hold them all.
        archive.members = []  # type: ignore[attr-defined, unused-ignore]
        if member.isdir():
            continue
        name = storable(member.name)
        if not member.isreg() or member.issparse():
            yield Entry(name, None, "a link, a device or a sparse file")
        elif member.size > caps.entry:
            yield Entry(name, None, f"larger than {caps.entry} bytes")
        else:
            handle = archive.extractfile(member)
            data = handle.read() if handle else b""
            if len(data) != member.size:
                raise tarfile.ReadError
            yield Entry(name, data)


def _unpacked(path: Path) -> IO[bytes]:
    try:
        with path.open("rb") as handle:
            head = handle.read(6)
        for magic, opener in _MAGIC:
            if head.startswith(magic):
                return cast("IO[bytes]", opener(path, "rb"))
        return path.open("rb")
    except OSError as err:
        raise InputError(f"can't be read: {err.strerror}", where=str(path)) from None


def _check_count(count: int, caps: Caps, path: Path) -> None:
    if count > caps.entries:
        raise InputError(f"more than {caps.entries} entries", where=str(path))


def _check_total(total: int, caps: Caps, path: Path) -> None:
    if total > caps.total:
        raise InputError(f"more than {caps.total} bytes in all", where=str(path))


class _Forward(io.RawIOBase):
    """A stream that only goes forward and never hands out more than the cap.

    tarfile believes the sizes in headers: without this, one long-name header of 8 GiB would be
    read into memory at once.
    """

    def __init__(self, inner: IO[bytes], total: int, where: str) -> None:
        self._inner = inner
        self._total = total
        self._where = where
        self._at = 0
        self._last = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > 2 * MAX_ENTRY:
            raise InputError("a header that claims too much", where=self._where)
        data = self._inner.read(size)
        self._at += len(data)
        if self._at > self._total:
            raise InputError(f"more than {self._total} bytes unpacked", where=self._where)
        self._last = data
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        if whence != 0 or offset < self._at:
            raise tarfile.ReadError
        while self._at < offset:
            if not self.read(min(_CHUNK, offset - self._at)):
                raise tarfile.ReadError
        return self._at

    def check_end(self) -> None:
        """Refuse an archive that stops in the middle, or that another one follows.

        tarfile takes a bad header, and the zeros between two archives, for the end.
        """
        last = self._last
        while not last.strip(b"\0"):
            last = self.read(_CHUNK)
            if not last:
                return
        raise tarfile.ReadError
