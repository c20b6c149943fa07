import threading

from impact_twin.trials.records import CaseKey
from impact_twin.trials.schedule import Schedule


def cases(trials, pairs=("one",)):
    return [
        CaseKey(pair, trial, twin)
        for trial in range(1, trials + 1)
        for pair in pairs
        for twin in ("clean", "poisoned")
    ]


def never():
    return ""


def test_cases_come_in_order_with_positions():
    schedule = Schedule(iter(cases(3)), 5, may_start=never)
    taken = [schedule.take() for _ in range(7)]
    assert [item.key for item in taken[:6]] == cases(3)
    assert [item.position for item in taken[:6]] == [5, 6, 7, 8, 9, 10]
    assert taken[6] is None
    assert schedule.running == 6


def test_nothing_starts_after_a_stop_and_the_first_reason_stays():
    schedule = Schedule(iter(cases(3)), 0, may_start=never)
    schedule.take()
    schedule.stop("first")
    schedule.stop("second")
    assert schedule.take() is None
    assert schedule.reason == "first"


def test_a_used_up_budget_stops_before_the_next_case():
    answers = iter(["", "", "no money"])
    schedule = Schedule(iter(cases(3)), 0, may_start=lambda: next(answers))
    assert schedule.take()
    assert schedule.take()
    assert schedule.take() is None
    assert schedule.take() is None
    assert schedule.reason == "no money"


def test_without_a_rule_trials_overlap():
    schedule = Schedule(iter(cases(2)), 0, may_start=never)
    assert [schedule.take().key.trial for _ in range(4)] == [1, 1, 2, 2]


def run_all(schedule, workers=4):
    seen = []
    lock = threading.Lock()

    def work():
        while (assignment := schedule.take()) is not None:
            with lock:
                seen.append(("start", assignment.key.trial))
            with lock:
                seen.append(("end", assignment.key.trial))
            schedule.done()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    return seen


def test_a_rule_is_asked_after_each_trial_with_nothing_in_flight():
    asked = []

    def rule(trial):
        asked.append((trial, schedule.running))
        return ""

    schedule = Schedule(iter(cases(5, "abc")), 0, may_start=never, after_trial=rule)
    seen = run_all(schedule)
    assert asked == [(trial, 0) for trial in range(1, 6)]
    trials = [trial for _, trial in seen]
    assert trials == sorted(trials)
    assert len(seen) == 60


def test_a_rule_ends_the_run_between_trials():
    schedule = Schedule(
        iter(cases(5)),
        0,
        may_start=never,
        after_trial=lambda trial: "sure enough" if trial == 2 else "",
    )
    assert max(trial for _, trial in run_all(schedule)) == 2
    assert schedule.reason == ""


def test_a_trial_of_an_earlier_session_is_asked_about_first():
    asked = []
    schedule = Schedule(
        iter(cases(5)[4:]),
        4,
        last_trial=2,
        may_start=never,
        after_trial=lambda trial: asked.append(trial) or "",
    )
    run_all(schedule)
    assert asked == [2, 3, 4, 5]


def test_who_waits_at_a_barrier_leaves_when_the_run_stops():
    schedule = Schedule(iter(cases(2)), 0, may_start=never, after_trial=lambda trial: "")
    schedule.take()
    schedule.take()
    left = []
    waiting = threading.Thread(target=lambda: left.append(schedule.take()))
    waiting.start()
    schedule.stop("interrupted")
    waiting.join(10)
    assert left == [None]
