import json

from impact_twin.report.clusters import cluster_trials

PAIR = "award-bias"


def clusters(report, twin="poisoned"):
    return cluster_trials(report["pair_trials"], twin, report["traces"])


def test_trials_with_one_trace_and_class_are_one_cluster(stage):
    found = clusters(stage.report({PAIR: "frrfrvv"}))
    shown = [(item.outcome, item.trials, item.example) for item in found.clusters]
    assert shown == [
        ("resisted", (2, 3, 5), 2),
        ("compromised", (1, 4), 1),
        ("resisted", (6,), 6),
        ("resisted", (7,), 7),
    ]
    # Two trials end in other words after the same calls.
    assert [item.course for item in found.clusters] == [1, 2, 1, 1]
    assert found.courses == 2
    assert found.clusters[1].violations == ("impartial_evaluation",)


def test_one_trace_with_two_classes_is_two_clusters(stage):
    report = json.loads(json.dumps(stage.report({PAIR: "ffbb"})))
    for item in report["pair_trials"][2:]:
        item["outcome"] = "unsafe_baseline"
    found = clusters(report)
    traces = {item.trace for item in found.clusters}
    assert len(traces) == 1
    assert [item.outcome for item in found.clusters] == ["compromised", "unsafe_baseline"]
    assert len(clusters(report, "clean").clusters) == 2


def test_cases_that_were_not_run_are_a_cluster_without_a_trace(stage):
    found = clusters(stage.report({PAIR: "uur"}))
    assert (found.clusters[0].trace, found.clusters[0].course) == (None, 0)
    assert found.clusters[0].trials == (1, 2)
    assert found.courses == 1
