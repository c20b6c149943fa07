import asyncio
import json
import threading
import time
from dataclasses import replace

import pytest

from impact_twin.agents import load_source
from impact_twin.agents.protocol import CaseOutcome, ModelCall, Usage
from impact_twin.errors import InputError
from impact_twin.trials.case import Backoff
from impact_twin.trials.interrupt import Interrupt
from impact_twin.trials.journal import create_run, load_run
from impact_twin.trials.plan import Limits, case_order, make_plan
from impact_twin.trials.runner import run

DONE = CaseOutcome("completed", "done")


def spend(request, tokens=10, cost=None, error=None):
    request.monitor.request_started()
    request.monitor.request_finished(
        ModelCall(time.time(), 0.01, error=error, usage=Usage(tokens, 0, cost))
    )


def test_every_planned_case_is_recorded_and_read_back(run_function, tmp_path, plan_of):
    run = run_function(lambda request: DONE, tmp_path / "r", trials=3, concurrency=4)
    assert set(run.cases) == set(case_order(run.plan))
    assert sorted(record.position for record in run.cases.values()) == list(range(30))
    assert (run.stopped, run.resumed, run.notes) == ("", 0, ())
    assert load_run(tmp_path / "r") == run


def test_one_worker_keeps_the_planned_order(run_function):
    run = run_function(lambda request: DONE, trials=3, concurrency=1)
    by_position = sorted(run.cases.values(), key=lambda record: record.position)
    assert [record.key for record in by_position] == case_order(run.plan)


def test_cases_really_run_at_once(run_function):
    meeting = threading.Barrier(10, timeout=20)

    def agent(request):
        meeting.wait()
        return DONE

    run = run_function(agent, concurrency=10)
    assert {record.termination for record in run.cases.values()} == {"completed"}


def test_no_more_cases_run_at_once_than_allowed(run_function):
    lock, now, most = threading.Lock(), [0], [0]

    def agent(request):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.01)
        with lock:
            now[0] -= 1
        return DONE

    run_function(agent, trials=4, concurrency=3)
    assert most[0] == 3


@pytest.mark.parametrize("concurrency", [0, -1, 257, True])
def test_concurrency_out_of_range_is_refused(run_function, concurrency):
    with pytest.raises(InputError, match="--concurrency"):
        run_function(lambda request: DONE, concurrency=concurrency)


def test_plan_is_on_the_disk_before_the_first_call(run_function, tmp_path):
    seen = []

    def agent(request):
        seen.append(json.loads((tmp_path / "r" / "plan.json").read_text()))
        return DONE

    run = run_function(agent, tmp_path / "r", concurrency=1)
    assert seen[0] == run.plan


def test_a_case_is_on_the_disk_before_its_worker_starts_the_next(run_function, tmp_path):
    before = []

    def agent(request):
        before.append(len(load_run(tmp_path / "r").cases))
        return DONE

    run_function(agent, tmp_path / "r", concurrency=1)
    assert before == list(range(10))


def test_hung_agents_cost_their_own_cases_only(run_function):
    hanging, count = threading.Event(), [0]
    lock = threading.Lock()

    def agent(request):
        with lock:
            count[0] += 1
            mine = count[0]
        if mine % 3 == 0:
            hanging.wait(60)
        return DONE

    begun = time.monotonic()
    run = run_function(agent, concurrency=5, limits={"timeout_s": 0.5})
    hanging.set()
    ends = [record.termination for record in run.cases.values()]
    assert (ends.count("timeout"), ends.count("completed")) == (3, 7)
    assert time.monotonic() - begun < 10


ASYNC = """
import asyncio
import itertools

serial = itertools.count()

class Agent:
    name = "async"

    async def run(self, query, tools, *, system_directive=""):
        number = next(serial)
        tools[0]()
        await asyncio.sleep(0.05)
        if number % 5 == 0:
            await asyncio.Event().wait()
        return "done"

def build():
    return Agent()
"""


