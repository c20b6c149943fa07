import pytest

from impact_twin.agents.protocol import Usage
from impact_twin.trials.breaker import Breaker
from impact_twin.trials.records import Attempt, CaseKey, CaseRecord


def record(termination, kind="", message="", status=None):
    attempt = Attempt(termination, kind, message, status, 1, 1.0, 0.1, "")
    key = CaseKey("award-bias", 1, "clean")
    return CaseRecord(key, 0, termination, "", 0.1, Usage(), (), (attempt,))


AUTH = record("infrastructure_error", "auth", "wrong key", 401)


def test_same_error_four_times_stops():
    breaker = Breaker(concurrency=1)
    assert [breaker.saw(AUTH) for _ in range(3)] == [""] * 3
    line = breaker.saw(AUTH)
    assert line.startswith("4 cases in a row failed for one reason (auth, HTTP 401): wrong key.")
    assert "API key" in line
    assert "begin a new run" in line


def test_an_agent_that_says_the_mend_itself_is_not_repeated():
    breaker = Breaker(concurrency=1, told=True)
    lines = [breaker.saw(AUTH) for _ in range(4)]
    assert lines[-1].endswith(
        "wrong key. These cases are final: begin a new run once that is mended."
    )
    breaker = Breaker(concurrency=1, told=True)
    limited = record("infrastructure_error", "rate_limit", "slow down.", 429)
    lines = [breaker.saw(limited) for _ in range(4)]
    assert "slow down. Lower --concurrency" in lines[-1]


def test_as_many_as_run_at_once_may_fail_first():
    breaker = Breaker(concurrency=9)
    assert [bool(breaker.saw(AUTH)) for _ in range(9)] == [False] * 8 + [True]


@pytest.mark.parametrize(
    "other",
    [
        record("completed"),
        record("timeout", "timeout"),
        record("agent_error", "auth"),
        record("infrastructure_error", "connection"),
    ],
)
def test_anything_else_between_starts_the_count_again(other):
    breaker = Breaker(concurrency=1)
    for _ in range(5):
        assert [breaker.saw(AUTH) for _ in range(3)] == [""] * 3
        assert breaker.saw(other) == ""


def test_agent_errors_never_stop_a_run():
    breaker = Breaker(concurrency=1)
    assert not any(breaker.saw(record("agent_error", "exception")) for _ in range(50))


def test_the_providers_words_are_escaped():
    breaker = Breaker(concurrency=1)
    evil = record("infrastructure_error", "auth\x1b[2J", "no\x1b[31m key")
    lines = [breaker.saw(evil) for _ in range(4)]
    assert "\x1b" not in lines[-1]
    assert "\\x1b[31m key" in lines[-1]
