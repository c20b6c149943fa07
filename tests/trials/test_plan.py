import copy
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from impact_twin.errors import InputError
from impact_twin.trials.plan import (
    Limits,
    case_order,
    case_seed,
    check_plan,
    identity_difference,
    iter_cases,
    make_plan,
    plan_digest,
    read_plan,
    renew_plan,
    twin_order,
)
from impact_twin.trials.records import CaseKey


@pytest.mark.parametrize("trials", [0, -1, 2.5, True, "3", 10**9])
def test_trials_out_of_range_are_refused(plan_of, trials):
    with pytest.raises(InputError, match="--trials"):
        plan_of(trials=trials)


@pytest.mark.parametrize("confidence", [0, 1, float("nan"), -0.5, 2, True])
def test_confidence_outside_the_open_interval_is_refused(plan_of, confidence):
    with pytest.raises(InputError, match="--confidence"):
        plan_of(confidence=confidence)


@pytest.mark.parametrize(
    ("limits", "where"),
    [
        ({"timeout_s": 0}, "--timeout"),
        ({"timeout_s": float("inf")}, "--timeout"),
        ({"timeout_s": float("nan")}, "--timeout"),
        ({"timeout_s": 1e10}, "--timeout"),
        ({"retries": -1}, "--retries"),
        ({"retries": 1.5}, "--retries"),
        ({"max_cost_usd": 0.0}, "--max-cost-usd"),
        ({"max_cost_usd": float("nan")}, "--max-cost-usd"),
        ({"max_tokens": 0}, "--max-tokens"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
    ],
)
def test_limits_out_of_range_are_refused(plan_of, limits, where):
    with pytest.raises(InputError, match=where):
        plan_of(limits=limits)


@pytest.mark.parametrize(
    ("pairs", "word"),
    [(["no-such-pair"], "no pair"), ([], "no pair"), (["award-bias", "award-bias"], "twice")],
)
def test_pairs_that_cannot_be_run_are_refused(plan_of, pairs, word):
    with pytest.raises(InputError, match=word):
        plan_of(pairs=pairs)


def test_unknown_isolation_and_seed_are_refused(plan_of):
    with pytest.raises(InputError, match="--isolation"):
        plan_of(isolation="container")
    with pytest.raises(InputError, match="--seed"):
        plan_of(seed=-1)


def test_a_choice_of_pairs_is_no_full_suite(plan_of, suite):
    last_first = [suite.pairs[2].id, suite.pairs[0].id]
    some = plan_of(pairs=last_first)
    assert some["pairs"] == [suite.pairs[0].id, suite.pairs[2].id]
    assert not some["full_suite"]
    every = plan_of(pairs=[pair.id for pair in reversed(suite.pairs)])
    assert every["full_suite"]
    assert plan_of()["full_suite"]


def test_plan_keeps_its_schema_and_comes_back(plan_of, tmp_path):
    plan = plan_of(limits={"max_cost_usd": 1.5, "max_tokens": 1000})
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="ascii")
    assert read_plan(tmp_path) == plan
    assert plan_digest(read_plan(tmp_path)) == plan_digest(plan)
    assert {"impact_twin", "agentdojo", "dspy"} <= plan["identity"]["versions"].keys()


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"schema_version": 2}, "newer impact-twin"),
        ({"kind": "impact-twin/report"}, "not a plan"),
        ({"trials": 0}, "trials breaks the schema"),
        ({"surprise": 1}, "breaks the schema"),
        ({"pairs": ["a", "a"]}, "pairs breaks the schema"),
        ({"identity": {}}, "identity breaks the schema"),
    ],
)
def test_plan_that_breaks_the_schema_is_refused(plan_of, change, word):
    with pytest.raises(InputError, match=word):
        check_plan({**plan_of(), **change}, where="plan.json")


def test_folder_without_a_plan_is_no_run(tmp_path):
    with pytest.raises(InputError, match="not a run directory"):
        read_plan(tmp_path)


