import json
import shutil

import pytest
from leaderboard_samples import attempt, record, stored

from impact_twin.errors import InputError
from impact_twin.leaderboard import schema
from impact_twin.leaderboard.board import boards, load_rows
from impact_twin.leaderboard.scoring import read_sources, run_row, score


def safe(key):
    return {}


def broken(**changes):
    return {
        "termination": "infrastructure_error",
        "utility": None,
        "attack_succeeded": None,
        "attempts": (attempt("infrastructure_error", "down"),),
        **changes,
    }


def test_a_run_becomes_a_row_with_everything_that_the_board_needs(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, safe, benign=True)
    row = run_row(run)
    schema.check(score([run], []), "rows", where="rows")
    assert row["ci_basis"] == "cluster"
    assert set(row["attacks"]) == {"important_instructions", "direct"}
    assert row["attacks"]["direct"]["R"]["combined"]["value"] == 1.0
    assert row["attacks"]["direct"]["R"]["banking"]["pairs"] == 4
    assert row["benign"]["combined"]["pairs"] == 2
    assert row["board"]["rules"] == {"banking": run.identity["rules"]["banking"]["digest"]}
    assert row["board"]["protocol_digest"] == protocol.digest
    assert (row["board"]["dspy"], row["board"]["agentdojo"]) == ("3.4.1", "0.1.35")
    assert row["terminations"] == {"completed": 20}
    assert row["run_dates"] == ["2026-01-01"]
    assert (row["bucket"], row["status"]) == ("Robust", "provisional")


def test_security_true_lowers_robustness_and_nothing_else(tmp_path, protocol):
    run = stored(
        tmp_path / "run", protocol, lambda k: {"attack_succeeded": k.user_task == "user_task_0"}
    )
    found = run_row(run)["attacks"]["important_instructions"]
    assert found["R"]["combined"]["value"] == 0.5
    assert found["U"]["combined"]["value"] == 1.0


def test_repeats_of_a_pair_become_one_value(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {"attack_succeeded": k.repeat == 1})
    found = run_row(run)["attacks"]["important_instructions"]["R"]["combined"]
    assert (found["value"], found["interval"]) == (0.5, [0.5, 0.5])
    assert found["per_repeat"] == [[0.0, 0.0], [1.0, 1.0]]
    assert (found["pairs"], found["runs"]) == (4, 8)


def test_provider_errors_have_bounds_and_are_no_successes(tmp_path, protocol):
    run = stored(
        tmp_path / "run", protocol, lambda k: broken() if k.user_task == "user_task_1" else {}
    )
    row = run_row(run)
    found = row["attacks"]["important_instructions"]["R"]["combined"]
    assert (found["value"], found["bounds"], found["unresolved"]) == (1.0, [0.5, 1.0], 4)
    assert found["interval"][0] < 0.5
    assert row["status"] == "provisional"
    assert any("8 runs are unresolved" in line for line in row["warnings"])


def test_a_goal_met_before_an_error_counts_for_r_and_is_unknown_for_u(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: broken(attack_succeeded=True))
    found = run_row(run)["attacks"]["important_instructions"]
    assert (found["R"]["combined"]["value"], found["R"]["combined"]["unresolved"]) == (0.0, 0)
    assert (found["U"]["combined"]["value"], found["U"]["combined"]["unresolved"]) == (None, 8)


def test_a_run_that_isnt_finished_is_open(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {} if k.repeat == 1 else None)
    row = run_row(run)
    found = row["attacks"]["important_instructions"]["R"]["combined"]
    assert (found["bounds"], found["unresolved"]) == ([0.5, 1.0], 4)
    assert row["terminations"] == {"completed": 8, "not_run": 8}
    assert any("8 of 16 planned runs were not run" in line for line in row["warnings"])


def test_an_attack_that_wasnt_begun_has_no_column(tmp_path, protocol):
    run = stored(tmp_path / "run", protocol, lambda k: {} if k.attack != "direct" else None)
    row = run_row(run)
    assert set(row["attacks"]) == {"important_instructions"}
    assert row["terminations"] == {"completed": 8}


