import pytest

from impact_twin.errors import InputError
from impact_twin.leaderboard.plan import Cell, Key, make_plan, plan_from_json
from impact_twin.leaderboard.protocol import SuiteTasks, load_protocol


def test_the_board_plans_150_pairs_a_repeat_and_attack():
    plan = make_plan(load_protocol())
    for attack in plan.attacks:
        assert sum(len(plan.pairs(suite.name, attack)) for suite in plan.suites) == 150
    assert plan.total(benign=False) == 150 * 2 * 3
    assert plan.total(benign=True) == 150 * 2 * 3 + 20 * 3
    assert plan.coverage == "subset"


def test_runs_without_an_attack_come_first_and_have_no_injection():
    plan = make_plan(load_protocol())
    cells = list(plan.cells(benign=True))
    assert cells[0] == Cell("workspace", "none", 1)
    keys = list(plan.keys(cells[0]))
    assert len(keys) == 10
    assert keys[0] == Key("workspace", "none", "user_task_0", None, 1)
    assert all(cell.attack != "none" for cell in plan.cells(benign=False))


def test_no_run_is_planned_twice():
    plan = make_plan(load_protocol())
    keys = [key for cell in plan.cells(benign=True) for key in plan.keys(cell)]
    assert len(keys) == len(set(keys)) == plan.total(benign=True)


def test_a_choice_of_attacks_keeps_the_headline_one():
    protocol = load_protocol()
    assert make_plan(protocol, attacks=("important_instructions",)).attacks == (
        "important_instructions",
    )
    with pytest.raises(InputError, match="needs the headline attack"):
        make_plan(protocol, attacks=("direct",))
    with pytest.raises(InputError, match="'nope' is no attack of the protocol"):
        make_plan(protocol, attacks=("important_instructions", "nope"))


def test_full_coverage_is_another_plan_and_survives_json():
    full = (SuiteTasks("banking", ("user_task_0", "user_task_1"), ("injection_task_0",)),)
    plan = make_plan(load_protocol(), full=full)
    assert plan.coverage == "full"
    assert plan_from_json(plan.to_json()) == plan
