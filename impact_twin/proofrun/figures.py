"""Rung 4: every figure of the summary, derived again from the pair-trials."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.proofrun.checks import Material, RefusedError
from impact_twin.report.gates import gates_of
from impact_twin.report.summary import summary_of

# Stored figures have 12 decimals; one last unit may differ between machines.
_LAST_UNIT = 1.000001e-12
# Of a large figure the double itself is coarser than that.
_RELATIVE = 4 * 2.0**-52
_LONGEST_GATE = 200


def check_figures(material: Material) -> str:
    """Refuse a summary that is not what the pair-trials give."""
    stored = material.report["summary"]
    gates = stored["gates"]
    if any(len(item["gate"]) > _LONGEST_GATE for item in gates):
        raise RefusedError("report.summary.gates: a condition is too long to be one")
    try:
        derived = summary_of(material.report, gates_of(gates))
    except InputError as err:
        raise RefusedError(f"report.summary.gates: {err.what}") from None
    except ValueError as err:
        raise RefusedError(f"report.summary can't be derived: {err}") from None
    for path, stated, found in differences(stored, derived):
        raise RefusedError(
            f"report.summary.{path} says {_short(stated)}, but the pair-trials give {_short(found)}"
        )
    return "every figure follows from the pair-trials"


def differences(stored: JSON, derived: JSON, path: str = "") -> Iterator[tuple[str, JSON, JSON]]:
    """Yield where two JSON values differ: the path, and both values.

    A real number may differ by one last unit of its 12 decimals; everything else must be equal,
    type included, save that canonical JSON writes 1.0 as 1.

    >>> list(differences({"a": [1, 0.5]}, {"a": [1.0, 0.5000000000005]}))
    []
    >>> list(differences({"a": True}, {"a": 1}))
    [('a', True, 1)]
    """
    if isinstance(stored, dict) and isinstance(derived, Mapping):
        if stored.keys() != derived.keys():
            yield path, sorted(stored), sorted(derived)
            return
        for key, value in derived.items():
            yield from differences(stored[key], value, f"{path}.{key}" if path else key)
    elif isinstance(stored, list) and isinstance(derived, list | tuple):
        if len(stored) != len(derived):
            yield path, f"{len(stored)} entries", f"{len(derived)} entries"
            return
        for place, (one, other) in enumerate(zip(stored, derived, strict=True)):
            yield from differences(one, other, f"{path}.{place}")
    elif not _same(stored, derived):
        yield path, stored, derived


def _same(stored: JSON, derived: JSON) -> bool:
    if isinstance(derived, float) and type(stored) in (int, float):
        near = _LAST_UNIT + _RELATIVE * abs(derived)
        return math.isfinite(derived) and abs(stored - derived) <= near
    return type(stored) is type(derived) and bool(stored == derived)


def _short(value: JSON) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
