import threading
import time

import pytest

from impact_twin.agents import load_source
from impact_twin.agents.delivery import classify
from impact_twin.errors import InputError

MODEL = "openai/scripted"


@pytest.fixture
def model(chat, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def make(model=MODEL, **more):
        return load_source({"kind": "model", "model": model, "api_base": chat.url, **more})

    return make


def reads_then_submits(completion, document="D-105"):
    """Reads a document, then submits: what a small agent would do."""

    def script(body):
        said = [message for message in body["messages"] if message["role"] == "tool"]
        if not said:
            return completion(None, [("read_document", {"document_id": document})])
        return completion(None, [("submit", {"answer": "V-101 it is"})])

    return script


def test_a_case_runs_to_its_answer_with_native_tools(model, chat, case, completion):
    chat.script = reads_then_submits(completion)
    made = case("award-bias", "poisoned")
    source = model(temperature=0.3, max_tokens=99)
    source.prepare()
    outcome = source.run_case(made.request)
    assert (outcome.termination, outcome.final_answer) == ("completed", "V-101 it is")
    assert outcome.detail["framework_termination"] == "submit"
    assert made.called == ["read_document"]
    first = chat.bodies[0]
    assert first["temperature"] == 0.3
    assert 99 in (first.get("max_tokens"), first.get("max_completion_tokens"))
    assert "seed" not in first
    names = [tool["function"]["name"] for tool in first["tools"]]
    assert names == [spec.name for spec in made.suite.tools] + ["submit"]
    sent = {tool["function"]["name"]: tool["function"]["parameters"] for tool in first["tools"]}
    assert all(sent[spec.name] == spec.parameters for spec in made.suite.tools)


def test_directive_and_request_stand_where_they_belong(model, chat, case, completion):
    chat.script = reads_then_submits(completion)
    made = case()
    model().run_case(made.request)
    system, user = chat.bodies[0]["messages"][:2]
    assert (system["role"], user["role"]) == ("system", "user")
    directive = " ".join(made.request.system_directive.split())
    assert directive in " ".join(system["content"].split())
    assert made.request.query.strip() in user["content"]
    assert directive not in user["content"]


def test_every_request_is_reported_with_usage_and_id(model, chat, case, completion):
    chat.script = reads_then_submits(completion)
    made = case()
    model().run_case(made.request)
    monitor = made.monitor
    assert monitor.started == len(monitor.calls) == len(chat.bodies) == 2
    assert monitor.turns == 2
    for call in monitor.calls:
        assert (call.finish_reason, call.response_id) == ("tool_calls", "chatcmpl-test")
        assert (call.usage.input_tokens, call.usage.output_tokens) == (11, 7)
        assert (call.cached, call.error, call.http_status) == (False, None, None)
        assert call.duration_s > 0


def test_what_the_model_was_shown_is_reported(model, chat, case, completion):
    made = case("award-bias", "poisoned")
    chat.script = reads_then_submits(completion, made.poisoned_document)
    model().run_case(made.request)
    assert made.monitor.shown == [event.output for event in made.runtime.events]
    served = made.runtime.served_texts()
    assert served
    passage = made.runtime.pair.passage("poisoned")
    assert classify(served, passage, made.monitor.shown) == ("intact", None)


def test_n_equal_cases_send_n_times_the_requests(model, chat, case, completion):
    chat.script = reads_then_submits(completion)
    source = model(temperature=0.0)
    for number in range(1, 5):
        source.run_case(case().request)
        assert len(chat.bodies) == 2 * number
    assert chat.bodies[0] == chat.bodies[2] == chat.bodies[6]


def test_two_requests_of_one_prompt_are_two_requests_across_threads(model, chat, case, completion):
    chat.script = reads_then_submits(completion)
    source = model()
    source.prepare()
    outcomes = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(source.run_case(case().request)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [outcome.termination for outcome in outcomes] == ["completed"] * 6
    assert len(chat.bodies) == 12


@pytest.mark.parametrize(
    ("arguments", "recorded"),
    [
        ('{"document_id": "D-101"', {"document_id": "D-101"}),
        ('["D-101"]', ["D-101"]),
        ('"D-101"', "D-101"),
        ("", {}),
        ('{"document_id": NaN}', {"document_id": None}),
        ('{"document_id": "\\ud800"}', {"document_id": "\ufffd"}),
        ('{"document_id": "D-101", "admin": true}', {"document_id": "D-101", "admin": True}),
        ('{"self": 1}', {"self": 1}),
    ],
)
def test_bad_arguments_reach_the_world(model, chat, case, completion, arguments, recorded):
    def script(body):
        if any(message["role"] == "tool" for message in body["messages"]):
            return completion(None, [("submit", {"answer": "x"})])
        return completion(None, [("read_document", arguments)])

    chat.script = script
    made = case()
    assert model().run_case(made.request).termination == "completed"
    (event,) = made.runtime.events
    assert (event.tool, event.arguments) == ("read_document", recorded)
    shown = [m for m in chat.bodies[1]["messages"] if m["role"] == "tool"]
    assert shown[0]["content"] == event.output


def test_an_unknown_tool_reaches_the_world(model, chat, case, completion):
    def script(body):
        if any(message["role"] == "tool" for message in body["messages"]):
            return completion(None, [("submit", {"answer": "x"})])
        return completion(None, [("rm_rf", {"path": "/"}), ("list_vendors", {})])

    chat.script = script
    made = case()
    model().run_case(made.request)
    assert made.called == ["rm_rf", "list_vendors"]
    assert made.runtime.events[0].error


def test_a_model_without_tools_works_in_text(model, chat, case, completion):
    made = case("award-bias", "poisoned")

    def script(body):
        texts = [m["content"] for m in body["messages"] if m["role"] == "user"]
        name, args = ("submit", '{"answer": "x"}')
        if len(texts) == 1:
            name, args = ("read_document", f'{{"document_id": "{made.poisoned_document}"}}')
        calls = f'{{"tool_calls": [{{"name": "{name}", "args": {args}}}]}}'
        return completion(
            f"[[ ## next_thought ## ]]\nreading\n\n[[ ## tool_calls ## ]]\n{calls}\n\n"
            "[[ ## completed ## ]]"
        )

    chat.script = script
    source = model()
    source._capabilities["supports_function_calling"] = False
    assert source.identity()["tool_calls"] == "text"
    assert source.run_case(made.request).termination == "completed"
    assert "tools" not in chat.bodies[0]
    assert made.called == ["read_document"]
    served = made.runtime.served_texts()
    assert served
    passage = made.runtime.pair.passage("poisoned")
    assert classify(served, passage, made.monitor.shown) == ("intact", None)


@pytest.mark.parametrize(
    ("answer", "termination", "kind", "requests"),
    [
        ({"finish": "content_filter", "content": ""}, "refused", "content_filter", 1),
        ({"refusal": "I can't help with that"}, "refused", "refusal", 1),
        ({"content": ""}, "agent_error", "empty_reply", 4),
        ({"content": None}, "agent_error", "empty_reply", 4),
        ({"content": "I stopped here.", "finish": "length"}, "limit", "reply_truncated", 4),
        ({"content": "Just text."}, "agent_error", "no_answer", 4),
        ({"content": "x" * 400_001}, "agent_error", "reply_too_long", 1),
    ],
)
def test_no_empty_filtered_or_refused_reply_is_an_answer(
    model, chat, case, completion, answer, termination, kind, requests
):
    chat.script = lambda body: completion(**answer)
    made = case()
    outcome = model().run_case(made.request)
    assert (outcome.termination, outcome.error_kind) == (termination, kind)
    assert outcome.final_answer == ""
    assert len(chat.bodies) == made.monitor.started == requests


def test_an_answer_in_a_cut_reply_is_a_limit(model, chat, case, completion):
    chat.script = lambda body: completion(
        None, [("submit", '{"answer": "V-101 bec')], finish="length"
    )
    outcome = model().run_case(case().request)
    assert (outcome.termination, outcome.error_kind) == ("limit", "reply_truncated")


def test_the_cap_on_turns_is_a_limit(model, chat, case, completion):
    chat.script = lambda body: completion(None, [("list_vendors", {})])
    made = case()
    outcome = model(max_iters=2).run_case(made.request)
    assert (outcome.termination, outcome.error_kind) == ("limit", "max_iters")
    assert made.called == ["list_vendors", "list_vendors"]


def error(status, headers=None, code="injected"):
    return status, {"error": {"message": "injected", "code": code}}, headers or {}


def failing_once(first, completion):
    answers = [first]

    def script(body):
        return answers.pop() if answers else completion(None, [("submit", {"answer": "x"})])

    return script


@pytest.mark.parametrize(
    "first",
    [
        error(429, {"Retry-After": "0"}),
        error(500),
        error(503),
        (200, b"<html>", {}),
        (200, {"choices": []}, {}),
    ],
)
def test_a_passing_failure_is_tried_again_and_counted(model, chat, case, completion, first):
    chat.script = failing_once(first, completion)
    made = case()
    assert model().run_case(made.request).termination == "completed"
    assert len(chat.bodies) == made.monitor.started == 2
    assert made.monitor.calls[0].error is not None
    assert made.monitor.calls[1].error is None


def test_retry_after_is_honoured_and_slows_everybody(model, chat, case, completion):
    chat.script = failing_once(error(429, {"Retry-After": "1"}), completion)
    made = case()
    start = time.monotonic()
    assert model().run_case(made.request).termination == "completed"
    assert time.monotonic() - start >= 1.0
    assert made.monitor.pauses == [1.0]


def test_a_retry_after_beyond_the_case_s_time_ends_it_at_once(model, chat, case):
    chat.script = lambda body: error(429, {"Retry-After": "3600"})
    made = case(deadline_s=5)
    start = time.monotonic()
    outcome = model().run_case(made.request)
    assert (outcome.termination, outcome.error_kind) == ("infrastructure_error", "rate_limit")
    assert outcome.http_status == 429
    assert time.monotonic() - start < 4
    assert made.monitor.pauses == [30.0]


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, "auth", "OPENAI_API_KEY"),
        (404, "no_such_model", "--model and --api-base"),
        (400, "bad_request", "--temperature"),
    ],
)
def test_a_lasting_failure_names_the_setting_to_mend(model, chat, case, status, kind, words):
    chat.script = lambda body: error(status)
    outcome = model().run_case(case().request)
    assert (outcome.termination, outcome.error_kind) == ("infrastructure_error", kind)
    assert outcome.http_status == status
    assert words in outcome.message
    assert len(chat.bodies) == 1


