import json
from dataclasses import replace

import pytest

from impact_twin.audit.archive import Entry
from impact_twin.audit.disagreements import judge_label
from impact_twin.audit.exclusions import (
    NO_ERROR,
    Selection,
    as_json,
    chosen,
    compare_under_filter,
)
from impact_twin.audit.orders import holm, mcnemar, supported
from impact_twin.audit.questions import Answer
from impact_twin.audit.records import RecordSet, parse_entries
from impact_twin.errors import InputError

DETECTOR = "gpt-4o-2024-05-13-transformers_pi_detector"
FILTERING = "gpt-4o-2024-05-13-tool_filter"
SENT = Answer(True, tools=("send_email",))
NOTHING = Answer(False, tools=("send_email",))
HIDDEN = Answer(
    False,
    tools=("send_email",),
    missing=({"function": "send_email", "why": "redacted", "result": 0},),
    assumed=True,
)
OTHER_TOOL = Answer(
    False,
    tools=("send_email",),
    missing=({"function": "create_file", "why": "redacted", "result": 0},),
    assumed=False,
)


@pytest.fixture
def finding_of(record_of):
    def make(configuration, case, answer, label, **changes):
        record = record_of([], user_task_id=f"user_task_{case}", security=label, **changes)
        record = replace(record, name=f"{configuration}{case}", configuration=configuration)
        return judge_label(record, "v1", answer, None)

    return make


@pytest.fixture
def pair(finding_of):
    """A shows its three successes of ten; B hides two of four; the filter removes those two."""
    first = [finding_of("A", n, SENT if n < 3 else NOTHING, n < 3) for n in range(10)]
    second = [
        finding_of("B", n, HIDDEN if n < 2 else SENT if n < 4 else NOTHING, n < 4)
        for n in range(10)
    ]
    return compare_under_filter([*first, *second])


def row(found, name):
    (only,) = [item for item in found.rows if item.name == name]
    return only


def counts(count):
    return count.successes, count.unresolved, count.n


def test_a_failing_case_goes_from_every_configuration(pair):
    assert counts(row(pair, "A").labels) == (3, 0, 10)
    assert counts(row(pair, "A").labels_kept) == (1, 0, 8)
    assert counts(row(pair, "B").labels) == (4, 0, 10)
    assert counts(row(pair, "B").labels_kept) == (2, 0, 8)
    assert row(pair, "A").fails == ()
    assert row(pair, "B").fails == ("B0", "B1")
    assert dict(row(pair, "A").removed) == {True: 2}
    assert pair.tools == ("send_email",)


def test_bounds_count_every_record(pair):
    assert counts(row(pair, "A").evidence) == (3, 0, 10)
    assert counts(row(pair, "B").evidence) == (2, 2, 10)
    (order,) = pair.orders
    assert order.evidence == (3, 3, 2, 4)
    assert order.settled == ""
    assert order.p == 1.0


def test_unmatched_removes_only_what_fails(finding_of):
    findings = [finding_of("A", 0, SENT, True), finding_of("B", 0, HIDDEN, True)]
    found = compare_under_filter(findings, matched=False)
    assert counts(row(found, "A").labels_kept) == (1, 0, 1)
    assert counts(row(found, "B").labels_kept) == (0, 0, 0)
    assert found.removed_cases == ()


def test_only_results_of_the_tools_that_matter_are_needed(finding_of):
    findings = [finding_of("A", 0, OTHER_TOOL, False)]
    assert row(compare_under_filter(findings), "A").fails == ()
    found = compare_under_filter(findings, tools=["create_file"])
    assert row(found, "A").fails == ("A0",)
    assert found.tools == ("create_file",)


def test_a_run_that_ended_in_an_error_is_unresolved(finding_of):
    failed = finding_of("A", 0, NOTHING, True, error="context length")
    assert supported(failed) is None
    found = compare_under_filter([failed, finding_of("A", 1, SENT, True)], filter_name=NO_ERROR)
    assert row(found, "A").fails == ("A0",)
    assert counts(row(found, "A").evidence) == (1, 1, 2)


def test_a_success_that_is_shown_counts_although_the_run_ended_in_an_error(finding_of):
    assert supported(finding_of("A", 0, SENT, True, error="limit")) is True


