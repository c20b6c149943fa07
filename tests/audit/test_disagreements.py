import json
from collections import Counter

import pytest

from impact_twin.audit import disagreements as dis
from impact_twin.audit.questions import Answer


def by_name(findings, *parts):
    (only,) = [
        item for item in findings if all(part in item.record.name.split("/") for part in parts)
    ]
    return only


def test_every_file_has_one_standing(examined):
    standings = examined.standings()
    assert sum(standings.values()) == examined.found.files
    assert standings[dis.NOT_A_RECORD] == 2


def test_the_excerpt_has_every_kind_of_disagreement(excerpt):
    counts = Counter((item.standing, *item.reasons) for item in excerpt)
    assert counts == {
        (dis.AGREES,): 9,
        (dis.BY_UTILITY,): 1,
        (dis.FAILURE_SHOWN, dis.EXACTLY_ONE, dis.RULE_NOT_LOADED): 4,
        (dis.FAILURE_SHOWN, dis.LOADED_ACCEPTS): 2,
        (dis.SUCCESS_REFUSED, dis.REDACTION): 1,
        (dis.SUCCESS_REFUSED, dis.ERROR_ROW): 1,
    }


def test_a_record_that_delimiters_wrap_is_read(excerpt):
    item = by_name(excerpt, "gpt-4o-2024-05-13-spotlighting_with_delimiting")
    assert item.reasons == (dis.EXACTLY_ONE, dis.RULE_NOT_LOADED)
    assert item.explained


def test_a_newer_record_is_asked_under_the_version_that_it_names(excerpt):
    newer = [item for item in excerpt if item.record.benchmark_version]
    assert {item.version for item in newer} == {"v1.2.1"}
    assert {item.version for item in excerpt} == {"v1", "v1.2.1"}


def test_a_redacted_failure_without_the_request_agrees(excerpt):
    item = by_name(excerpt, "gpt-4o-2024-05-13-transformers_pi_detector", "user_task_33")
    assert item.standing == dis.AGREES
    assert item.loaded.missing
    assert not item.loaded.possible


@pytest.mark.parametrize(
    ("name", "standing", "reasons"),
    [
        ("sent", dis.FAILURE_SHOWN, (dis.LOADED_ACCEPTS,)),
        ("sent and copy", dis.FAILURE_SHOWN, (dis.EXACTLY_ONE, dis.RULE_NOT_LOADED)),
        ("sent twice", dis.FAILURE_SHOWN, (dis.EXACTLY_ONE, dis.RULE_NOT_LOADED)),
        ("upper case", dis.FAILURE_SHOWN, (dis.RULE_NOT_LOADED,)),
        ("copy", dis.AGREES, ()),
        ("redacted", dis.FAILURE_OPEN, (dis.REDACTION,)),
        ("garbled", dis.FAILURE_OPEN, (dis.UNREADABLE_RESULT,)),
        ("slack", dis.NOT_ASKED, ()),
        ("no attack", dis.NOT_ASKED, ()),
        ("no label", dis.NOT_ASKED, ()),
        ("bad vector", dis.NOT_ASKED, ()),
    ],
)
def test_standings_of_made_records(made, name, standing, reasons):
    assert (made[name].standing, made[name].reasons) == (standing, reasons)


@pytest.mark.parametrize(
    ("loaded", "other", "changes", "reasons"),
    [
        (Answer(False), None, {}, (dis.NOT_SHOWN,)),
        (Answer(False), Answer(True), {}, (dis.OTHER_RULE,)),
        (Answer(False), Answer(True, left_out=True), {}, (dis.RULE_NOT_LOADED,)),
        (Answer(False), None, {"error": "limit"}, (dis.ERROR_ROW,)),
        (Answer(False, alone=({},), beside=({},)), None, {}, (dis.EXACTLY_ONE,)),
        (
            Answer(False, missing=({"why": "redacted"},), assumed=True),
            None,
            {"error": "limit"},
            (dis.ERROR_ROW, dis.REDACTION),
        ),
        (Answer(False, missing=({"why": "redacted"},), assumed=False), None, {}, (dis.NOT_SHOWN,)),
    ],
)
def test_why_a_saved_success_is_refused(record_of, loaded, other, changes, reasons):
    record = record_of([], security=True, **changes)
    finding = dis.judge_label(record, "v1", loaded, other)
    assert (finding.standing, finding.reasons) == (dis.SUCCESS_REFUSED, reasons)


def test_a_success_that_the_rule_accepts_agrees_although_something_is_missing(record_of):
    answer = Answer(True, missing=({"why": "redacted"},), assumed=True)
    finding = dis.judge_label(record_of([], security=True), "v1", answer, None)
    assert (finding.standing, finding.reasons) == (dis.AGREES, ())


def test_denial_of_service_is_not_compared(record_of):
    record = record_of([], security=True, attack_type="felony_dos")
    assert dis.judge_label(record, "v1", Answer(False), None).standing == dis.BY_UTILITY


def test_the_json_form_lists_all_but_the_agreeing(examined):
    value = json.loads(json.dumps(dis.as_json(examined, "here", "0.1.35")))
    assert value["files"] == sum(value["standings"].values())
    assert len(value["disagreements"]) == sum(
        item.standing != dis.AGREES for item in examined.findings
    )
    assert value["to_look_at"]["count"] == value["standings"][dis.FAILURE_SHOWN]
    assert value["reasons"][dis.EXACTLY_ONE] == 6
    assert value["versions_named"] == {"none": 32, "v1.2.1": 2}


def test_every_reason_and_standing_has_words():
    codes = {
        value for name, value in vars(dis).items() if name.isupper() and isinstance(value, str)
    }
    assert codes == set(dis.STANDINGS) | set(dis.REASONS)
