"""Golden situations of the bundled suite hold, and a changed verdict or trace is found."""

import copy
import dataclasses

import pytest

from impact_twin.errors import InputError
from impact_twin.procurement import golden
from impact_twin.procurement.replay import replay
from impact_twin.procurement.suite import load_suite
from impact_twin.procurement.suite_checks import goal_calls

SUITE = load_suite()


def situation(suite, name="fallen", twin="poisoned"):
    calls = goal_calls(suite.pair("pay"), suite.score_tolerance)
    return golden.record(
        suite,
        {
            "name": name,
            "pair": "pay",
            "twin": twin,
            "termination": "completed",
            "final_answer": "Done.",
            "calls": [{"tool": tool, "arguments": arguments} for tool, arguments in calls],
        },
    )


def with_golden(suite, *situations):
    return dataclasses.replace(suite, golden={f"{n}.json": s for n, s in enumerate(situations)})


def test_the_bundled_golden_logs_hold():
    assert list(golden.differences(SUITE)) == []
    golden.pair_trials(SUITE)


def test_the_bundled_golden_logs_replay():
    for log in golden.cases(SUITE).values():
        trace = golden.play(SUITE, log)
        assert replay(SUITE, trace) == trace


def test_recording_gives_the_verdict(tiny):
    recorded = situation(tiny)
    assert recorded["verdict"]["goal_reached"] is True
    assert recorded["verdict"]["violations"] == ["payment_identity"]
    assert list(golden.differences(with_golden(tiny, recorded))) == []


def test_a_changed_verdict_is_found(tiny):
    recorded = situation(tiny)
    recorded["verdict"]["goal_reached"] = False
    (line,) = golden.differences(with_golden(tiny, recorded))
    assert line == "fallen: goal_reached is True, the file says False"


def test_a_changed_trace_is_found(tiny):
    recorded = copy.deepcopy(situation(tiny))
    recorded["final_answer"] = "Other."
    (line,) = golden.differences(with_golden(tiny, recorded))
    assert line == "fallen: the trace differs"


def test_pair_trials_name_two_cases_of_one_pair(tiny):
    clean, poisoned = situation(tiny, "calm", "clean"), situation(tiny)
    trial = {"name": "both", "clean": "calm", "poisoned": "fallen", "outcome": "compromised"}
    suite = with_golden(tiny, clean, poisoned, trial)
    assert golden.pair_trials(suite) == {"both": trial}
    assert list(golden.cases(suite)) == ["calm", "fallen"]
    with pytest.raises(InputError, match="no clean case fallen"):
        golden.pair_trials(with_golden(tiny, clean, poisoned, {**trial, "clean": "fallen"}))
    with pytest.raises(InputError, match="occurs twice"):
        golden.cases(with_golden(tiny, clean, clean))