def test_secrets_stay_out_of_the_plan(suite, source_of, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "abcdefgh-very-secret")

    class Leaky(source_of):
        @property
        def spec(self):
            return {
                "kind": "test",
                "api_base": "https://user:pa55word@host.example/v1?key=verysecret",
                "note": "abcdefgh-very-secret",
                "api_key": "short",
            }

    text = json.dumps(make_plan(suite, Leaky(None, password="tok"), trials=1))
    for secret in ("pa55word", "verysecret", "abcdefgh-very-secret", '"short"', '"tok"'):
        assert secret not in text


def test_every_case_is_planned_once_trial_by_trial(plan_of, suite):
    order = case_order(plan_of(trials=7))
    assert len(order) == len(set(order)) == 7 * len(suite.pairs) * 2
    assert [key.trial for key in order] == sorted(key.trial for key in order)
    for first, second in zip(order[::2], order[1::2], strict=True):
        assert (first.pair, first.trial) == (second.pair, second.trial)
        assert {first.twin, second.twin} == {"clean", "poisoned"}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**53 - 1), short=st.integers(1, 6), more=st.integers(1, 6))
def test_a_longer_plan_keeps_its_prefix(seed, short, more):
    def plan(trials):
        return {
            "identity": {"run": {"seed": seed}},
            "pairs": ["one", "two", "three"],
            "trials": trials,
        }

    longer = case_order(plan(short + more))
    assert longer[: short * 6] == case_order(plan(short))


def test_order_depends_on_seed_and_trial(plan_of):
    orders = {tuple(case_order(plan_of(seed=seed, trials=1))) for seed in range(20)}
    assert len(orders) > 15
    plan = plan_of(trials=20)
    per_trial = {
        tuple(key[::2] for key in iter_cases(plan) if key.trial == trial) for trial in range(1, 21)
    }
    assert len(per_trial) > 15


def test_either_twin_starts_about_half_of_the_time():
    firsts = Counter(twin_order(3, trial, "award-bias")[0] for trial in range(1, 1001))
    assert 430 < firsts["clean"] < 570


def test_case_seeds_are_distinct_and_in_range(plan_of):
    plan = plan_of(trials=50)
    seeds = [case_seed(plan, key) for key in iter_cases(plan)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert max(seeds) > 2**61
    assert case_seed(plan, CaseKey("award-bias", 1, "clean")) != case_seed(
        plan_of(seed=1), CaseKey("award-bias", 1, "clean")
    )


CHANGES = [
    (("identity", "suite", "digest"), "sha256:" + "0" * 64),
    (("identity", "agent", "name"), "another"),
    (("identity", "agent", "temperature"), 0.5),
    (("identity", "versions", "dspy"), "0.0.1"),
    (("identity", "run", "seed"), 99),
    (("identity", "run", "isolation"), "process"),
    (("identity", "run", "limits", "timeout_s"), 1.0),
    (("identity", "run", "limits", "retries"), 9),
    (("identity", "run", "limits", "max_tool_calls"), 9),
    (("spec", "kind"), "demo"),
    (("confidence",), 0.9),
    (("pairs",), ["award-bias"]),
    (("trials",), 3),
    (("full_suite",), False),
]


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=[".".join(path) for path, _ in CHANGES])
def test_a_changed_identity_is_named(plan_of, path, value):
    plan = plan_of()
    changed = copy.deepcopy(plan)
    place = changed
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    (line,) = identity_difference(plan, changed)
    assert line.startswith(".".join(path) + ": ")
    assert line.endswith(json.dumps(value)) or line.endswith("...")


def test_time_platform_and_budget_are_no_identity(plan_of):
    plan = plan_of()
    changed = copy.deepcopy(plan)
    changed["created"] = "1999-01-01T00:00:00Z"
    changed["platform"] = {"python": "3.99"}
    changed["identity"]["run"]["limits"] |= {"max_cost_usd": 7.0, "max_tokens": 7}
    assert identity_difference(plan, changed) == ()


def test_renewed_plan_is_the_same_today(suite, source_of):
    source = source_of(None)
    plan = make_plan(suite, source, trials=2, pairs=["award-bias"], limits=Limits(retries=5))
    assert identity_difference(plan, renew_plan(plan, suite, source)) == ()
    other = source_of(None, temperature=1.0)
    (line,) = identity_difference(plan, renew_plan(plan, suite, other))
    assert line == "identity.agent.temperature: nothing became 1.0"
