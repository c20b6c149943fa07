import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.agents.protocol import CaseOutcome, ModelCall, Usage
from impact_twin.procurement.model import Trace
from impact_twin.procurement.replay import replay
from impact_twin.trials.case import PERMANENT_KINDS, Backoff, CaseRunner, how_it_ended
from impact_twin.trials.executor import ThreadExecutor
from impact_twin.trials.ledger import Ledger
from impact_twin.trials.plan import Limits, case_seed
from impact_twin.trials.records import CaseKey
from impact_twin.trials.throttle import Throttle

KEY = CaseKey("payment-reroute", 1, "poisoned")
SERVER_ERROR = CaseOutcome("infrastructure_error", error_kind="server_error", http_status=503)


@pytest.fixture
def run_case(suite, source_of, plan_of):
    def go(function, key=KEY, earlier=None, first_s=0.001, stopping=None, kind="model", **limits):
        source = source_of(function, kind)
        runner = CaseRunner(
            plan_of(source, limits=limits),
            suite,
            ThreadExecutor(source),
            ledger=Ledger(Limits()),
            throttle=Throttle(),
            backoff=Backoff(first_s=first_s),
            stopping=stopping or threading.Event(),
        )
        return runner.run(key, 3, earlier)

    return go


def vendor_of(request):
    import json

    return json.loads(request.call("list_vendors", {}))[0]["vendor_id"]


@pytest.mark.parametrize(
    ("outcome", "limit", "outstanding", "expected"),
    [
        (CaseOutcome("completed", "yes"), False, False, ("completed", "")),
        (CaseOutcome("completed", "yes"), True, False, ("limit", "max_tool_calls")),
        (CaseOutcome("agent_error", error_kind="x"), True, False, ("limit", "max_tool_calls")),
        (CaseOutcome("refused", error_kind="r"), True, False, ("refused", "r")),
        (SERVER_ERROR, True, True, ("infrastructure_error", "server_error")),
        (CaseOutcome("limit", error_kind="max_iters"), False, False, ("limit", "max_iters")),
        (None, False, False, ("timeout", "timeout")),
        (None, False, True, ("infrastructure_error", "timeout_in_request")),
        (None, True, True, ("limit", "max_tool_calls")),
        (CaseOutcome("timeout"), False, False, ("agent_error", "bad_outcome")),
        (CaseOutcome("not_run"), False, False, ("agent_error", "bad_outcome")),
        (CaseOutcome("resisted"), False, False, ("agent_error", "bad_outcome")),
    ],
)
def test_how_a_try_ended(outcome, limit, outstanding, expected):
    ended = how_it_ended(outcome, limit, outstanding)
    assert (ended.termination, ended.error_kind) == expected


@given(st.integers(0, 2**63 - 1), st.integers(1, 500))
def test_backoff_doubles_with_bounded_jitter(seed, tries):
    backoff = Backoff(first_s=1.0, cap_s=60.0)
    delay = backoff.delay(seed, tries)
    assert delay == backoff.delay(seed, tries)
    assert (
        min(60.0, 0.5 * 2.0 ** min(tries - 1, 63))
        <= delay
        <= min(60.0, 1.5 * 2.0 ** min(tries, 60))
    )


def test_jitter_differs_between_cases():
    assert len({Backoff().delay(seed, 1) for seed in range(100)}) == 100


def test_every_try_is_kept_with_a_fresh_world_each(run_case):
    seen = []

    def agent(request):
        seen.append(
            request.call(
                "record_evaluation", {"vendor_id": vendor_of(request), "score": 5, "rationale": "r"}
            )
        )
        request.monitor.request_started()
        request.monitor.request_finished(ModelCall(1.0, 0.1, usage=Usage(3, 4, 0.5)))
        return SERVER_ERROR if len(seen) < 3 else CaseOutcome("completed", "done", instance=7)

    finished = run_case(agent, retries=2)
    record = finished.record
    assert finished.complete
    assert [attempt.termination for attempt in record.attempts] == [
        "infrastructure_error",
        "infrastructure_error",
        "completed",
    ]
    assert [attempt.http_status for attempt in record.attempts] == [503, 503, None]
    assert [attempt.requests for attempt in record.attempts] == [1, 1, 1]
    assert record.termination == "completed"
    assert record.trace == record.attempts[-1].trace
    assert record.usage == Usage(9, 12, 1.5)
    assert len(record.model_calls) == 3
    assert record.instance == 7
    assert record.position == 3
    assert all(attempt.duration_s >= 0 for attempt in record.attempts)
    assert record.duration_s == pytest.approx(sum(a.duration_s for a in record.attempts))
    # A world that leaked from one try to the next would answer differently.
    assert len(set(seen)) == 1
    assert all(len(finished.traces[a.trace]["events"]) == 2 for a in record.attempts)


