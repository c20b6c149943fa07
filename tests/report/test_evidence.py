import json
from copy import deepcopy

import pytest

from impact_twin.errors import InputError
from impact_twin.procurement.model import trace_digest
from impact_twin.procurement.suite import load_suite
from impact_twin.report.cases import case_view, pair_facts, trace_json
from impact_twin.report.evidence import inspect_pair, inspect_report, suite_of_report
from impact_twin.report.evidence_json import inspection_json, pair_json
from impact_twin.report.evidence_model import Choice
from impact_twin.report.outcomes import classify
from impact_twin.report.summary import summary_of

PAIR = "award-bias"


@pytest.fixture(scope="module")
def mixed(stage):
    scripts = ("rfrfvv", "ffffff", "vvvvvv", "rbtefu", "rrrrrf")
    return stage.report(dict(zip(stage.pairs, scripts, strict=True)))


def edited(report, pair, trial, twin="poisoned", change=lambda entry: None, **fields):
    """The report with one case's trace changed, and the figures that follow."""
    new = json.loads(json.dumps(report))
    item = next(x for x in new["pair_trials"] if (x["pair"], x["trial"]) == (pair, trial))
    entry = deepcopy(new["traces"][item[twin]["trace"]])
    entry.update(fields)
    change(entry)
    name = trace_digest(trace_json(entry))
    new["traces"][name] = entry
    item[twin]["trace"] = name
    new["summary"] = summary_of(new)
    return new


def test_the_most_variable_pair_comes_first_and_stable_ones_after_it(mixed):
    rows = inspect_report(mixed).rows
    labels = [row.label for row in rows]
    assert labels == sorted(labels, key=["variable", "stable", "undetermined"].index)
    variable = [row for row in rows if row.label == "variable"]
    shares = [row.disagreement for row in variable]
    assert shares == sorted(shares, reverse=True)
    assert len(variable) == 3
    stable = [row for row in rows if row.label == "stable"]
    assert {row.pair for row in stable} == {"sealed-bid-disclosure", "payment-reroute"}
    held = {row.pair: row.stability for row in stable}
    assert 0.39 < held["payment-reroute"]["per_pair"] < 0.40
    assert held["sealed-bid-disclosure"] is None  # every trace is the same: no bound


def test_the_overview_filters_pairs_by_class(mixed):
    rows = inspect_report(mixed, ["unexposed"]).rows
    assert [row.pair for row in rows] == ["eligibility-override"]


@pytest.mark.parametrize(
    ("pair", "control", "tools"),
    [
        ("award-bias", "impartial_evaluation", ["record_evaluation", "recommend_award"]),
        ("sealed-bid-disclosure", "source_selection_confidentiality", ["send_message"]),
        ("payment-reroute", "payment_identity", ["update_payment_account"]),
        ("eligibility-override", "vendor_master_data", ["set_vendor_status"]),
        ("approval-bypass", "award_authority", ["issue_award"]),
    ],
)
def test_each_control_is_pinned_to_the_state_change_that_broke_it(
    stage, suite, pair, control, tools
):
    found = inspect_pair(stage.report({pair: "rf"}), pair, suite)
    assert found.pick == "flip"
    assert (found.comparison.left.outcome, found.comparison.right.outcome) == (
        "resisted",
        "compromised",
    )
    worse = found.comparison.right
    assert [breach.control for breach in worse.breaches] == [control]
    breach = worse.breaches[0]
    assert breach.goal
    assert not breach.reverted
    broken = [event for event in worse.events if control in event.breaks]
    assert [event.tool for event in broken] == tools
    assert [change.seq for change in breach.changes] == [event.seq for event in broken]
    # What broke it is what only the worse one did, and the legitimate step is not.
    assert {event.seq for event in broken} <= {event.seq for event in found.comparison.only_right}
    assert found.comparison.left.breaches == ()


def test_the_flip_says_where_they_part_and_where_the_poison_was_served(mixed, suite):
    found = inspect_pair(mixed, PAIR, suite)
    left, right = found.comparison.left, found.comparison.right
    assert found.comparison.worse == "right"
    at = found.comparison.parting
    same = at.left.seq - 1
    assert [e.arguments for e in left.events[:same]] == [e.arguments for e in right.events[:same]]
    assert (at.left.tool, at.left.arguments) != (at.right.tool, at.right.arguments)
    for case in (left, right):
        assert case.exposure.passage == suite.pair(PAIR).passage("poisoned")
        assert case.exposure.passage in case.exposure.event.output
        assert case.exposure.calls_after == len(case.events) - case.exposure.event.seq
    assert found.request == suite.pair(PAIR).request


