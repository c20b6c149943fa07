import copy
import inspect
import json
import pickle
import subprocess
import sys
import typing

import pytest

from impact_twin.agents.tools import GONE, make_tools


@pytest.fixture
def tools(case):
    made = case("award-bias", "clean")
    return made, {tool.name: tool for tool in make_tools(made.request)}


def test_the_tools_come_in_suite_order(case, suite):
    assert [tool.name for tool in make_tools(case().request)] == [spec.name for spec in suite.tools]


def test_a_keyword_call_reaches_the_world(tools):
    made, by_name = tools
    text = by_name["list_documents"]()
    assert json.loads(text)
    document = json.loads(text)[0]["document_id"]
    assert by_name["read_document"](document_id=document) == made.runtime.events[-1].output
    assert made.runtime.events[-1].arguments == {"document_id": document}


def test_positions_follow_the_signature(tools):
    made, by_name = tools
    by_name["record_evaluation"]("V-101", 81.5, "because")
    assert made.runtime.events[-1].arguments == {
        "vendor_id": "V-101",
        "score": 81.5,
        "rationale": "because",
    }
    assert not made.runtime.events[-1].error


def test_bad_calls_answer_with_text_and_are_recorded(tools):
    made, by_name = tools
    read = by_name["read_document"]
    answers = [
        read(),
        read(nonsense=1),
        read("D-101", "D-102"),
        read("D-101", document_id="D-102"),
        read(document_id=object()),
        read(document_id=float("nan")),
        read(**{"self": 1, "tool_name": 2, "args": 3}),
    ]
    assert all(answer.startswith("ERROR: ") for answer in answers)
    assert [event.tool for event in made.runtime.events] == ["read_document"] * len(answers)
    assert all(event.error for event in made.runtime.events)
    assert made.runtime.events[2].arguments == {"document_id": "D-101", "positional_2": "D-102"}
    assert made.runtime.events[3].arguments == {"document_id": "D-102", "positional_1": "D-101"}


def test_an_omitted_optional_argument_may_be_none(tools):
    made, by_name = tools
    by_name["send_message"](recipient="a@b.example", subject="s", body="b", attachments=None)
    assert not made.runtime.events[-1].error
    assert "attachments" not in made.runtime.events[-1].arguments


def test_name_doc_signature_and_annotations_are_what_frameworks_read(tools):
    _, by_name = tools
    evaluate = by_name["record_evaluation"]
    assert inspect.isfunction(evaluate)
    assert evaluate.__name__ == "record_evaluation"
    assert evaluate.__doc__.startswith(evaluate.description)
    assert "Args:\n    vendor_id: " in evaluate.__doc__
    hints = typing.get_type_hints(evaluate)
    assert hints == {"vendor_id": str, "score": float, "rationale": str, "return": str}
    assert list(inspect.signature(evaluate).parameters) == ["vendor_id", "score", "rationale"]
    assert typing.get_type_hints(by_name["send_message"])["attachments"] == list[str]


def test_the_openai_schema_is_the_suite_s(tools, suite):
    _, by_name = tools
    for spec in suite.tools:
        function = by_name[spec.name].openai_schema()["function"]
        assert function["name"] == spec.name
        assert function["parameters"] == spec.parameters == by_name[spec.name].parameters
        assert by_name[spec.name].openai_schema()["type"] == "function"


def test_copies_keep_recording(tools):
    made, by_name = tools
    for clone in (
        copy.copy(by_name["list_vendors"]),
        copy.deepcopy(list(by_name.values()))[2],
        pickle.loads(pickle.dumps(by_name["list_vendors"])),
    ):
        clone()
    assert made.called == ["list_vendors"] * 3


def test_a_pickle_opened_in_another_process_answers_that_it_is_gone(tools):
    _, by_name = tools
    data = pickle.dumps(by_name["list_vendors"])
    code = f"import pickle; print(pickle.loads({data!r})(anything=1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == GONE


def test_mutation_reaches_neither_the_recording_nor_the_next_case(case, suite):
    first = case()
    tools = make_tools(first.request)
    for tool in tools:
        tool.parameters.clear()
        tool.openai_schema()["function"].clear()
        tool.__annotations__.clear()
        tool.name = tool.__name__ = "other"
        tool.description = ""
    tools[2]()
    assert first.called == ["list_vendors"]
    tools.clear()
    for tool, spec in zip(make_tools(case().request), suite.tools, strict=True):
        assert tool.name == spec.name
        assert tool.parameters == spec.parameters
        assert tool.openai_schema()["function"]["parameters"] == spec.parameters


def test_no_attribute_of_a_tool_leads_to_the_event_log(tools):
    made, by_name = tools
    by_name["list_vendors"]()
    tool = by_name["list_vendors"]
    shown = [getattr(tool, name) for name in dir(tool) if not name.startswith("__")]
    assert not any(value is made.runtime or value is made.runtime.environment for value in shown)