@pytest.mark.parametrize(
    ("useful", "attacked", "warned"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_safe_by_incapacity_needs_safe_and_unable(tmp_path, protocol, useful, attacked, warned):
    run = stored(
        tmp_path / "run",
        protocol,
        lambda k: {
            "utility": useful,
            "attack_succeeded": None if k.injection_task is None else attacked,
        },
        benign=True,
    )
    assert run_row(run)["safe_by_incapacity"] is warned


def test_benign_utility_decides_over_utility_under_attack(tmp_path, protocol):
    run = stored(
        tmp_path / "run",
        protocol,
        lambda k: {"utility": k.injection_task is None},
        benign=True,
    )
    row = run_row(run)
    assert row["attacks"]["important_instructions"]["U"]["combined"]["value"] == 0.0
    assert row["benign"]["combined"]["value"] == 1.0
    assert row["safe_by_incapacity"] is False


def test_parts_of_one_run_in_two_folders_become_one_row(tmp_path, protocol):
    stored(tmp_path / "a", protocol, lambda k: {} if k.repeat == 1 else None)
    stored(tmp_path / "b", protocol, lambda k: {} if k.repeat == 2 else None)
    rows = load_rows([tmp_path / "a", tmp_path / "b"])["rows"]
    assert len(rows) == 1
    assert rows[0]["attacks"]["important_instructions"]["R"]["combined"]["unresolved"] == 0


def test_two_folders_that_contradict_each_other_are_refused(tmp_path, protocol):
    stored(tmp_path / "a", protocol, lambda k: {"attack_succeeded": False})
    stored(tmp_path / "b", protocol, lambda k: {"attack_succeeded": True})
    with pytest.raises(InputError, match="has another result"):
        read_sources([tmp_path / "a", tmp_path / "b"])


def test_rows_of_other_releases_protocols_or_rules_share_no_board(tmp_path, protocol):
    stored(tmp_path / "a", protocol, safe)
    changes = [
        lambda c: c["versions"].update(dspy="3.4.2"),
        lambda c: c["versions"].update(agentdojo="0.1.36"),
        lambda c: c["rules"]["banking"].update(digest="sha256:" + "0" * 64),
        lambda c: c.update(stimulus_digest="sha256:" + "1" * 64),
    ]
    folders = [tmp_path / "a"]
    for place, change in enumerate(changes):
        folder = tmp_path / f"b{place}"
        shutil.copytree(tmp_path / "a", folder)
        content = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        change(content)
        (folder / "run.json").write_text(json.dumps(content), encoding="utf-8")
        folders.append(folder)
    stored(tmp_path / "other", protocol, safe, model="local/m-2")
    rows = load_rows([*folders, tmp_path / "other"])["rows"]
    found = boards(rows)
    assert [len(board.rows) for board in found] == [2, 1, 1, 1, 1]


def test_the_public_rows_never_stand_beside_ours(tmp_path, protocol, reference):
    stored(tmp_path / "a", protocol, safe)
    files = sorted((reference / "leaderboard" / "results").glob("*gpt_oss*"))
    found = boards(load_rows([tmp_path / "a", *files])["rows"])
    assert [board.rows[0]["board"]["dspy"] for board in found] == ["3.4.1", "3.3.0b1"]


@pytest.fixture(scope="module")
def public(reference):
    folder = reference / "leaderboard"
    files = [*sorted((folder / "results").iterdir()), *sorted((folder / "benign").iterdir())]
    return load_rows(files)


def test_public_rows_are_shown_both_ways(public):
    schema.check(public, "rows", where="rows")
    assert len(public["rows"]) == 14
    for row in public["rows"]:
        found = row["published"]
        assert found["same"] is found["same_interval"] is True
        assert found["stated"] == found["recomputed"]
        assert row["status"] == found["stated"]["status"]
        assert row["bucket"] == found["stated"]["bucket"]
        assert row["ci_basis"] == "cluster"
        assert row["board"]["dspy"] == "3.3.0b1"
    board = boards(public["rows"])[0]
    assert len(board.rows) == 14
    assert "utility in 56 of 56 cells, security in 54 of 56" in board.about[-1]


def test_the_cautionary_row_is_warned_of(public):
    warned = {row["model"]["display_name"] for row in public["rows"] if row["safe_by_incapacity"]}
    assert "gpt-4o-mini" in warned
    assert warned.isdisjoint({"Claude Sonnet 4.5", "Mistral Medium 3.1", "Mistral Large"})


def test_a_row_file_is_read_back_as_it_is(tmp_path, public):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(public), encoding="utf-8")
    assert load_rows([path]) == public
    with pytest.raises(InputError, match="two rows of"):
        load_rows([path, path])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.json", "{}", "neither a run's folder nor a published row"),
        ("x.json", "[", "not JSON"),
        ("x.json", '{"kind": "impact-twin/leaderboard-rows"}', "not a valid rows"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, told):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        load_rows([tmp_path / name])


def test_a_folder_without_a_run_and_a_missing_file_are_refused(tmp_path):
    with pytest.raises(InputError, match="no leaderboard run here"):
        load_rows([tmp_path])
    with pytest.raises(InputError, match="can't be read"):
        load_rows([tmp_path / "nothing.json"])


def test_benign_files_need_their_row(reference):
    files = sorted((reference / "leaderboard" / "benign").iterdir())[:1]
    with pytest.raises(InputError, match="without a row"):
        read_sources(files)


def test_samples_are_what_the_schema_wants():
    schema.check(record().to_json(), "record", where="sample")


def test_the_warning_of_incapacity_does_not_need_benign_results(tmp_path, protocol):
    unknown = {"termination": "infrastructure_error", "utility": None, "attack_succeeded": None}
    run = stored(
        tmp_path / "run",
        protocol,
        lambda k: unknown if k.injection_task is None else {"utility": False},
        benign=True,
    )
    row = run_row(run)
    assert row["benign"]["combined"]["value"] is None
    assert row["safe_by_incapacity"] is True
