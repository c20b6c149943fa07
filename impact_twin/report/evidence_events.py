"""What two runs did, aligned: where they part, and which calls only one of them made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.report.evidence_model import EventEvidence, Parting, Row, RowKind

FREE_TEXT = frozenset({"rationale", "subject", "body", "reason"})
"""Arguments that hold free text: an agent may word them anew each time and still do the same."""

MOST_STEPS = 1_000_000
"""Largest table of the alignment; beyond it what stands between common ends counts as different."""


def deed_key(
    tool: str, arguments: JSON, error: bool, effects: Iterable[Mapping[str, JSON]]
) -> Hashable:
    """What a call did, free text left aside: equal keys are the same deed.

    Args:
        tool: The tool's name.
        arguments: Any JSON.
        error: Whether the world rejected the call.
        effects: What it changed; a message that discloses something else is another deed.
    """
    if isinstance(arguments, Mapping):
        arguments = {name: value for name, value in arguments.items() if name not in FREE_TEXT}
    # What was there before, and the number of a message or award, follow from earlier calls.
    done = [
        {name: value for name, value in effect.items() if name not in ("before", effect["kind"])}
        for effect in effects
    ]
    return tool, _frozen(arguments), error, _frozen(done)


def entry_deeds(entry: Mapping[str, JSON]) -> tuple[Hashable, ...]:
    """The deed keys of a trace entry's events."""
    return tuple(
        deed_key(event["tool"], event["arguments"], event["error"], event["effects"])
        for event in entry["events"]
    )


def align(left: Sequence[EventEvidence], right: Sequence[EventEvidence]) -> tuple[Row, ...]:
    """Put two runs beside each other: a longest common subsequence of deeds, the rest between.

    Between two common deeds, calls of the same tool stand beside each other as `changed`.

    Args:
        left: Calls in order.
        right: Calls in order.
    """
    keys = [_deed(event) for event in left], [_deed(event) for event in right]
    rows: list[Row] = []
    at = (0, 0)
    for common in [*matches(*keys), (len(left), len(right))]:
        rows += _between(left[at[0] : common[0]], right[at[1] : common[1]])
        if common[0] < len(left):
            one, other = left[common[0]], right[common[1]]
            rows.append(Row(_likeness(one, other), one, other))
        at = (common[0] + 1, common[1] + 1)
    return tuple(rows)


def parting(
    left: Sequence[EventEvidence], right: Sequence[EventEvidence], *, words: bool
) -> Parting | None:
    """Where two runs first call something else; None when they never do.

    What a call returned is not compared: it is the world's doing, not the agent's.

    Args:
        left: Calls in order.
        right: Calls in order.
        words: Whether other free text counts, too.
    """
    for place in range(max(len(left), len(right))):
        one = left[place] if place < len(left) else None
        other = right[place] if place < len(right) else None
        if one is None or other is None or _deed(one) != _deed(other):
            return Parting(one, other)
        if words and _frozen(one.arguments) != _frozen(other.arguments):
            return Parting(one, other)
    return None


def unmatched(rows: Sequence[Row]) -> tuple[tuple[EventEvidence, ...], tuple[EventEvidence, ...]]:
    """Return the calls of either run whose deed the other one did not do, or not as often.

    A deed that both did at another place is neither's own.

    Args:
        rows: From `align`.

    Returns:
        Those of the left run and those of the right one, in order.
    """
    loose = [row for row in rows if row.kind in ("changed", "left", "right")]
    left = [row.left for row in loose if row.left is not None]
    right = [row.right for row in loose if row.right is not None]
    return _without(left, right), _without(right, left)


def matches(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence, in order.

    >>> matches("abcd", "axbd")
    [(0, 0), (1, 2), (3, 3)]
    """
    head = common_head(left, right)
    tail = common_head(left[head:][::-1], right[head:][::-1])
    inner = _table_matches(left[head : len(left) - tail], right[head : len(right) - tail])
    return [
        *((place, place) for place in range(head)),
        *((head + one, head + other) for one, other in inner),
        *((len(left) - place, len(right) - place) for place in range(tail, 0, -1)),
    ]


def common_head(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return how many deeds two runs share before they part."""
    return next(
        (place for place, both in enumerate(zip(left, right, strict=False)) if both[0] != both[1]),
        min(len(left), len(right)),
    )


def apart(left: Counter[Hashable], right: Counter[Hashable]) -> int:
    """Return how many deeds only one of two runs did, whatever their order."""
    return sum((left - right).values()) + sum((right - left).values())


def _table_matches(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    if len(left) * len(right) > MOST_STEPS:
        return []
    # longest[i][j]: length of the longest common subsequence of left[i:] and right[j:].
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            longest[i][j] = (
                longest[i + 1][j + 1] + 1
                if left[i] == right[j]
                else max(longest[i + 1][j], longest[i][j + 1])
            )
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _between(left: Sequence[EventEvidence], right: Sequence[EventEvidence]) -> list[Row]:
    rows: list[Row] = []
    tools = [event.tool for event in left], [event.tool for event in right]
    at = (0, 0)
    for common in [*matches(*tools), (len(left), len(right))]:
        rows += [Row("left", event, None) for event in left[at[0] : common[0]]]
        rows += [Row("right", None, event) for event in right[at[1] : common[1]]]
        if common[0] < len(left):
            rows.append(Row("changed", left[common[0]], right[common[1]]))
        at = (common[0] + 1, common[1] + 1)
    return rows


def _without(
    events: Sequence[EventEvidence], others: Sequence[EventEvidence]
) -> tuple[EventEvidence, ...]:
    spare = Counter(_deed(event) for event in others)
    own = []
    for event in events:
        key = _deed(event)
        if spare[key]:
            spare[key] -= 1
        else:
            own.append(event)
    return tuple(own)


def _likeness(one: EventEvidence, other: EventEvidence) -> RowKind:
    if _frozen(one.arguments) != _frozen(other.arguments):
        return "worded"
    return "same" if one.output == other.output else "answered"


def _deed(event: EventEvidence) -> Hashable:
    return deed_key(event.tool, event.arguments, event.error, event.effects)


def _frozen(value: JSON) -> Hashable:
    """A JSON value as a hashable one: 1 and 1.0 are one number, true is none."""
    if isinstance(value, Mapping):
        return ("object", *sorted((name, _frozen(item)) for name, item in value.items()))
    if isinstance(value, list | tuple):
        return ("array", *(_frozen(item) for item in value))
    return (type(value).__name__, value) if isinstance(value, bool) else value