def test_retries_end(run_case):
    finished = run_case(lambda request: SERVER_ERROR, retries=3)
    assert len(finished.record.attempts) == 4
    assert finished.record.termination == "infrastructure_error"
    assert len(run_case(lambda request: SERVER_ERROR, retries=0).record.attempts) == 1


@pytest.mark.parametrize("kind", sorted(PERMANENT_KINDS))
def test_an_error_that_would_come_again_is_not_tried_again(run_case, kind):
    outcome = CaseOutcome("infrastructure_error", error_kind=kind)
    assert len(run_case(lambda request: outcome, retries=3).record.attempts) == 1


@pytest.mark.parametrize("termination", ["completed", "agent_error", "limit", "refused"])
def test_outcomes_are_never_tried_again(run_case, termination):
    finished = run_case(lambda request: CaseOutcome(termination), retries=3)
    assert len(finished.record.attempts) == 1


def test_no_retry_after_harm(run_case):
    calls = []

    def agent(request):
        calls.append(
            request.call(
                "update_payment_account", {"vendor_id": vendor_of(request), "account": "EVIL-1"}
            )
        )
        return SERVER_ERROR

    record = run_case(agent, retries=3).record
    assert len(calls) == len(record.attempts) == 1
    assert record.termination == "infrastructure_error"


def test_no_retry_after_an_attempt_that_the_world_rejected(run_case, suite):
    goal = suite.pair(KEY.pair).goal

    def agent(request):
        answer = request.call(
            "update_payment_account", {"vendor_id": goal.vendor + "9", "account": goal.account}
        )
        assert answer.startswith("ERROR")
        return SERVER_ERROR

    assert len(run_case(agent, retries=3).record.attempts) == 1


def test_an_agents_own_word_gets_another_try_only_before_its_first_tool_call(run_case):
    """Else code of the user's could throw a run away that it did not like."""

    def after_a_call(request):
        request.call("list_documents", {})
        return SERVER_ERROR

    def before(request):
        return SERVER_ERROR

    tries = {
        (kind, agent.__name__): len(run_case(agent, kind=kind, retries=2).record.attempts)
        for kind in ("factory", "model")
        for agent in (after_a_call, before)
    }
    assert tries == {
        ("factory", "after_a_call"): 1,
        ("factory", "before"): 3,
        ("model", "after_a_call"): 3,
        ("model", "before"): 3,
    }


def test_timeout_in_the_agent_and_in_a_request_differ(run_case):
    hanging = threading.Event()

    def lazy(request):
        hanging.wait(30)

    def waiting(request):
        request.monitor.request_started()
        hanging.wait(30)

    def between(request):
        request.monitor.request_started()
        request.monitor.request_finished(ModelCall(1.0, 0.1))
        hanging.wait(30)

    record = run_case(lazy, timeout_s=0.1).record
    assert (record.termination, len(record.attempts)) == ("timeout", 1)
    record = run_case(waiting, timeout_s=0.1, retries=1).record
    assert record.termination == "infrastructure_error"
    assert [attempt.error_kind for attempt in record.attempts] == ["timeout_in_request"] * 2
    assert record.attempts[0].requests == 1
    assert run_case(between, timeout_s=0.1).record.termination == "timeout"
    hanging.set()


def test_timed_out_case_keeps_what_was_seen(run_case):
    hanging = threading.Event()

    def agent(request):
        request.call("list_documents", {})
        request.monitor.request_started()
        request.monitor.request_finished(ModelCall(1.0, 0.1, usage=Usage(5, 6, None)))
        hanging.wait(30)

    finished = run_case(agent, timeout_s=0.2)
    hanging.set()
    record = finished.record
    assert record.termination == "timeout"
    assert record.usage == Usage(5, 6, None)
    assert [event["tool"] for event in finished.traces[record.trace]["events"]] == [
        "list_documents"
    ]
    assert 0.2 <= record.duration_s < 5


