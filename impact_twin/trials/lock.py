"""An exclusive lock on an open file that dies with its process, however that ends."""

from __future__ import annotations

import contextlib
import os
import sys
import weakref

# Windows locks bytes against readers too, so one far behind any content is taken.
_FAR_BYTE = 1 << 40

_held: weakref.WeakSet[FileLock]


class FileLock:
    """Holds an exclusive lock on a file descriptor until `release`, or until the process ends.

    The lock belongs to the open file, not to a file that is left behind: a killed run leaves
    nothing stale. Children made by `os.fork` close their copy, or one that outlives the run would
    keep its folder locked.

    Args:
        fd: An open, writable file descriptor; closed by `release`.

    Raises:
        BlockingIOError: another process, or another run of this one, holds the lock.
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd
        _lock(fd)
        _held.add(self)

    def release(self) -> None:
        """Give up the lock and close the file."""
        _held.discard(self)
        with contextlib.suppress(OSError):
            _unlock(self.fd)
        with contextlib.suppress(OSError):
            os.close(self.fd)


_held = weakref.WeakSet()

if sys.platform == "win32":
    import msvcrt

    def _lock(fd: int) -> None:
        at = os.lseek(fd, 0, os.SEEK_CUR)
        try:
            os.lseek(fd, _FAR_BYTE, os.SEEK_SET)
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None
        finally:
            os.lseek(fd, at, os.SEEK_SET)

    def _unlock(fd: int) -> None:
        del fd  # closing the file does it

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _unlock(fd: int) -> None:
        # Closing would do, but for a child that was forked this very moment.
        fcntl.flock(fd, fcntl.LOCK_UN)

    def _forget_in_child() -> None:
        for lock in list(_held):
            _held.discard(lock)
            with contextlib.suppress(OSError):
                os.close(lock.fd)

    os.register_at_fork(after_in_child=_forget_in_child)
