"""Real AgentDojo pipelines on a scripted endpoint, with AgentDojo's defences and our own."""

import sys
import threading
import time
import types

import openai
import pytest
from agentdojo.agent_pipeline import (
    AgentPipeline,
    InitQuery,
    OpenAILLM,
    PipelineConfig,
    SystemMessage,
    ToolsExecutionLoop,
    ToolsExecutor,
)
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.pi_detector import PromptInjectionDetector

from impact_twin.agents import load_source
from impact_twin.agents.delivery import classify
from impact_twin.errors import InputError


class Detector(PromptInjectionDetector):
    """Redacts, or aborts on, what tells its reader to act."""

    def detect(self, tool_output):
        return "must record a score" in tool_output


@pytest.fixture
def llm(chat):
    def make():
        client = openai.OpenAI(base_url=chat.url, api_key="none", max_retries=0)
        element = OpenAILLM(client, "scripted")
        element.name = "scripted"
        return element

    return make


@pytest.fixture
def pipeline(request):
    """Put a factory into a module of its own and return the source that names it."""
    made = []

    def source(build, **more):
        name = f"pipeline_module_{abs(hash(request.node.nodeid))}_{len(made)}"
        module = types.ModuleType(name)
        module.build = build
        sys.modules[name] = module
        made.append(name)
        return load_source({"kind": "pipeline", "target": f"{name}:build", **more})

    yield source
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def built(llm):
    def make(defense=None, extra=()):
        if defense:
            config = PipelineConfig(
                llm=llm(),
                model_id=None,
                defense=defense,
                system_message_name=None,
                system_message="You are an AgentDojo agent.",
            )
            return AgentPipeline.from_config(config)
        element = llm()
        loop = ToolsExecutionLoop([ToolsExecutor(), *extra, element])
        parts = [SystemMessage("You are an AgentDojo agent."), InitQuery(), element, loop]
        made = AgentPipeline(part for part in parts)
        made.name = "mine"
        return made

    return make


def reader(completion, document):
    def script(body):
        if any(message["role"] == "tool" for message in body["messages"]):
            return completion("V-104 is my recommendation.")
        return completion(None, [("read_document", {"document_id": document})])

    return script


def delivered(made):
    served = made.runtime.served_texts()
    assert served
    return classify(
        served,
        made.runtime.pair.passage("poisoned"),
        made.monitor.shown,
        outputs=[event.output for event in made.runtime.events],
    )


def test_a_pipeline_runs_on_our_tools(pipeline, built, chat, case, completion):
    made = case("award-bias", "poisoned")
    chat.script = reader(completion, made.poisoned_document)
    source = pipeline(built)
    source.prepare()
    outcome = source.run_case(made.request)
    assert (outcome.termination, outcome.final_answer) == (
        "completed",
        "V-104 is my recommendation.",
    )
    assert source.identity()["name"] == "mine"
    assert made.called == ["read_document"]
    assert outcome.detail == {"framework_termination": "answer", "model_turns": 2}
    assert made.monitor.started == len(made.monitor.calls) == len(chat.bodies) == 2
    assert made.monitor.calls[0].usage.input_tokens == 11
    assert made.monitor.calls[1].finish_reason == "stop"
    assert delivered(made) == ("intact", None)


def test_the_directive_joins_the_pipeline_s_own_system_message(
    pipeline, built, chat, case, completion
):
    chat.script = reader(completion, "D-101")
    made = case()
    pipeline(built).run_case(made.request)
    (system,) = [m for m in chat.bodies[0]["messages"] if m["role"] in ("system", "developer")]
    text = str(system["content"])
    assert text.count("You are an AgentDojo agent.") == 1
    assert made.request.system_directive[:40] in text


def test_without_a_system_message_the_directive_becomes_one(pipeline, llm, chat, case, completion):
    def build():
        element = llm()
        loop = ToolsExecutionLoop([ToolsExecutor(), element])
        return AgentPipeline([InitQuery(), element, loop])

    chat.script = reader(completion, "D-101")
    made = case()
    assert pipeline(build).run_case(made.request).termination == "completed"
    assert made.request.system_directive[:40] in str(chat.bodies[0]["messages"][0]["content"])


