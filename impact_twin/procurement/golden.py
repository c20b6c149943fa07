"""Golden situations: recorded calls with the verdict that they must always get.

They stand in a suite's folder, one situation a file, and their digests are part of the suite's
digest: scoring can't change under an old name. A situation is one case (calls, verdict, digest of
its trace) or a pair-trial (two cases by name, and the outcome class that the report gives them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON, Trace, trace_digest
from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.procurement.scoring import score_case
from impact_twin.procurement.suite_schema import check_schema

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite


def cases(suite: Suite) -> dict[str, Mapping[str, JSON]]:
    """Return the situations of one case, by name, in file order.

    Raises:
        InputError: two situations have one name.
    """
    return _by_name(suite, "calls")


def pair_trials(suite: Suite) -> dict[str, Mapping[str, JSON]]:
    """Return the situations of two cases, by name, in file order.

    Raises:
        InputError: two situations have one name, or one names a case that isn't there.
    """
    found, known = _by_name(suite, "outcome"), cases(suite)
    for name, situation in found.items():
        for twin in ("clean", "poisoned"):
            case = known.get(situation[twin])
            if case is None or case["twin"] != twin:
                raise InputError(
                    f"there is no {twin} case {situation[twin]}", where=f"{name}: {twin}"
                )
        if known[situation["clean"]]["pair"] != known[situation["poisoned"]]["pair"]:
            raise InputError("the two cases are of two pairs", where=name)
    return found


def play(suite: Suite, situation: Mapping[str, JSON]) -> Trace:
    """Make a situation's calls on a fresh world and return what that gives.

    Raises:
        InputError: the suite has no such pair.
    """
    case = CaseRuntime(suite, situation["pair"], situation["twin"])
    for call in situation["calls"]:
        case.call(call["tool"], call["arguments"])
    case.seal()
    return case.trace(situation["termination"], situation["final_answer"])


def record(suite: Suite, situation: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return a situation of one case with its verdict and trace digest as they are now.

    For whoever writes one: look at the verdict before believing it.

    Args:
        suite: The suite.
        situation: All fields but `verdict` and `trace_digest`, which are replaced if there.

    Raises:
        InputError: the result doesn't fit the schema, or the suite has no such pair.
    """
    trace = play(suite, situation)
    filled = {
        **situation,
        "verdict": score_case(suite, trace).to_json(),
        "trace_digest": trace_digest(trace.to_json({})),
    }
    check_schema("golden", filled, str(situation.get("name", "golden situation")))
    return filled


def differences(suite: Suite) -> Iterator[str]:
    """Yield one line for each situation whose verdict or trace isn't what its file says."""
    for name, situation in cases(suite).items():
        now = record(suite, situation)
        for field, value in now["verdict"].items():
            if value != situation["verdict"][field]:
                yield f"{name}: {field} is {value!r}, the file says {situation['verdict'][field]!r}"
        if now["trace_digest"] != situation["trace_digest"]:
            yield f"{name}: the trace differs"


def _by_name(suite: Suite, field: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    seen: set[str] = set()
    for file, situation in suite.golden.items():
        if situation["name"] in seen:
            raise InputError(f"the name {situation['name']} occurs twice", where=file)
        seen.add(situation["name"])
        if field in situation:
            found[situation["name"]] = situation
    return found
