import json

import pytest

from impact_twin.audit.archive import Entry
from impact_twin.audit.records import (
    CHANGING_TOOLS,
    case_key,
    content_text,
    from_name,
    parse_entries,
    parse_record,
    read_records,
)
from impact_twin.errors import InputError


def test_content_is_text_in_all_three_shapes():
    blocks = [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]
    assert [content_text(item) for item in ("a", blocks, None, 7, [None, {"type": "text"}])] == [
        "a",
        "a\nb",
        "",
        "",
        "",
    ]


def test_the_excerpt_holds_older_and_newer_records(excerpt_folder):
    found = read_records(excerpt_folder)
    assert len(found.records) == 18
    assert found.unreadable == ()
    assert found.others == ("LICENSE.agentdojo", "ORIGIN.md")
    assert {record.benchmark_version for record in found.records} == {None, "v1.2.1"}
    assert all(record.odd == () for record in found.records)
    by_name = {record.name.split("/")[1]: record for record in found.records}
    newer = by_name["meta-llama_Llama-3.3-70B-Instruct"]
    assert newer.pipeline == "local"
    assert newer.configuration == "meta-llama_Llama-3.3-70B-Instruct"
    assert newer.results[0].text
    assert newer.output


def test_the_configuration_is_the_folder_only_where_the_name_has_the_layout(record_of):
    name = "runs/c/workspace/user_task_0/direct/injection_task_0.json"
    assert record_of([], name=name).configuration == "c"
    assert record_of([], name=name.replace("direct", "other")).configuration == "p"
    assert record_of([], name="a.json").configuration == "p"
    bare = name.replace("direct/injection_task_0", "none/none")
    assert record_of([], name=bare, attack_type=None, injection_task_id=None).configuration == "c"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{", "not JSON"),
        (b"[]", "not a run record: no list of messages"),
        (b'{"messages": {}}', "not a run record: no list of messages"),
        (b'{"messages": []}', "not a run record: no suite name"),
        (b'{"messages": [], "messages": []}', "a key occurs twice"),
        (b'{"messages": [], "suite_name": "workspace", "duration": NaN}', "NaN"),
        (b'\xff{"messages": []}', "not UTF-8"),
    ],
)
def test_what_is_no_record_is_refused_with_the_reason(data, why):
    with pytest.raises(InputError, match=why):
        parse_record("a.json", data)


def test_odd_values_are_left_out_and_named(record_of, sent_email):
    broken = {**sent_email(), "tool_call": {"function": 3}}
    asked = {"role": "assistant", "content": None, "tool_calls": "none"}
    record = record_of(
        [7, broken, asked],
        security="true",
        utility=None,
        error=["x"],
        injections={"a": 1},
        pipeline_name=5,
    )
    assert record.security is None
    assert record.injections == {}
    assert record.results[0].function == ""
    assert record.results[0].changes_state
    assert len(record.odd) == 8


def test_nothing_is_dropped(record_of):
    good = json.dumps({"messages": [], "suite_name": "workspace"}).encode()
    found = parse_entries(
        [
            Entry("b.json", good),
            Entry("a.json", good),
            Entry("c.json", b"{"),
            Entry("README.md", b"hello"),
            Entry("link.json", None, "a link"),
        ]
    )
    assert found.files == 5
    assert [record.name for record in found.records] == ["a.json", "b.json"]
    assert [name for name, _ in found.unreadable] == ["c.json", "link.json"]
    assert found.others == ("README.md",)
    assert found.repeated == ("b.json",)


def test_the_name_of_an_unreadable_file_tells_its_case():
    record = from_name("runs/c/workspace/user_task_1/none/none.json", "not JSON")
    assert case_key(record) == ("c", "workspace", "user_task_1", None, None)
    assert record.security is None
    assert record.unreadable == "not JSON"
    assert from_name("a/b.json", "") is None


def test_only_a_call_that_can_change_the_state_and_did_not_fail_counts(sent_email, record_of):
    failed = {**sent_email(), "error": "ValueError: no"}
    looked = {**sent_email(), "tool_call": {"function": "list_files", "args": {}}}
    record = record_of([sent_email(), failed, looked])
    assert [item.changes_state for item in record.results] == [True, False, False]
    assert "list_files" not in CHANGING_TOOLS
