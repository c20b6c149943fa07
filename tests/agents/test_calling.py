import asyncio
import threading
from types import SimpleNamespace

import pytest

from impact_twin.agents.calling import KEPT_ANSWER, MAX_ANSWER, Instances, call_agent
from impact_twin.agents.protocol import Usage


class Agent:
    name = "mine"

    def __init__(self, run):
        self.run = run


@pytest.fixture
def call(case):
    def go(run, made=None):
        made = made or case()
        return call_agent(lambda: Agent(run), made.request, Instances())

    return go


def returning(value):
    return lambda query, tools, *, system_directive="": value


def test_text_and_objects_are_answers(call):
    assert call(returning("done")).final_answer == "done"
    as_dict = call(returning({"final_answer": "done", "usage": {"prompt_tokens": 3}}))
    assert (as_dict.termination, as_dict.usage) == ("completed", Usage(3, 0, None))
    calls = [{"name": "list_vendors", "args": {}}, SimpleNamespace(name="get_vendor"), 3]
    thing = SimpleNamespace(
        final_answer="done",
        tool_calls=calls,
        usage=SimpleNamespace(input_tokens=1, output_tokens=2, cost_usd=0.5),
    )
    outcome = call(returning(thing))
    assert outcome.usage == Usage(1, 2, 0.5)
    assert outcome.detail == {"reported_tool_calls": ["list_vendors", "get_vendor", "?"]}
    assert outcome.instance is not None


def test_async_agents_run_on_the_shared_loop(call):
    threads = []

    async def run(query, tools, *, system_directive=""):
        await asyncio.sleep(0)
        threads.append(threading.current_thread())
        tools[0]()
        return "done"

    assert call(run).final_answer == "done"
    assert call(run).final_answer == "done"
    assert threads[0] is threads[1] is not threading.current_thread()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "bad_return_type"),
        (7, "bad_return_type"),
        (b"bytes", "bad_return_type"),
        (["a"], "bad_return_type"),
        ({"answer": "x"}, "bad_return_type"),
        ({"final_answer": None}, "bad_return_type"),
        ({"final_answer": "x", "usage": {"input_tokens": float("nan")}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"input_tokens": float("inf")}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"output_tokens": -1}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"output_tokens": 1.5}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"input_tokens": "3"}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"input_tokens": True}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"input_tokens": 10**400}}, "bad_usage"),
        ({"final_answer": "x", "usage": {"cost_usd": float("-inf")}}, "bad_usage"),
        ("half \ud800", "answer_not_text"),
        ("x" * 10_000_000, "answer_too_long"),
    ],
)
def test_what_can_t_be_used_ends_with_its_reason(call, value, kind):
    outcome = call(returning(value))
    assert (outcome.termination, outcome.error_kind) == ("agent_error", kind)
    assert outcome.message
    assert len(outcome.final_answer) <= KEPT_ANSWER
    outcome.final_answer.encode("utf-8")


def test_the_cap_is_on_characters_and_inclusive(call):
    assert call(returning("é" * MAX_ANSWER)).termination == "completed"
    assert call(returning("é" * (MAX_ANSWER + 1))).error_kind == "answer_too_long"


class OddError(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("no"), "exception"),
        (OddError("no"), "exception"),
        (GeneratorExit(), "exception"),
        (RecursionError(), "exception"),
        (SystemExit(3), "system_exit"),
        (SystemExit("bye"), "system_exit"),
    ],
)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_whatever_is_raised_ends_the_case_only(call, error, kind, asynchronous):
    def run(query, tools, *, system_directive=""):
        raise error

    async def arun(query, tools, *, system_directive=""):
        raise error

    outcome = call(arun if asynchronous else run)
    assert (outcome.termination, outcome.error_kind) == ("agent_error", kind)
    assert call(returning("next")).termination == "completed"


def test_a_task_that_exits_does_not_end_the_loop(call):
    async def stray():
        raise SystemExit(1)

    async def run(query, tools, *, system_directive=""):
        task = asyncio.ensure_future(stray())
        await asyncio.sleep(0.01)
        return f"went on; {task.done()}"

    async def simple(query, tools, *, system_directive=""):
        return "fine"

    assert call(run).final_answer == "went on; True"
    assert call(simple).final_answer == "fine"


def test_an_interrupt_of_the_agent_s_own_is_no_ctrl_c(case, call):
    outcomes = []

    def run(query, tools, *, system_directive=""):
        raise KeyboardInterrupt

    thread = threading.Thread(target=lambda: outcomes.append(call(run, case())))
    thread.start()
    thread.join()
    assert outcomes[0].error_kind == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        call(run)


def test_a_coroutine_that_outlives_the_case_is_cancelled(case, call):
    ended = threading.Event()

    async def run(query, tools, *, system_directive=""):
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    outcome = call(run, case(deadline_s=0.05))
    assert outcome.termination == "agent_error"
    assert ended.wait(5)


def test_an_agent_without_run_or_none_is_said_so(case):
    for made in (None, object(), Agent(3)):
        outcome = call_agent(lambda made=made: made, case().request, Instances())
        assert (outcome.termination, outcome.error_kind) == ("agent_error", "no_run_method")


def test_a_provider_s_failure_is_no_failure_of_the_agent(call):
    import httpx
    import openai

    response = httpx.Response(
        429, headers={"retry-after": "5"}, request=httpx.Request("POST", "http://x/")
    )

    def run(query, tools, *, system_directive=""):
        raise openai.RateLimitError("slow down", response=response, body=None)

    outcome = call(run)
    assert (outcome.termination, outcome.error_kind) == ("infrastructure_error", "rate_limit")
    assert outcome.http_status == 429


def test_secrets_in_answers_and_errors_go(call):
    key = "sk-abcdefghijklmnop1234"

    def run(query, tools, *, system_directive=""):
        raise ValueError(f"Authorization: Bearer {key}")

    assert key not in call(run).message
    assert key not in call(returning(f"the key is {key}")).final_answer


def test_instances_are_told_apart_even_when_an_address_is_used_again():
    instances = Instances()
    seen = {instances.number(Agent(None)) for _ in range(100)}
    assert len(seen) == 100
    shared = Agent(None)
    assert instances.number(shared) == instances.number(shared)
    unweakable = (1, 2)
    assert instances.number(unweakable) == instances.number(unweakable)