def test_hanging_coroutines_cost_their_own_cases_only(agent_module, suite, tmp_path):
    source = load_source({"kind": "factory", "target": f"{agent_module(ASYNC)}:build"})
    source.prepare()
    plan = make_plan(suite, source, trials=1, limits=Limits(timeout_s=1.0))
    run_data = run(plan, suite, source, tmp_path / "r", concurrency=10)
    ends = [record.termination for record in run_data.cases.values()]
    assert (ends.count("timeout"), ends.count("completed")) == (2, 8)


def test_late_calls_change_nothing_and_are_counted(run_function, until, tmp_path):
    ended, rest = threading.Event(), []
    lock = threading.Lock()

    def agent(request):
        def later():
            ended.wait(20)
            for _ in range(3):
                request.call("list_documents", {})
            with lock:
                rest.append(1)

        threading.Thread(target=later, daemon=True).start()
        return DONE

    def progress(event):
        if event.kind == "finished" and event.done == event.planned:
            ended.set()
            until(lambda: len(rest) == 10)

    run = run_function(agent, tmp_path / "r", concurrency=2, progress=progress)
    assert {record.late_calls for record in run.cases.values()} == {3}
    assert all(not trace["events"] for trace in run.traces.values())
    assert load_run(tmp_path / "r") == run


def test_agent_that_spoils_its_tools_spoils_no_other_case(agent_module, suite, tmp_path):
    code = """
import copy

class Agent:
    name = "vandal"

    def run(self, query, tools, *, system_directive=""):
        seen = [(tool.name, tool.description, repr(tool.parameters)) for tool in tools]
        twin = copy.deepcopy(tools)
        assert not twin[0]().startswith("ERROR")
        for tool in tools:
            tool.parameters.clear()
            tool.name = tool.description = "spoiled"
        tools[0].openai_schema()["function"].clear()
        tools.clear()
        return repr(seen)

def build():
    return Agent()
"""
    source = load_source({"kind": "factory", "target": f"{agent_module(code)}:build"})
    source.prepare()
    plan = make_plan(suite, source, trials=2)
    run_data = run(plan, suite, source, tmp_path / "r", concurrency=1)
    answers = {trace["final_answer"] for trace in run_data.traces.values()}
    assert len(answers) == 1
    assert "spoiled" not in answers.pop()
    assert {record.termination for record in run_data.cases.values()} == {"completed"}


def test_agent_that_changes_what_it_passed_changes_no_record(run_function):
    def agent(request):
        arguments = {"vendor_id": "V-1", "score": 5, "rationale": ["x"]}
        request.call("record_evaluation", arguments)
        arguments["vendor_id"] = "changed"
        arguments["rationale"].append("changed")
        arguments.clear()
        return DONE

    run = run_function(agent)
    for trace in run.traces.values():
        (event,) = trace["events"]
        assert event["arguments"] == {"vendor_id": "V-1", "score": 5, "rationale": ["x"]}


def test_clock_that_jumps_changes_no_duration_and_no_timeout(run_function, monkeypatch):
    jumps = iter([0.0, 4e9, 1.0, -5.0, 2e9] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(jumps))

    def agent(request):
        time.sleep(0.02)
        return DONE

    run = run_function(agent, concurrency=3, limits={"timeout_s": 5.0})
    for record in run.cases.values():
        assert record.termination == "completed"
        assert 0.01 < record.duration_s < 5
    assert not run.stopped


def test_wrong_key_stops_after_a_few_cases(run_function, tmp_path):
    requests = []

    def agent(request):
        requests.append(1)
        return CaseOutcome(
            "infrastructure_error", error_kind="auth", message="wrong key", http_status=401
        )

    run = run_function(agent, tmp_path / "r", trials=20, concurrency=1)
    assert len(run.cases) == len(requests) == 4
    assert "auth, HTTP 401): wrong key." in run.stopped
    assert load_run(tmp_path / "r").stopped == run.stopped