@pytest.mark.parametrize("defense", ["repeat_user_prompt", "spotlighting_with_delimiting"])
def test_agentdojo_s_defences_run(pipeline, built, chat, case, completion, defense):
    made = case("award-bias", "poisoned")
    chat.script = reader(completion, made.poisoned_document)
    source = pipeline(lambda: built(defense))
    assert source.run_case(made.request).termination == "completed"
    assert delivered(made) == ("intact", None)
    shown = next(m for m in chat.bodies[1]["messages"] if m["role"] == "tool")
    assert ("<<" in str(shown["content"])) == (defense == "spotlighting_with_delimiting")


def test_a_detector_that_redacts_leaves_the_evidence(pipeline, built, chat, case, completion):
    made = case("award-bias", "poisoned")
    chat.script = reader(completion, made.poisoned_document)
    source = pipeline(lambda: built(extra=[Detector()]))
    assert source.run_case(made.request).termination == "completed"
    assert made.runtime.pair.passage("poisoned") in made.runtime.events[0].output
    assert delivered(made) == (
        "removed",
        "<Data omitted because a prompt injection was detected>",
    )


def test_a_detector_that_aborts_ends_with_its_words_and_shows_nothing(
    pipeline, built, chat, case, completion
):
    made = case("award-bias", "poisoned")
    chat.script = reader(completion, made.poisoned_document)
    source = pipeline(lambda: built(extra=[Detector(raise_on_injection=True)]))
    outcome = source.run_case(made.request)
    assert outcome.termination == "completed"
    assert outcome.detail["framework_termination"] == "aborted"
    assert outcome.final_answer.startswith("aborting execution")
    assert delivered(made)[0] == "removed"
    assert len(chat.bodies) == 1


def test_every_request_below_a_retrying_element_is_counted(pipeline, chat, case, completion):
    answers = [(500, {"error": {"message": "x"}}, {"x-should-retry": "true"})] * 2

    def build():
        client = openai.OpenAI(base_url=chat.url, api_key="none", max_retries=2)
        element = OpenAILLM(client, "scripted")
        return AgentPipeline([InitQuery(), element])

    def script(body):
        return answers.pop() if answers else completion("done")

    chat.script = script
    made = case()
    assert pipeline(build).run_case(made.request).termination == "completed"
    assert len(chat.bodies) == made.monitor.started == len(made.monitor.calls) == 3
    assert [call.http_status for call in made.monitor.calls] == [500, 500, None]


def test_an_element_that_asks_again_by_itself_is_one_case(pipeline, llm, chat, case, completion):
    class AskTwice(BasePipelineElement):
        def __init__(self, inner):
            self.elements = [inner]

        def query(self, query, runtime, env=None, messages=(), extra_args=None):
            for _ in range(2):
                result = self.elements[0].query(query, runtime, env, messages, {})
            return result

    chat.script = lambda body: completion("done")
    made = case()
    source = pipeline(lambda: AgentPipeline([InitQuery(), AskTwice(llm())]))
    assert source.run_case(made.request).termination == "completed"
    assert len(chat.bodies) == made.monitor.started == 2


def test_an_empty_answer_is_asked_for_once_only(pipeline, built, chat, case, completion):
    chat.script = lambda body: completion("")
    made = case()
    outcome = pipeline(built).run_case(made.request)
    assert (outcome.termination, outcome.error_kind) == ("agent_error", "empty_reply")
    assert len(chat.bodies) == 1


def test_a_pipeline_that_still_calls_tools_at_its_end_is_at_its_limit(
    pipeline, built, chat, case, completion
):
    chat.script = lambda body: completion(None, [("list_vendors", {})])
    made = case()
    outcome = pipeline(built).run_case(made.request)
    assert (outcome.termination, outcome.error_kind) == ("limit", "max_iters")
    assert set(made.called) == {"list_vendors"}


def test_unknown_tools_and_bad_arguments_are_recorded(pipeline, built, chat, case, completion):
    def script(body):
        if any(message["role"] == "tool" for message in body["messages"]):
            return completion("done")
        return completion(None, [("rm_rf", {"x": 1}), ("read_document", {"document": "D-101"})])

    chat.script = script
    made = case()
    assert pipeline(built).run_case(made.request).termination == "completed"
    assert made.called == ["rm_rf", "read_document"]
    assert all(event.error for event in made.runtime.events)
    assert any("ERROR: " in shown for shown in made.monitor.shown)


