from dataclasses import replace

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.trials.ledger import Ledger, Spent, total_usage
from impact_twin.trials.plan import Limits
from impact_twin.trials.records import CaseKey, CaseRecord


def call(inputs, outputs, cost, error=None):
    return ModelCall(1.0, 0.1, error=error, usage=Usage(inputs, outputs, cost))


def test_spending_adds_up():
    ledger = Ledger(Limits())
    ledger.add_call(call(10, 5, 0.25))
    ledger.add_call(call(1, 1, None))
    ledger.add_call(call(0, 0, None, error="connection"))
    ledger.add_reported(Usage(100, 0, 1.0))
    ledger.add_reported(None)
    assert ledger.spent == Spent(111, 6, 1.25, requests=3, unpriced=1, silent=1)
    assert ledger.spent.tokens == 117
    assert ledger.used_up() == ""
    assert ledger.blind_spots() == ()


def test_budget_is_used_up_when_it_is_reached():
    tokens = Ledger(Limits(max_tokens=100))
    tokens.add_call(call(60, 39, None))
    assert tokens.used_up() == ""
    tokens.add_call(call(1, 0, None))
    assert "--max-tokens 100 is used up (100 tokens)" in tokens.used_up()
    cost = Ledger(Limits(max_cost_usd=0.5))
    cost.add_call(call(1, 1, 0.49))
    assert cost.used_up() == ""
    cost.add_call(call(1, 1, 0.01))
    assert "--max-cost-usd 0.5 is used up (0.5000 USD)" in cost.used_up()


def test_what_a_budget_cannot_see_is_said():
    ledger = Ledger(Limits(max_cost_usd=1))
    ledger.add_call(call(10, 5, None))
    ledger.add_reported(None)
    first, second = ledger.blind_spots()
    assert first.startswith("1 requests have no known cost")
    assert second.startswith("1 cases reported no usage")
    only_tokens = Ledger(Limits(max_tokens=1))
    only_tokens.add_call(call(10, 5, None))
    assert only_tokens.blind_spots() == ()


def test_earlier_sessions_count():
    record = CaseRecord(
        CaseKey("award-bias", 1, "clean"), 0, "completed", "", 1.0, Usage(7, 7, 0.1), (), ()
    )
    ledger = Ledger(Limits())
    ledger.add_earlier([record, replace(record, model_calls=(call(1, 2, 0.5), call(3, 4, None)))])
    ledger.add_earlier([replace(record, usage=Usage())])
    assert ledger.spent == Spent(11, 13, 0.6, requests=2, unpriced=1, silent=1)


def test_total_usage_knows_what_it_does_not_know():
    assert total_usage([], []) == Usage(0, 0, None)
    assert total_usage([call(1, 2, 0.5), call(3, 4, 0.25)], []) == Usage(4, 6, 0.75)
    assert total_usage([call(1, 2, 0.5), call(3, 4, None)], []) == Usage(4, 6, None)
    failed = call(0, 0, None, error="server_error")
    assert total_usage([failed, call(1, 2, 0.5)], []) == Usage(1, 2, 0.5)
    assert total_usage([], [Usage(5, 6, 0.5)]) == Usage(5, 6, 0.5)
