import itertools

import pytest

from impact_twin.trials.throttle import LARGEST_SPACING_S, LONGEST_PAUSE_S, Throttle


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def throttle(clock):
    return Throttle(clock)


def test_nobody_waits_before_the_first_rate_limit(throttle):
    assert [throttle.turn() for _ in range(100)] == [0.0] * 100
    assert not throttle.slowed


def test_all_wait_for_the_pause_and_then_leave_one_by_one(throttle, clock):
    throttle.slow_down(10)
    clock.now += 4
    turns = [throttle.turn() for _ in range(5)]
    assert turns[0] == pytest.approx(6)
    gaps = [after - before for before, after in itertools.pairwise(turns)]
    assert gaps == pytest.approx([0.05] * 4)
    assert throttle.slowed


def test_limits_of_requests_that_left_together_count_once(throttle, clock):
    for _ in range(50):
        throttle.slow_down(1)
        clock.now += 0.0001
    clock.now += 10
    assert throttle.turn() == 0.0
    assert throttle.turn() == pytest.approx(0.05)


def test_spacing_doubles_up_to_a_cap_and_melts_when_all_is_well(throttle, clock):
    for _ in range(20):
        throttle.slow_down(0)
        clock.now += 60
    throttle.turn()
    assert throttle.turn() == pytest.approx(LARGEST_SPACING_S)
    for _ in range(200):
        throttle.went_well()
    clock.now += 60
    assert throttle.turn() == 0.0
    assert not throttle.slowed


def test_no_provider_can_stop_a_run_for_good(throttle):
    throttle.slow_down(1e9)
    assert throttle.turn() <= LONGEST_PAUSE_S
    throttle.slow_down(float("inf"))
    throttle.slow_down(float("nan"))
    throttle.slow_down(-5)
    assert throttle.turn() <= LONGEST_PAUSE_S + 1