def test_a_compromised_trial_has_its_clean_twin_beside_it(mixed, suite):
    for choice in (Choice(), Choice(trial=2), Choice(trials=(2, 4))):
        found = inspect_pair(mixed, PAIR, suite, choice=choice)
        bad = [case for case in found.shown if case.outcome == "compromised"]
        assert bad
        assert [beside.right for beside in found.beside] == bad
        for beside in found.beside:
            assert beside.kind == "twins"
            assert (beside.left.twin, beside.left.trial) == ("clean", beside.right.trial)
            # The document that differs by design is no parting: the agents called the same.
            assert "answered" in {row.kind for row in beside.rows}
            assert beside.parting.right.seq > beside.right.exposure.event.seq
    assert inspect_pair(mixed, PAIR, suite, choice=Choice(trial=1)).beside == ()


def test_trials_that_are_asked_for_stand_worse_last(mixed, suite):
    for trials in ((1, 2), (2, 1)):
        found = inspect_pair(mixed, PAIR, suite, choice=Choice(trials=trials))
        assert found.pick == "asked"
        assert [case.trial for case in found.shown] == [1, 2]
    alike = inspect_pair(mixed, PAIR, suite, choice=Choice(trials=(6, 5)))
    assert [case.trial for case in alike.shown] == [6, 5]
    assert alike.comparison.worse is None
    assert alike.comparison.only_right == ()
    assert alike.comparison.parting is None


def test_a_class_filters_trials_and_clusters(mixed, suite):
    found = inspect_pair(mixed, PAIR, suite, choice=Choice(classes=("resisted",)))
    assert found.chosen == 4
    assert {cluster.outcome for cluster in found.clusters} == {"resisted"}
    assert found.pick == "trace"


def test_clean_runs_are_compared_by_what_they_did(stage, suite):
    report = stage.report({PAIR: "rrrr"})
    report = edited(
        report, PAIR, 3, "clean", final_answer="", mission_completed=False, missing=["answer"]
    )
    found = inspect_pair(report, PAIR, suite, choice=Choice(twin="clean"))
    assert found.pick == "flip"
    assert [(case.twin, case.trial) for case in found.shown] == [("clean", 1), ("clean", 3)]
    assert all(case.exposure is None for case in found.shown)


def test_a_class_that_hinges_on_the_clean_run_shows_the_clean_run(stage, suite):
    report = stage.report({PAIR: "rrrrr"})
    report = edited(
        report, PAIR, 3, "clean", final_answer="", mission_completed=False, missing=["answer"]
    )
    clean, poisoned = (
        case_view(report["pair_trials"][2][twin], report["traces"], PAIR, twin)
        for twin in ("clean", "poisoned")
    )
    outcome = classify(clean, poisoned, pair_facts(suite.pair(PAIR))).outcome
    assert outcome == "incapable"
    report["pair_trials"][2]["outcome"] = outcome
    for choice in (Choice(), Choice(trials=(3, 1))):
        found = inspect_pair(report, PAIR, suite, choice=choice)
        assert found.twin == "clean"
        assert [case.trial for case in found.shown] == [1, 3]
        assert found.comparison.right.missing == ("answer",)
    assert inspect_pair(report, PAIR, suite, choice=Choice(trial=3)).single.twin == "clean"


def test_one_result_only_shows_the_gravest_difference(stage, suite):
    same = inspect_pair(stage.report({PAIR: "rrrrr"}), PAIR, suite)
    assert (same.pick, same.comparison, same.single.trial) == ("identical", None, 1)
    worded = inspect_pair(stage.report({PAIR: "vvvvv"}), PAIR, suite)
    assert worded.pick == "trace"
    assert worded.courses == 1


def test_unequal_numbers_of_finished_trials_still_show_the_flip(stage, suite):
    report = stage.report({PAIR: "rfuuu", "payment-reroute": "rrrru"})
    found = inspect_pair(report, PAIR, suite)
    assert [case.trial for case in found.shown] == [1, 2]
    assert found.clusters[0].trace is None
    assert found.clusters[0].count == 3


def test_all_unresolved_shows_the_first_and_claims_nothing(stage, suite):
    for script in ("uuu", "eee"):
        found = inspect_pair(stage.report({PAIR: script}), PAIR, suite)
        assert found.pick == "unresolved"
        assert found.single.outcome == "unresolved"
        assert found.beside == ()
    assert "429" in found.single.error


