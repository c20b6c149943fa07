"""Errors that a user can act on: each says what was wrong, where, and the mend."""

from __future__ import annotations


class ImpactTwinError(Exception):
    """Base of every error that ends a command with one clear line.

    Args:
        what: What was wrong, as a sentence without a final full stop.
        where: The option, file or field it was found in; empty when there is none.
        mend: What the user can do about it; empty when there is nothing.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", mend: str = "") -> None:
        self.what = what
        self.where = where
        self.mend = mend
        super().__init__(self.line())

    def line(self) -> str:
        """Return the error as one line: ``where: what (mend)``."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}. {self.mend}" if self.mend else text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.where, self.mend))


def _rebuild(cls: type[ImpactTwinError], what: str, where: str, mend: str) -> ImpactTwinError:
    return cls(what, where=where, mend=mend)


class InputError(ImpactTwinError):
    """A usage or input error: exit code 2, before anything is written or paid for."""


class CheckFailedError(ImpactTwinError):
    """A gate or a verification did not hold: exit code 1."""

    exit_code = 1


class StoppedError(ImpactTwinError):
    """The run stopped before its plan ended (budget, circuit breaker, full disk): exit code 3."""

    exit_code = 3
