import numpy as np

from impact_twin.report.cases import case_view, trace_entry
from impact_twin.report.observations import iter_cases, observation_table, observe_case
from impact_twin.report.outcomes import CaseView
from impact_twin.statistics.table import OUTCOME_CLASSES


def test_every_planned_case_is_iterated_once(report):
    rows = list(iter_cases(report))
    plan = report["plan"]
    assert len(rows) == 2 * plan["trials"] * len(plan["pairs"])
    assert len({(row.pair, row.trial, row.twin) for row in rows}) == len(rows)
    for row in rows:
        assert (row.trace["pair"], row.trace["twin"]) == (row.pair, row.twin)


def test_the_table_says_what_the_pair_trials_say(report):
    table = observation_table(report)
    assert table.pairs == tuple(report["plan"]["pairs"])
    for row, item in enumerate(report["pair_trials"]):
        assert table.pairs[table.pair[row]] == item["pair"]
        assert table.trial[row] == item["trial"]
        assert OUTCOME_CLASSES[table.outcome[row]] == item["outcome"]
        for twin, columns in (("clean", table.clean), ("poisoned", table.poisoned)):
            entry = report["traces"][item[twin]["trace"]]
            assert columns.resolved[row]
            assert columns.mission[row] == entry["mission_completed"]
            assert columns.violated[row] == bool(entry["violations"])
            assert columns.goal[row] == entry["goal_reached"]
            assert columns.exposed[row] == (entry["served"] is not None)
            assert columns.flagged[row] == bool(entry["flags"])
            assert columns.start[row] == item[twin]["position"]


def test_equal_traces_and_decisions_share_a_code(stage):
    table = observation_table(stage.report({"award-bias": "rrf"}))
    assert table.poisoned.trace[0] == table.poisoned.trace[1] != table.poisoned.trace[2]
    assert table.clean.decision[0] == table.poisoned.decision[0] != table.poisoned.decision[2]


def test_a_case_that_never_ran_has_no_start_and_is_unresolved(stage):
    table = observation_table(stage.report({"award-bias": "ru"}))
    assert table.poisoned.resolved.tolist() == [True, False]
    assert np.isnan(table.poisoned.start[1])
    assert table.poisoned.trace[1] == -1


def test_harm_before_an_infrastructure_error_stays_seen(stage, suite):
    report = stage.report({"payment-reroute": "f"})
    case = report["pair_trials"][0]["poisoned"]
    view = case_view(case, report["traces"], "payment-reroute", "poisoned")
    seen = observe_case(
        CaseView("infrastructure_error", view.verdict), trace=case["trace"], position=0
    )
    assert not seen.resolved
    assert seen.violated
    assert seen.goal


def test_a_trace_of_another_case_is_not_read(stage):
    report = stage.report({"award-bias": "r"})
    case = report["pair_trials"][0]["poisoned"]
    traces = report["traces"]
    assert trace_entry(case, traces, "award-bias", "poisoned") is not None
    assert trace_entry(case, traces, "award-bias", "clean") is None
    assert trace_entry(case, traces, "payment-reroute", "poisoned") is None
    late = {**case, "termination": "timeout"}
    assert trace_entry(late, traces, "award-bias", "poisoned") is None
