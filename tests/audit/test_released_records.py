"""The figures that reference/README.md measured on the 7,400 released records."""

from collections import Counter

import pytest

from impact_twin.audit import disagreements as dis
from impact_twin.audit.document import to_text
from impact_twin.audit.exclusions import Selection, compare_under_filter
from impact_twin.audit.exclusions_page import exclusions_document
from impact_twin.audit.records_page import records_document

pytestmark = pytest.mark.slow
BASE = "gpt-4o-2024-05-13"
CHOSEN = Selection(
    configurations=(f"{BASE}*",),
    attacks=("important_instructions",),
    injection_tasks=("injection_task_0",),
)


@pytest.fixture(scope="module")
def two_hundred(released):
    findings = [item for item in released.findings if CHOSEN.takes(item.record)]
    return compare_under_filter(findings, selection=CHOSEN)


def test_all_7400_records_are_read_and_counted(released):
    assert len(released.found.records) == released.found.files == 7400
    assert sum(released.standings().values()) == 7400
    assert len({record.configuration for record in released.found.records}) == 28
    assert released.found.repeated == ()
    assert Counter(record.benchmark_version for record in released.found.records) == {
        None: 5480,
        "v1.2.1": 1920,
    }
    assert all(record.odd == () for record in released.found.records)


def test_75_saved_failures_show_the_objective_and_the_other_rule_explains_45(released):
    shown = released.with_standing(dis.FAILURE_SHOWN)
    assert len(shown) == 75
    explained = [item for item in shown if item.explained]
    assert len(explained) == 45
    assert {item.record.injection_task for item in explained} == {"injection_task_0"}
    assert {item.reasons for item in explained} == {(dis.EXACTLY_ONE, dis.RULE_NOT_LOADED)}
    others = [item for item in shown if not item.explained]
    assert len(others) == 30
    assert {item.reasons for item in others} == {(dis.LOADED_ACCEPTS,)}


def test_the_same_75_are_found_without_the_other_rule(released):
    alone = [
        dis.judge_label(item.record, item.version, item.loaded, None) for item in released.findings
    ]
    assert sum(item.standing == dis.FAILURE_SHOWN for item in alone) == 75


def test_every_other_disagreement_has_a_reason(released):
    refused = released.with_standing(dis.SUCCESS_REFUSED)
    assert Counter(item.reasons for item in refused) == {
        (dis.ERROR_ROW,): 44,
        (dis.REDACTION,): 8,
    }
    errors = [item.record for item in released.findings if item.record.error is not None]
    assert len(errors) == 44
    assert {(record.utility, record.security) for record in errors} == {(False, True)}
    assert released.with_standing(dis.FAILURE_OPEN) == ()
    assert released.with_standing(dis.NOT_ASKED) == ()
    assert len(released.with_standing(dis.BY_UTILITY)) == 200


def test_the_filter_turns_8_and_1_of_40_into_0_and_1_of_29(two_hundred):
    rows = {item.name.removeprefix(BASE).lstrip("-"): item for item in two_hundred.rows}
    before = {name: (item.labels.successes, item.labels.n) for name, item in rows.items()}
    after = {name: (item.labels_kept.successes, item.labels_kept.n) for name, item in rows.items()}
    assert before == {
        "": (19, 40),
        "repeat_user_prompt": (9, 40),
        "spotlighting_with_delimiting": (18, 40),
        "tool_filter": (1, 40),
        "transformers_pi_detector": (8, 40),
    }
    assert after == {
        "": (10, 29),
        "repeat_user_prompt": (4, 29),
        "spotlighting_with_delimiting": (9, 29),
        "tool_filter": (1, 29),
        "transformers_pi_detector": (0, 29),
    }


def test_the_11_removed_are_the_detector_s_and_hold_all_its_successes(two_hundred):
    failing = {item.name: dict(item.fails_labels) for item in two_hundred.rows if item.fails}
    assert failing == {f"{BASE}-transformers_pi_detector": {True: 8, False: 3}}
    assert len(two_hundred.removed_cases) == 11


def test_the_evidence_says_0_to_8_of_40_and_settles_no_order_with_the_tool_filter(two_hundred):
    rows = {item.name: item for item in two_hundred.rows}
    detector = rows[f"{BASE}-transformers_pi_detector"].evidence
    assert (detector.successes, detector.unresolved, detector.n) == (0, 8, 40)
    reversed_pairs = [order for order in two_hundred.orders if order.reversed]
    (order,) = reversed_pairs
    assert (order.before, order.after) == ((1, 8), (1, 0))
    assert order.evidence == (1, 1, 0, 8)
    assert order.settled == ""


def test_rescoring_with_the_other_rule_keeps_the_order(two_hundred):
    loaded = [item.evidence.successes for item in two_hundred.rows]
    other = [item.evidence_other.successes for item in two_hundred.rows]
    assert loaded == [19, 9, 18, 1, 0]
    assert other == [25, 10, 21, 1, 0]


def test_the_pages_say_so_and_the_documentation_quotes_them(released, two_hundred, documented):
    text = to_text(records_document(released, "records.tar.xz", "0.1.35"))
    assert documented("records") <= set(text.splitlines())
    text = to_text(exclusions_document(two_hundred, "records.tar.xz", "0.1.35"))
    assert documented("exclusions") <= set(text.splitlines())