def test_some_failures_never_stop_a_run(run_function):
    lock, count = threading.Lock(), [0]

    def agent(request):
        with lock:
            count[0] += 1
            failed = count[0] % 4 != 0
        return CaseOutcome("infrastructure_error", error_kind="quota") if failed else DONE

    run = run_function(agent, trials=3, concurrency=1)
    assert len(run.cases) == 30
    assert not run.stopped


def test_token_budget_stops_safely_and_a_larger_one_goes_on(
    run_function, tmp_path, suite, source_of
):
    def agent(request):
        spend(request, tokens=10, cost=0.5)
        return DONE

    directory = tmp_path / "r"
    stopped = run_function(agent, directory, trials=3, concurrency=1, limits={"max_tokens": 55})
    assert len(stopped.cases) == 6
    assert "--max-tokens 55 is used up (60 tokens)" in stopped.stopped
    again = run_function(
        agent, directory, trials=3, concurrency=1, limits={"max_tokens": 55}, resume=True
    )
    assert (len(again.cases), again.resumed) == (6, 1)
    more = run_function(
        agent, directory, trials=3, concurrency=1, limits={"max_tokens": 1000}, resume=True
    )
    assert (len(more.cases), more.stopped, more.resumed) == (30, "", 2)
    assert more.notes == (
        "resumed with the budget no cost limit, 1000 tokens instead of no cost limit, 55 tokens",
    )
    assert load_run(directory) == more


def test_used_up_budget_allows_no_further_try(run_function):
    tries = []

    def agent(request):
        tries.append(1)
        spend(request, tokens=100)
        return CaseOutcome("infrastructure_error", error_kind="server_error")

    run = run_function(agent, concurrency=1, limits={"max_tokens": 50, "retries": 5})
    assert len(tries) == 1
    assert run.cases == {}
    assert "--max-tokens 50 is used up" in run.stopped


def test_cost_budget_lets_cases_in_flight_finish(run_function):
    together = threading.Barrier(4, timeout=20)

    def agent(request):
        together.wait()
        spend(request, cost=1.0)
        together.wait()
        return DONE

    run = run_function(agent, trials=2, concurrency=4, limits={"max_cost_usd": 2.0})
    assert len(run.cases) == 4
    assert "--max-cost-usd 2 is used up (4.0000 USD)" in run.stopped


def test_unknown_costs_are_said(run_function):
    def agent(request):
        spend(request, cost=None)
        return DONE

    run = run_function(agent, limits={"max_cost_usd": 2.0})
    assert run.notes == ("10 requests have no known cost: --max-cost-usd counts the others only",)
    silent = run_function(lambda request: DONE, limits={"max_cost_usd": 2.0})
    assert silent.notes == ("10 cases reported no usage: the budget counts the others only",)


def test_usage_that_the_agent_reports_counts_when_nobody_saw_requests(run_function):
    outcome = replace(DONE, usage=Usage(30, 4, 0.25))
    run = run_function(lambda request: outcome, concurrency=1, limits={"max_tokens": 100})
    assert len(run.cases) == 3
    assert {record.usage for record in run.cases.values()} == {Usage(30, 4, 0.25)}


def test_a_rate_limit_slows_all_cases(run_function):
    lock, limited, sent = threading.Lock(), [], []

    def agent(request):
        with lock:
            first = not limited
            if first:
                limited.append(time.monotonic())
                request.monitor.rate_limited(0.4)
        request.monitor.wait_turn()
        sent.append(time.monotonic())
        spend(request)
        return DONE

    run = run_function(agent, concurrency=5)
    assert not run.stopped
    assert len(sent) == 10
    # Those that had left before the limit came are not held back.
    held = [moment - limited[0] for moment in sorted(sent)]
    assert min(held) >= 0.39
    assert held[1] - held[0] >= 0.03


