"""Rung 1: the bytes of a bundle, read strictly, with a bound on what they may cost."""

from __future__ import annotations

from dataclasses import dataclass

from impact_twin.canonical import MAX_BYTES, MAX_DEPTH, loads_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.checks import RefusedError
from impact_twin.proofrun.quick import canonical_parsed

# Small values cost memory out of proportion to their bytes: an empty object takes 2 bytes of a file
# and 64 of memory. An honest bundle has about one value for 15 bytes, and one object or array for
# 60.
_BYTES_PER_VALUE = 10
_BYTES_PER_CONTAINER = 32
_FEW = 1_000_000


@dataclass(frozen=True)
class ReadLimits:
    """What a file may take.

    Attributes:
        max_bytes: Size, in bytes, >= 1.
        max_depth: Arrays and objects within each other, from 1 to 256.
    """

    max_bytes: int = MAX_BYTES
    max_depth: int = MAX_DEPTH

    @property
    def max_values(self) -> int:
        """How many JSON values a file may hold."""
        return max(_FEW, self.max_bytes // _BYTES_PER_VALUE)

    @property
    def max_containers(self) -> int:
        """How many arrays and objects a file may hold."""
        return max(_FEW, self.max_bytes // _BYTES_PER_CONTAINER)

    @property
    def max_message_characters(self) -> int:
        """How many characters the messages that agents sent may have together."""
        return max(_FEW, self.max_bytes // 2)


def check_size(data: bytes, limits: ReadLimits) -> str:
    """Refuse bytes that would take too much memory, before anything is parsed.

    Raises:
        RefusedError: too many bytes, or so many brackets and commas that they would be too many
            values.
    """
    if len(data) > limits.max_bytes:
        raise RefusedError(
            f"it is larger than {limits.max_bytes} bytes (--max-bytes allows for more)"
        )
    containers = data.count(b"{") + data.count(b"[")
    values = containers + data.count(b",") + 1
    if containers > limits.max_containers or values > limits.max_values:
        raise RefusedError(
            f"it holds more than {limits.max_values} values, or more than "
            f"{limits.max_containers} arrays and objects (--max-bytes raises both)"
        )
    return f"{len(data)} bytes"


def parse(data: bytes, limits: ReadLimits) -> JSON:
    """Return the JSON value that the bytes hold.

    Raises:
        RefusedError: not UTF-8, not JSON, too deep, a key twice in one object, NaN, an infinity, a
            number beyond double precision, an integer beyond 2^53 - 1, or a lone surrogate.
    """
    try:
        return loads_strict(data, max_bytes=limits.max_bytes, max_depth=limits.max_depth)
    except InputError as err:
        raise RefusedError(err.what) from None


def check_canonical(data: bytes, value: JSON) -> str:
    """Refuse bytes that are not the canonical form of the value that they hold.

    Raises:
        RefusedError: they differ; it says where.
    """
    try:
        canonical = canonical_parsed(value)
    except InputError as err:
        raise RefusedError(err.what) from None
    if canonical != data:
        raise RefusedError(
            f"the bytes are not the canonical form (RFC 8785) of what they say: they differ from "
            f"byte {_first_difference(canonical, data)} on"
        )
    return "the bytes are their own canonical form (RFC 8785)"


def _first_difference(one: bytes, other: bytes) -> int:
    """Return the first place where two unequal byte strings differ, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
