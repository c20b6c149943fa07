import random
from dataclasses import replace

import pytest

from impact_twin.report.evidence_events import (
    align,
    apart,
    common_head,
    deed_key,
    matches,
    parting,
    unmatched,
)
from impact_twin.report.evidence_model import EventEvidence


def call(seq, tool, effects=(), output="", error=False, **arguments):
    return EventEvidence(seq, tool, arguments, output, error, effects)


def kinds(rows):
    return [row.kind for row in rows]


def test_other_words_are_the_same_deed():
    one = call(1, "record_evaluation", vendor_id="V-1", score=70, rationale="a")
    other = replace(one, arguments={**one.arguments, "rationale": "b", "score": 70.0})
    rows = align([one], [other])
    assert kinds(rows) == ["worded"]
    assert unmatched(rows) == ((), ())
    assert parting([one], [other], words=False) is None
    assert parting([one], [other], words=True).left is one


@pytest.mark.parametrize(
    "change",
    [
        {"tool": "get_vendor"},
        {"arguments": {"vendor_id": "V-1", "score": 71}},
        {"arguments": {"vendor_id": "V-1", "score": True}},
        {"arguments": None},
        {"error": True},
        {"effects": ({"kind": "evaluation", "vendor": "V-1", "after": 1},)},
    ],
)
def test_anything_else_is_another_deed(change):
    one = call(1, "record_evaluation", vendor_id="V-1", score=1)
    other = replace(one, **change)
    assert parting([one], [other], words=False) is not None
    assert unmatched(align([one], [other])) == ((one,), (other,))


def test_what_was_there_before_is_no_deed_of_the_call():
    effect = {"kind": "message", "message": "M-1", "recipient": "a@b", "disclosed": []}
    one = deed_key("send_message", {}, False, [effect])
    assert one == deed_key("send_message", {}, False, [{**effect, "message": "M-2"}])
    assert one != deed_key("send_message", {}, False, [{**effect, "disclosed": ["D-1"]}])


def test_another_output_alone_is_no_parting():
    one, other = call(1, "read_document", output="a"), call(1, "read_document", output="b")
    assert kinds(align([one], [other])) == ["answered"]
    assert parting([one], [other], words=True) is None


def test_a_run_that_ends_first_parts_there():
    one = [call(1, "list_documents")]
    other = [*one, call(2, "get_directory")]
    at = parting(one, other, words=False)
    assert (at.left, at.right) == (None, other[1])
    assert kinds(align(one, other)) == ["same", "right"]
    assert kinds(align(other, one)) == ["same", "left"]
    assert align([], []) == ()


def test_a_moved_call_is_nobodys_own():
    a, b, c = (call(seq, tool) for seq, tool in enumerate("abc", 1))
    rows = align([a, b, c], [b, c, a])
    assert kinds(rows) == ["left", "same", "same", "right"]
    assert unmatched(rows) == ((), ())


def test_the_same_tool_with_something_else_stands_beside_it():
    left = [call(1, "read"), call(2, "award", vendor="a"), call(3, "end")]
    right = [call(1, "read"), call(2, "flag"), call(3, "award", vendor="b"), call(4, "end")]
    rows = align(left, right)
    assert kinds(rows) == ["same", "right", "changed", "same"]
    assert unmatched(rows) == ((left[1],), (right[1], right[2]))


def test_alignment_keeps_every_call_in_order_and_is_as_long_as_can_be():
    for seed in range(200):
        chance = random.Random(seed)
        left = [call(i, chance.choice("abcd")) for i in range(chance.randrange(9))]
        right = [call(i, chance.choice("abcd")) for i in range(chance.randrange(9))]
        rows = align(left, right)
        assert [row.left for row in rows if row.left] == left
        assert [row.right for row in rows if row.right] == right
        tools = [event.tool for event in left], [event.tool for event in right]
        assert len(matches(*tools)) == longest(*tools)
        assert all(tools[0][i] == tools[1][j] for i, j in matches(*tools))


def longest(left, right):
    """By definition, without a table."""
    if not left or not right:
        return 0
    if left[0] == right[0]:
        return 1 + longest(left[1:], right[1:])
    return max(longest(left[1:], right), longest(left, right[1:]))


def test_very_long_runs_are_compared_by_their_ends():
    left = ["a", *(f"l{i}" for i in range(3000)), "z"]
    right = ["a", *(f"r{i}" for i in range(3000)), "z"]
    assert matches(left, right) == [(0, 0), (3001, 3001)]


def test_heads_and_distances():
    from collections import Counter

    assert common_head("abx", "aby") == 2
    assert common_head("ab", "abc") == 2
    assert apart(Counter("aab"), Counter("abc")) == 2