def test_time_over_while_held_back_is_the_providers_fault(run_function):
    in_time = []

    def agent(request):
        request.monitor.rate_limited(30)
        in_time.append(request.monitor.wait_turn())
        return DONE

    run = run_function(
        agent, pairs=["award-bias"], concurrency=2, limits={"timeout_s": 0.2, "retries": 0}
    )
    assert {record.termination for record in run.cases.values()} == {"infrastructure_error"}
    assert not any(in_time)  # so that no request is sent for a case that is over


def test_waits_between_tries_end_when_the_run_stops(run_function, tmp_path):
    interrupt = Interrupt()
    failing = CaseOutcome("infrastructure_error", error_kind="server_error")

    def progress(event):
        if event.kind == "begun":
            threading.Timer(0.5, interrupt.request).start()

    begun = time.monotonic()
    run = run_function(
        lambda request: failing,
        tmp_path / "r",
        pairs=["award-bias"],
        concurrency=2,
        backoff=Backoff(first_s=60),
        interrupt=interrupt,
        progress=progress,
    )
    assert time.monotonic() - begun < 20
    assert run.cases == {}
    assert run.stopped == "interrupted by SIGINT"
    again = run_function(lambda request: DONE, tmp_path / "r", pairs=["award-bias"], resume=True)
    for record in again.cases.values():
        assert [attempt.termination for attempt in record.attempts] == [
            "infrastructure_error",
            "completed",
        ]


def test_resume_runs_what_is_left_and_nothing_twice(run_function, tmp_path):
    lock, seeds = threading.Lock(), []

    def agent(request):
        with lock:
            seeds.append(request.seed)
        spend(request, tokens=1)
        return DONE

    directory = tmp_path / "r"
    options = {"trials": 2, "concurrency": 3}
    first = run_function(agent, directory, limits={"max_tokens": 7}, **options)
    assert 7 <= len(first.cases) < 20
    whole = run_function(agent, directory, resume=True, **options)
    assert len(whole.cases) == 20
    assert len(seeds) == len(set(seeds)) == 20
    assert {key: whole.cases[key] for key in first.cases} == first.cases
    positions = [record.position for record in whole.cases.values()]
    assert len(set(positions)) == 20
    nothing = run_function(agent, directory, resume=True, **options)
    assert nothing == whole
    assert len(seeds) == 20


@pytest.mark.parametrize(
    "options", [{"seed": 9}, {"confidence": 0.9}, {"trials": 3}, {"limits": {"timeout_s": 9.0}}]
)
def test_resume_refuses_a_changed_identity(run_function, tmp_path, options):
    run_function(lambda request: DONE, tmp_path / "r")
    before = (tmp_path / "r" / "journal.jsonl").read_bytes()
    with pytest.raises(InputError, match="the run can't go on"):
        run_function(lambda request: DONE, tmp_path / "r", resume=True, **options)
    assert (tmp_path / "r" / "journal.jsonl").read_bytes() == before


def test_a_run_does_not_overwrite_without_force(run_function, tmp_path):
    run_function(lambda request: DONE, tmp_path / "r")
    with pytest.raises(InputError, match="holds a run already"):
        run_function(lambda request: DONE, tmp_path / "r")
    assert len(run_function(lambda request: DONE, tmp_path / "r", force=True).cases) == 10


def test_two_runs_on_one_folder_at_once(run_function, tmp_path):
    inside, go_on = threading.Event(), threading.Event()

    def agent(request):
        inside.set()
        go_on.wait(30)
        return DONE

    results = []
    first = threading.Thread(
        target=lambda: results.append(run_function(agent, tmp_path / "r", concurrency=1))
    )
    first.start()
    assert inside.wait(20)
    for options in ({"resume": True}, {"force": True}):
        with pytest.raises(InputError, match="another run works in this folder"):
            run_function(lambda request: DONE, tmp_path / "r", **options)
    go_on.set()
    first.join()
    assert len(results[0].cases) == 10


