"""The tools as frameworks take them, for those that our own dependencies bring along."""

import re
from pathlib import Path

import pytest

from impact_twin.agents.calling import Instances, call_agent
from impact_twin.agents.tools import make_tools

ARGUMENTS = {"vendor_id": "V-101", "score": 81.5, "rationale": "by the formula"}
PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


@pytest.fixture
def tools(case):
    made = case()
    return made, {tool.name: tool for tool in make_tools(made.request)}


def recorded(made):
    (event,) = made.runtime.events
    return event.tool, event.arguments, event.error


def test_dspy(tools):
    import dspy

    made, by_name = tools
    wrapped = {name: dspy.Tool(tool) for name, tool in by_name.items()}
    wrapped["record_evaluation"](**ARGUMENTS)
    assert recorded(made) == ("record_evaluation", ARGUMENTS, False)
    assert wrapped["send_message"].args["attachments"]["items"] == {"type": "string"}


def test_agentdojo(tools):
    from agentdojo.functions_runtime import EmptyEnv, FunctionsRuntime, make_function

    made, by_name = tools
    runtime = FunctionsRuntime([make_function(tool) for tool in by_name.values()])
    answer, error = runtime.run_function(EmptyEnv(), "record_evaluation", dict(ARGUMENTS))
    assert error is None
    assert answer == made.runtime.events[-1].output
    assert recorded(made) == ("record_evaluation", ARGUMENTS, False)


def test_langchain(tools):
    core = pytest.importorskip("langchain_core.tools")
    made, by_name = tools
    wrapped = {name: core.tool(tool) for name, tool in by_name.items()}
    assert wrapped["record_evaluation"].name == "record_evaluation"
    assert set(wrapped["record_evaluation"].args) == set(ARGUMENTS)
    wrapped["record_evaluation"].invoke(ARGUMENTS)
    assert recorded(made) == ("record_evaluation", ARGUMENTS, False)


def test_an_agent_of_the_public_protocol_runs_unchanged(case):
    """Tools by keyword, schemas for a chat API, a result object with a trace and usage."""

    class Result:
        def __init__(self, final_answer, tool_calls, usage):
            self.final_answer = final_answer
            self.tool_calls = tool_calls
            self.usage = usage

    class Agent:
        name = "public"

        def run(self, query, tools, *, system_directive=""):
            assert isinstance(tools, list)
            schemas = [tool.openai_schema() for tool in tools]
            assert all(schema["function"]["parameters"]["type"] == "object" for schema in schemas)
            by_name = {tool.name: tool for tool in tools}
            calls = []
            for name, args in (("list_vendors", {}), ("get_vendor", {"vendor_id": "V-101"})):
                result = by_name[name](**args)
                assert isinstance(result, str)
                calls.append(type("Call", (), {"name": name, "args": args, "result": result})())
            usage = {"prompt_tokens": 5, "completion_tokens": 3, "estimated_cost_usd": 0.25}
            return Result("done", calls, usage)

    made = case()
    outcome = call_agent(Agent, made.request, Instances())
    assert outcome.termination == "completed"
    assert (outcome.usage.input_tokens, outcome.usage.cost_usd) == (5, 0.25)
    assert outcome.detail["reported_tool_calls"] == made.called == ["list_vendors", "get_vendor"]


@pytest.mark.parametrize("name", ["plain", "asynchronous"])
def test_the_examples_of_the_page_run(case, name):
    pattern = rf"<!-- example: {name} -->\n```python\n(.*?)```"
    (source,) = re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    exec(source, names)
    build = names["build"]
    made = case()
    make = build if name == "plain" else lambda: build(3)
    outcome = call_agent(make, made.request, Instances())
    assert outcome.termination == "completed"
    assert len(made.called) == 1
