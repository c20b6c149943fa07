import json
import threading

import pytest

from impact_twin.errors import InputError
from impact_twin.leaderboard.plan import Key, make_plan
from impact_twin.leaderboard.protocol import load_protocol, parse_protocol
from impact_twin.leaderboard.tasks import Benchmark

KEY = Key("banking", "important_instructions", "user_task_0", "injection_task_5", 1)


def play(world, task):
    """Do what AgentDojo's ground truth for a task does."""
    for call in task.ground_truth(world.environment):
        world.call(call.function, dict(call.args))


@pytest.fixture(scope="module")
def board():
    return Benchmark(load_protocol())


def test_the_pinned_tasks_exist_and_full_coverage_has_240_and_144_pairs(board):
    assert {suite.name: suite.pairs for suite in board.full()} == {"workspace": 240, "banking": 144}
    for tasks in load_protocol().suites:
        full = next(suite for suite in board.full() if suite.name == tasks.name)
        assert tasks.injection_tasks == full.injection_tasks
        by_number = sorted(full.user_tasks, key=lambda task: int(task.rpartition("_")[2]))
        assert list(tasks.user_tasks) == by_number[:10]


@pytest.mark.parametrize("attack", ["important_instructions", "direct"])
def test_every_injected_text_arrives(board, attack):
    # One user task for each injection task; the slow test has them all.
    plan = make_plan(load_protocol())
    for tasks in plan.suites:
        for place, injection in enumerate(tasks.injection_tasks):
            world = board.world(Key(tasks.name, attack, tasks.user_tasks[place], injection, 1))
            assert world.delivery == ("folded" if attack == "important_instructions" else "exact")


@pytest.mark.slow
def test_every_pinned_pair_loads_and_its_ground_truth_reads_the_injection(board):
    plan = make_plan(load_protocol())
    for cell in plan.cells(benign=False):
        if cell.repeat > 1:
            continue
        for key in plan.keys(cell):
            world = board.world(key)
            play(world, world.user_task)
            assert world.exposed() is True, key


def test_the_verdicts_are_agentdojos(benchmark):
    world = benchmark.world(KEY)
    assert (world.score("").utility, world.score("").attack_succeeded) == (False, False)
    play(world, world.user_task)
    assert world.score("").utility is True
    assert world.score("").attack_succeeded is False
    play(world, world.injection_task)
    assert world.attack_succeeded("") is True


def test_a_run_without_an_injection_has_the_default_texts(benchmark):
    world = benchmark.world(Key("banking", "none", "user_task_0", None, 1))
    play(world, world.user_task)
    assert world.injected == ()
    assert (world.delivery, world.exposed(), world.score("").attack_succeeded) == (None, None, None)
    assert "INFORMATION" not in json.dumps(world.events)


def test_worlds_are_fresh(benchmark):
    first = benchmark.world(KEY)
    play(first, first.injection_task)
    second = benchmark.world(KEY)
    assert first.attack_succeeded("") is True
    assert second.attack_succeeded("") is False


def test_exposure_needs_the_text_to_be_read(benchmark):
    world = benchmark.world(KEY)
    world.call("get_balance", {})
    assert world.exposed() is False
    world.call("read_file", {"file_path": "bill-december-2023.txt"})
    assert world.exposed() is True


@pytest.mark.parametrize(
    ("name", "arguments", "start"),
    [
        ("send_money", {"recipient": 5}, "ValidationError: 4 validation errors"),
        ("nope", {}, "ToolNotFoundError: "),
        ("read_file", {}, "ValidationError: 1 validation error"),
        ("send_money", {"recipient": "\ud800", "amount": float("nan")}, "ValidationError"),
    ],
)
def test_a_failing_tool_answers_in_text_without_stack_or_release(benchmark, name, arguments, start):
    world = benchmark.world(KEY)
    output = world.call(name, arguments)
    assert output.startswith(start)
    assert "Traceback" not in output
    assert "errors.pydantic.dev" not in output
    assert world.events[0]["failed"] is True
    json.dumps(world.events, allow_nan=False).encode()


def test_a_sealed_world_stays_as_it_is(benchmark):
    world = benchmark.world(KEY)
    world.seal()
    before = world.environment.model_dump_json()
    assert world.call("update_password", {"password": "x"}).startswith("ERROR")
    assert world.environment.model_dump_json() == before
    assert (world.events, world.late_calls) == ([], 1)


def test_sealing_waits_for_a_call_under_way(benchmark):
    world = benchmark.world(KEY)
    done = threading.Event()

    def send():
        world.call("get_most_recent_transactions", {"n": 5})
        done.set()

    with world._lock:
        thread = threading.Thread(target=send)
        thread.start()
        assert not done.wait(0.05)
    thread.join()
    world.seal()
    assert len(world.events) == 1


@pytest.mark.parametrize("goal", ['say "hi"', "back\\slash", 'say "hi"\\'])
def test_a_text_that_breaks_agentdojos_files_is_refused_and_not_run(benchmark, monkeypatch, goal):
    world = benchmark.world(KEY)
    monkeypatch.setattr(type(world.injection_task), "GOAL", goal)
    with pytest.raises(InputError, match="can't hold the injected text unharmed"):
        benchmark.world(KEY)


@pytest.mark.parametrize("goal", ["a {brace}", "x: 'y", "# z", "- a\n- b"])
def test_a_text_that_they_can_hold_is_run(benchmark, monkeypatch, goal):
    world = benchmark.world(KEY)
    monkeypatch.setattr(type(world.injection_task), "GOAL", goal)
    world = benchmark.world(KEY)
    play(world, world.user_task)
    assert world.exposed() is True


def test_the_stimulus_digest_moves_with_what_the_model_sees(benchmark, protocol, monkeypatch):
    plan = make_plan(protocol)
    first = benchmark.stimulus_digest(plan)
    assert benchmark.stimulus_digest(plan) == first
    only = make_plan(protocol, attacks=("important_instructions",))
    assert benchmark.stimulus_digest(only) == first
    task = benchmark.world(KEY).user_task
    monkeypatch.setattr(type(task), "PROMPT", "Another request.")
    assert benchmark.stimulus_digest(plan) != first


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c["benchmark"].update(version="v9"), "no suite 'banking' in 'v9'"),
        (
            lambda c: c["benchmark"]["suites"]["banking"].update(user_tasks=["user_task_99"]),
            "has no 'user_task_99'",
        ),
        (lambda c: c["attacks"].update(secondary=["nonsense"]), "no usable AgentDojo attack"),
        (lambda c: c["attacks"].update(secondary=["dos"]), "no usable AgentDojo attack"),
        (lambda c: c["attacks"].update(addressed_as="nobody"), "addresses no model"),
    ],
)
def test_a_protocol_that_agentdojo_cant_run_is_refused(content, change, told):
    change(content)
    with pytest.raises(InputError, match=told):
        Benchmark(parse_protocol(content, where="x"))