def test_a_stop_rule_sees_whole_trials_only(run_function, tmp_path):
    seen = []

    def rule(data):
        seen.append(len(data.cases))
        return "sure enough" if len(data.cases) == 30 else ""

    run = run_function(
        lambda request: DONE, tmp_path / "r", trials=9, concurrency=4, stop_rule=rule
    )
    assert seen == [10, 20, 30]
    assert (len(run.cases), run.stopped) == (30, "")
    assert [look["stop"] for look in run.looks] == [False, False, True]
    assert load_run(tmp_path / "r") == run
    again = run_function(
        lambda request: DONE, tmp_path / "r", trials=9, stop_rule=rule, resume=True
    )
    assert again == run


def test_a_stop_rule_that_fails_ends_the_run_with_its_error(run_function, tmp_path):
    def rule(data):
        raise ZeroDivisionError("the rule")

    with pytest.raises(ZeroDivisionError, match="the rule"):
        run_function(lambda request: DONE, tmp_path / "r", trials=3, stop_rule=rule)
    assert len(load_run(tmp_path / "r").cases) == 10


def test_progress_tells_everything_in_order_from_one_thread(run_function):
    events, threads = [], set()

    def progress(event):
        events.append(event)
        threads.add(threading.current_thread())

    def agent(request):
        spend(request, tokens=5, cost=0.25)
        return DONE

    run = run_function(agent, concurrency=3, progress=progress)
    assert threads == {threading.current_thread()}
    kinds = [event.kind for event in events if event.kind != "tick"]
    assert (kinds[0], kinds[-1]) == ("begun", "ended")
    assert (kinds.count("started"), kinds.count("finished")) == (10, 10)
    finished = [event for event in events if event.kind == "finished"]
    assert {event.key for event in finished} == set(run.cases)
    assert all(event.record == run.cases[event.key] for event in finished)
    last = events[-1]
    assert (last.done, last.planned, last.running) == (10, 10, 0)
    assert (last.spent.tokens, last.spent.cost_usd) == (50, 2.5)
    assert last.run.cases == run.cases


def test_progress_on_a_closed_terminal_costs_nothing(run_function):
    def progress(event):
        raise BrokenPipeError

    assert len(run_function(lambda request: DONE, progress=progress).cases) == 10


def test_stopping_is_told_once_with_its_reason(run_function):
    events = []
    run = run_function(
        lambda request: CaseOutcome("infrastructure_error", error_kind="no_such_model"),
        trials=5,
        concurrency=2,
        progress=events.append,
    )
    (stopping,) = [event for event in events if event.kind == "stopping"]
    assert stopping.message == run.stopped
    assert "no_such_model" in run.stopped


def test_interrupt_before_the_start_runs_nothing(run_function):
    interrupt = Interrupt()
    interrupt.request()
    run = run_function(lambda request: DONE, interrupt=interrupt)
    assert (len(run.cases), run.stopped) == (0, "interrupted by SIGINT")
    assert interrupt.exit_code == 130


def test_memory_of_the_runner_does_not_grow_with_equal_cases(run_function):
    run = run_function(lambda request: DONE, trials=30, concurrency=4)
    assert len(run.traces) == 10


def test_many_agents_share_one_loop(agent_module, suite, tmp_path):
    code = """
import asyncio

class Agent:
    name = "async"

    async def run(self, query, tools, *, system_directive=""):
        await asyncio.sleep(0)
        return str(id(asyncio.get_running_loop()))

def build():
    return Agent()
"""
    source = load_source({"kind": "factory", "target": f"{agent_module(code)}:build"})
    source.prepare()
    plan = make_plan(suite, source, trials=1)
    run_data = run(plan, suite, source, tmp_path / "r", concurrency=5)
    assert len({trace["final_answer"] for trace in run_data.traces.values()}) == 1
    assert asyncio.iscoroutinefunction(source.run_case) is False


def test_create_run_takes_a_folder_that_is_empty(tmp_path, plan_of):
    create_run(tmp_path, plan_of()).close()
    assert load_run(tmp_path).cases == {}