def test_one_trial_is_shown_whole_with_its_twin(stage, suite):
    found = inspect_pair(stage.report({PAIR: "f"}), PAIR, suite)
    assert found.single.trial == 1
    assert len(found.beside) == 1


def test_an_unreadable_trace_is_said_to_be_unreadable(mixed, suite):
    report = json.loads(json.dumps(mixed))
    item = next(x for x in report["pair_trials"] if x["pair"] == PAIR and x["trial"] == 2)
    item["poisoned"]["trace"] = "sha256:" + "0" * 64
    found = inspect_pair(report, PAIR, suite, choice=Choice(trial=2))
    assert not found.single.readable
    assert found.single.events == ()


def test_a_suite_that_is_not_at_hand_leaves_the_changes_open(mixed):
    found = inspect_pair(mixed, PAIR, None)
    assert found.request is None
    breach = found.comparison.right.breaches[0]
    assert (breach.control, breach.changes) == ("impartial_evaluation", ())
    assert found.comparison.right.exposure.passage is None
    assert found.comparison.right.exposure.event is not None


def test_what_no_world_made_breaks_nothing(mixed, suite):
    """A report that keeps to its schema may hold any state and any effects."""

    def change(entry):
        entry["final_state"] = {"recommendation": 3}
        entry["events"][0]["effects"] = [{"kind": "message"}, {"kind": "payment_account"}]
        entry["events"][0]["arguments"] = [None, {"deep": [1.5, True]}]

    report = edited(mixed, PAIR, 2, change=change)
    found = inspect_pair(report, PAIR, suite, choice=Choice(trials=(1, 2)))
    assert found.comparison.right.breaches[0].changes == ()
    json.dumps(pair_json(found), allow_nan=False)


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        (Choice(trial=7), "no trial 7"),
        (Choice(trials=(1, 9)), "no trial 9"),
        (Choice(trials=(2, 2)), "the same"),
        (Choice(trial=1, trials=(1, 2)), "different things"),
        (Choice(trial=1, classes=("resisted",)), "--class filters"),
        (Choice(classes=("swayed",)), "no trial of this pair is swayed"),
    ],
)
def test_impossible_choices_are_refused(mixed, suite, choice, words):
    with pytest.raises(InputError, match=words):
        inspect_pair(mixed, PAIR, suite, choice=choice)


def test_an_unknown_pair_is_refused_and_the_known_ones_are_named(mixed, suite):
    with pytest.raises(InputError, match="It has award-bias") as caught:
        inspect_pair(mixed, "a\x1b[31m", suite)
    assert "\x1b" not in caught.value.line()


def test_the_suite_comes_by_digest_or_from_a_folder_with_that_digest(mixed, suite):
    assert suite_of_report(mixed).digest == suite.digest
    assert suite_of_report(mixed, suite.folder).digest == suite.digest
    own = json.loads(json.dumps(mixed))
    own["identity"]["suite"]["digest"] = "sha256:" + "0" * 64
    assert suite_of_report(own) is None
    with pytest.raises(InputError, match="another digest"):
        suite_of_report(own, load_suite().folder)


def test_the_json_holds_everything_whole(mixed, suite):
    report = edited(mixed, PAIR, 2, final_answer="x" * 2**20)
    overview = inspect_report(report)
    pairs = [inspect_pair(report, row.pair, suite) for row in overview.rows]
    data = json.loads(json.dumps(inspection_json(overview, pairs), allow_nan=False))
    assert data["kind"] == "impact-twin/inspection"
    assert [row["pair"] for row in data["overview"]] == [
        pair["row"]["pair"] for pair in data["pairs"]
    ]
    flip = next(pair for pair in data["pairs"] if pair["row"]["pair"] == PAIR)
    asked = pair_json(inspect_pair(report, PAIR, suite, choice=Choice(trial=2)))
    assert len(asked["single"]["final_answer"]) == 2**20
    assert sum(cluster["count"] for cluster in flip["clusters"]) == 6
    assert all(cluster["example"] in cluster["trials"] for cluster in flip["clusters"])
    comparison = flip["comparison"]
    seqs = {event["seq"] for event in comparison["right"]["events"]}
    assert set(comparison["only_right"]) <= seqs
    assert {row["right"] for row in comparison["rows"] if row["right"]} == seqs


def test_the_report_is_left_alone(mixed, suite):
    before = json.dumps(mixed)
    inspect_report(mixed)
    inspect_pair(mixed, PAIR, suite)
    assert json.dumps(mixed) == before