def test_an_unreadable_file_counts_in_the_configuration_that_its_name_tells(finding_of):
    bad = "runs/A/workspace/user_task_1/direct/injection_task_0.json"
    found = parse_entries([Entry(bad, b"{"), Entry("x.json", b"{")])
    ghosts = chosen(found, Selection())
    assert len(ghosts.records) == 1
    assert [name for name, _ in ghosts.unreadable] == ["x.json"]
    ghost = judge_label(ghosts.records[0], "v1", None, None)
    result = compare_under_filter([finding_of("A", 0, SENT, True), ghost], nameless=1)
    assert counts(row(result, "A").labels) == (1, 1, 2)
    assert counts(row(result, "A").evidence) == (1, 1, 2)
    assert counts(row(result, "A").labels_kept) == (1, 0, 1)
    assert len(result.warnings) == 2


def test_a_clear_order_is_settled_and_the_p_is_that_of_the_worst_completion(finding_of):
    first = [finding_of("A", n, SENT if n < 9 else NOTHING, n < 9) for n in range(10)]
    second = [finding_of("B", n, HIDDEN if n == 0 else NOTHING, n == 0) for n in range(10)]
    (order,) = compare_under_filter([*first, *second]).orders
    assert order.settled == "first"
    # Case 0 of B completed as a success: 8 cases are left that only A has.
    assert order.p == mcnemar(8, 0) == 0.0078125


def test_different_cases_are_warned_of_and_repeated_ones_have_no_partner(finding_of):
    findings = [
        finding_of("A", 0, SENT, True),
        finding_of("A", 0, SENT, True),
        finding_of("A", 1, SENT, True),
        finding_of("B", 0, NOTHING, False),
        finding_of("B", 1, NOTHING, False),
        finding_of("B", 2, NOTHING, False),
    ]
    found = compare_under_filter(findings)
    assert found.orders[0].cases == 1
    assert row(found, "A").labels.n == 3
    assert any("same cases" in text for text in found.warnings)
    assert any("repeat" in text for text in found.warnings)


def test_mcnemar_is_the_exact_binomial_test():
    scipy_stats = pytest.importorskip("scipy.stats")
    for first in range(0, 12):
        for second in range(0, 12):
            if first + second:
                expected = scipy_stats.binomtest(first, first + second).pvalue
                assert mcnemar(first, second) == pytest.approx(expected, abs=1e-12)
    assert mcnemar(0, 0) == 1.0


def test_holm_never_falls_below_a_smaller_p_and_is_capped():
    assert holm([0.5, 0.01, 0.6]) == [1.0, 0.03, 1.0]
    assert holm([]) == []


def test_selection_uses_patterns_and_an_empty_one_is_refused(examined):
    found = RecordSet(tuple(item.record for item in examined.findings))
    some = chosen(found, Selection(configurations=("gpt-4o-*_filter",)))
    assert {record.configuration for record in some.records} == {FILTERING}
    with pytest.raises(InputError, match=r"no record is selected.*gpt-4o"):
        chosen(found, Selection(attacks=("nothing",)))


def test_the_excerpt_turns_around_as_the_200_do(excerpt):
    findings = [
        item
        for item in excerpt
        if item.record.configuration in (DETECTOR, FILTERING)
        and item.record.injection_task == "injection_task_0"
    ]
    found = compare_under_filter(findings)
    assert counts(row(found, DETECTOR).labels) == (1, 0, 3)
    assert counts(row(found, DETECTOR).labels_kept) == (0, 0, 1)
    assert counts(row(found, DETECTOR).evidence) == (0, 1, 3)
    assert counts(row(found, FILTERING).labels) == (1, 0, 3)
    assert counts(row(found, FILTERING).labels_kept) == (1, 0, 1)
    assert len(found.removed_cases) == 2
    assert found.orders[0].settled == ""


def test_the_json_form_names_n_and_method_with_every_rate(pair):
    value = json.loads(json.dumps(as_json(pair, "here", "0.1.35")))
    for item in value["configurations"]:
        for key in ("labels_before", "labels_after", "evidence"):
            assert item[key]["n"] > 0
            lo, hi = item[key]["wilson"]
            assert lo <= item[key]["bounds"][0] <= item[key]["bounds"][1] <= hi
    assert "Wilson" in value["methods"]["wilson"]
    assert value["configurations"][1]["evidence"]["bounds"] == [0.2, 0.4]