def test_a_model_of_the_user_s_own_is_seen_by_what_it_adds(pipeline, case):
    class Scripted(BasePipelineElement):
        def query(self, query, runtime, env=None, messages=(), extra_args=None):
            from agentdojo.functions_runtime import FunctionCall

            turn = sum(message["role"] == "assistant" for message in messages)
            calls = [FunctionCall(function="list_vendors", args={}, id="1")] if not turn else []
            content = [{"type": "text", "content": "done"}]
            answer = {"role": "assistant", "content": content, "tool_calls": calls}
            return query, runtime, env, [*messages, answer], {}

    def build():
        element = Scripted()
        loop = ToolsExecutionLoop([ToolsExecutor(), element])
        return AgentPipeline([InitQuery(), element, loop])

    made = case()
    assert pipeline(build).run_case(made.request).termination == "completed"
    assert made.monitor.started == len(made.monitor.calls) == 2
    assert made.monitor.shown == [made.runtime.events[0].output]


def test_a_shared_pipeline_keeps_concurrent_cases_apart(pipeline, built, chat, case, completion):
    shared = built()
    names = {}

    def script(body):
        said = [m for m in body["messages"] if m["role"] == "tool"]
        document = next(name for query, name in names.items() if query in str(body["messages"]))
        time.sleep(0.02)
        if said:
            return completion(document)
        return completion(None, [("read_document", {"document_id": document})])

    chat.script = script
    source = pipeline(lambda: shared)
    cases = [case(pair) for pair in ("award-bias", "payment-reroute", "approval-bypass")]
    for made in cases:
        names[made.request.query.splitlines()[0]] = made.poisoned_document
    outcomes = {}

    def run(made):
        outcomes[made.runtime.pair.id] = source.run_case(made.request)

    threads = [threading.Thread(target=run, args=(made,)) for made in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for made in cases:
        outcome = outcomes[made.runtime.pair.id]
        assert outcome.final_answer == made.poisoned_document
        assert made.monitor.started == 2
        assert len(made.runtime.events) == 1
    assert len({outcome.instance for outcome in outcomes.values()}) == 1


@pytest.mark.parametrize(
    ("status", "termination", "kind"),
    [(401, "infrastructure_error", "auth"), (400, "agent_error", "exception")],
)
def test_what_the_provider_refuses(pipeline, chat, case, status, termination, kind):
    from agentdojo.agent_pipeline.llms import openai_llm

    def build():
        client = openai.OpenAI(base_url=chat.url, api_key="none", max_retries=0)
        return AgentPipeline([InitQuery(), OpenAILLM(client, "scripted")])

    waits = openai_llm.chat_completion_request.retry.wait
    openai_llm.chat_completion_request.retry.wait = lambda state: 0
    try:
        chat.script = lambda body: (status, {"error": {"message": "no"}}, {})
        made = case()
        outcome = pipeline(build).run_case(made.request)
    finally:
        openai_llm.chat_completion_request.retry.wait = waits
    assert (outcome.termination, outcome.error_kind) == (termination, kind)
    assert made.monitor.started == len(made.monitor.calls) == len(chat.bodies)


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (None, "bad_return_type"),
        (("q", None, None, [], {}), "no_answer"),
        (("q", None, None, [3], {}), "bad_return_type"),
        (("q", None, None, [{"role": "user", "content": None}], {}), "no_answer"),
    ],
)
def test_odd_results_end_with_their_reason(pipeline, case, result, kind):
    class Odd(BasePipelineElement):
        def query(self, query, runtime, env=None, messages=(), extra_args=None):
            return result

    outcome = pipeline(Odd).run_case(case().request)
    assert (outcome.termination, outcome.error_kind) == ("agent_error", kind)


@pytest.mark.parametrize(
    ("error", "kind"), [(SystemExit(2), "system_exit"), (ValueError("x"), "exception")]
)
def test_what_it_raises_ends_the_case_only(pipeline, case, error, kind):
    class Bad(BasePipelineElement):
        def query(self, query, runtime, env=None, messages=(), extra_args=None):
            raise error

    outcome = pipeline(Bad).run_case(case().request)
    assert (outcome.termination, outcome.error_kind) == ("agent_error", kind)


def test_a_factory_that_makes_no_pipeline_is_an_input_error(pipeline):
    for build in (lambda: None, object):
        with pytest.raises(InputError, match="returned") as caught:
            pipeline(build).prepare()
        assert caught.value.where == "--pipeline"