def test_world_is_sealed_when_the_time_is_over(run_case):
    go_on, said = threading.Event(), []

    def agent(request):
        request.call("list_documents", {})
        go_on.wait(30)
        said.append(
            request.call(
                "set_vendor_status", {"vendor_id": "V-301", "status": "debarred", "reason": "r"}
            )
        )
        said.append(request.call("list_documents", {}))

    finished = run_case(agent, timeout_s=0.1)
    go_on.set()
    while len(said) < 2:
        pass
    assert all(answer.startswith("ERROR: this case has ended") for answer in said)
    assert len(finished.traces[finished.record.trace]["events"]) == 1


def test_agent_that_uses_up_its_tool_calls_is_ended_at_once(run_case):
    def agent(request):
        while True:
            request.call("list_documents", {})

    finished = run_case(agent, max_tool_calls=5, timeout_s=60)
    assert finished.record.termination == "limit"
    assert finished.record.attempts[0].error_kind == "max_tool_calls"
    assert len(finished.traces[finished.record.trace]["events"]) == 5
    assert finished.record.duration_s < 10


def test_using_exactly_the_allowed_calls_is_fine(run_case):
    def agent(request):
        for _ in range(5):
            request.call("list_documents", {})
        return CaseOutcome("completed", "done")

    assert run_case(agent, max_tool_calls=5).record.termination == "completed"


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
def test_source_that_breaks_its_promise_is_an_agent_error(run_case, error):
    def agent(request):
        raise error

    record = run_case(agent).record
    assert record.termination == "agent_error"
    assert record.attempts[0].message == type(error).__name__


def test_source_that_returns_rubbish_is_an_agent_error(run_case):
    record = run_case(lambda request: None, timeout_s=5).record
    assert record.termination == "agent_error"


def test_wild_words_of_an_outcome_are_tamed(run_case):
    outcome = CaseOutcome(
        "agent_error",
        final_answer="a\ud800",
        error_kind="k\ud800",
        message="m" * 9999,
        http_status=10**30,
        usage=Usage(-3, 5, float("inf")),
        detail={"deep": float("nan"), "big": 2**70},
    )
    record = run_case(lambda request: outcome).record
    assert record.attempts[0].error_kind == "k\ufffd"
    assert len(record.attempts[0].message) == 500
    assert record.usage == Usage(0, 5, None)
    assert record.detail == {"deep": None, "big": str(2**70)}
    assert record.attempts[0].http_status is None


def test_stop_between_tries_keeps_the_tries_for_later(run_case):
    stopping = threading.Event()

    def agent(request):
        stopping.set()
        return SERVER_ERROR

    first = run_case(agent, stopping=stopping, first_s=60, retries=2)
    assert not first.complete
    assert len(first.record.attempts) == 1
    later = run_case(lambda request: SERVER_ERROR, earlier=first.record, retries=2)
    assert later.complete
    assert len(later.record.attempts) == 3
    assert later.record.attempts[0] == first.record.attempts[0]


def test_delivered_text_is_classified(run_case, suite):
    pair = suite.pair(KEY.pair)

    def reader(shown):
        def agent(request):
            text = request.call("read_document", {"document_id": pair.passage_document})
            if shown is not None:
                request.monitor.delivered([text if shown == "same" else shown])
            return CaseOutcome("completed", "done")

        return agent

    assert run_case(reader("same")).record.delivered == "intact"
    assert run_case(reader(None)).record.delivered == "unknown"
    removed = run_case(reader("<data omitted>")).record
    assert (removed.delivered, removed.delivered_text) == ("removed", "<data omitted>")
    nothing = run_case(lambda request: CaseOutcome("completed", "done")).record
    assert (nothing.delivered, nothing.delivered_text) == (None, None)


def test_traces_replay(run_case, suite):
    def agent(request):
        for document in ("D-1", "nonsense", None):
            request.call("read_document", {"document_id": document})
        request.call("no_such_tool", {"a": float("nan")})
        request.call("list_documents", "not an object")
        return CaseOutcome("completed", "done")

    finished = run_case(agent)
    trace = Trace.from_json(finished.traces[finished.record.trace], finished.texts)
    assert len(trace.events) == 5
    assert replay(suite, trace) == trace


def test_seed_and_time_reach_the_agent(run_case, plan_of, suite):
    seen = []

    def agent(request):
        seen.append(request)
        return CaseOutcome("completed", "done")

    run_case(agent, timeout_s=42.0)
    request = seen[0]
    assert request.seed == case_seed(plan_of(), KEY)
    assert request.deadline_s == 42.0
    assert request.tools == suite.tools
    assert KEY.pair not in repr((request.query, request.system_directive, request.tools))
