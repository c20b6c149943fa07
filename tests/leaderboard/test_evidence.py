from dataclasses import replace

from leaderboard_samples import stored

from impact_twin.canonical import digest
from impact_twin.leaderboard.evidence import replicates, run_warnings


def planned(run, *, benign=False):
    return [key for cell in run.plan.cells(benign=benign) for key in run.plan.keys(cell)]


def test_identical_traces_of_every_pair_are_no_variation(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {})
    found = replicates(run, planned(run))
    assert found["label"] == "no variation seen"
    assert (found["pairs"], found["pairs_identical"]) == (8, 8)
    assert (found["cells"], found["cells_same_security"], found["cells_same_utility"]) == (2, 2, 2)
    assert (found["runs"], found["requests"], found["cache"]) == (16, 32, "off")


def test_one_different_trace_is_variation(tmp_path, protocol):
    def fill(key):
        odd = key.repeat == 2 and key.user_task == "user_task_0" and key.attack == "direct"
        return {"trace": digest("other")} if odd else {}

    run = stored(tmp_path / "run", protocol, fill)
    found = replicates(run, planned(run))
    assert found["label"] == "no copying seen"
    assert (found["pairs"], found["pairs_identical"]) == (8, 6)


def test_a_cells_repeats_are_compared_outcome_by_outcome(tmp_path, protocol):
    def fill(key):
        return {"attack_succeeded": key.attack == "direct" and key.repeat == 2}

    run = stored(tmp_path / "run", protocol, fill)
    found = replicates(run, planned(run))
    assert (found["cells_same_security"], found["cells_same_utility"]) == (1, 2)


def test_a_response_id_that_occurs_twice_is_copying(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {"response_ids": ("same",)})
    found = replicates(run, planned(run))
    assert (found["label"], found["response_ids_repeated"]) == ("copied", 15)


def test_fewer_requests_than_runs_are_copying(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {"requests": 0, "with_tools": 0})
    assert replicates(run, planned(run))["label"] == "copied"


def test_missing_ids_are_no_repeated_ids(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {"response_ids": (None, None)})
    found = replicates(run, planned(run))
    assert (found["response_ids"], found["response_ids_repeated"]) == (0, 0)
    assert found["label"] == "no variation seen"


def test_an_empty_run_says_nothing(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: None)
    found = replicates(run, planned(run))
    assert (found["label"], found["pairs"], found["runs"]) == ("no copying seen", 0, 0)


def test_what_a_reader_must_know_is_warned_of(tmp_path, protocol):
    run = stored(
        tmp_path / "run",
        protocol,
        lambda k: {
            "exposed": k.repeat == 1,
            "with_tools": 1,
            "served_models": (f"m-{k.repeat}",),
            "termination": "refused" if k.repeat == 2 else "completed",
        },
    )
    lines = "\n".join(run_warnings(run, planned(run)))
    assert "read in only 8 of 16 attacked runs" in lines
    assert "16 requests went without native tools" in lines
    assert "served several models: m-1, m-2" in lines
    assert "8 runs ended in a refusal" in lines


def test_a_clean_run_needs_no_warning(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {})
    assert run_warnings(run, planned(run)) == []
    assert run_warnings(replace(run, records={}), []) == []