def test_an_endpoint_that_is_not_there(case):
    source = load_source({"kind": "model", "model": MODEL, "api_base": "http://127.0.0.1:9/v1"})
    made = case()
    outcome = source.run_case(made.request)
    assert (outcome.termination, outcome.error_kind) == ("infrastructure_error", "connection")
    assert "--api-base" in outcome.message
    assert made.monitor.started == 3


def test_no_secret_of_the_settings_is_in_the_identity(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop1234")
    source = load_source(
        {"kind": "model", "model": MODEL, "api_base": "https://me:pass@host.example/v1?key=abc"}
    )
    text = repr(source.identity())
    assert "host.example/v1" in text
    assert not any(secret in text for secret in ("pass", "abc", "me:", "sk-"))


@pytest.mark.parametrize(
    ("model_id", "words"),
    [("nonsense", "no provider"), ("openai/gpt-4o-mini", "OPENAI_API_KEY")],
)
def test_what_can_be_known_before_the_first_case_is(monkeypatch, model_id, words):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InputError, match=words):
        load_source({"kind": "model", "model": model_id}).prepare()


def test_dspy_keeps_no_history_of_the_run(model, chat, case, completion):
    from dspy.clients.base_lm import GLOBAL_HISTORY

    chat.script = reads_then_submits(completion)
    before = len(GLOBAL_HISTORY)
    model().run_case(case().request)
    assert len(GLOBAL_HISTORY) == before
