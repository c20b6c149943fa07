import pytest
from leaderboard_samples import stored

from impact_twin.errors import InputError
from impact_twin.leaderboard.coverage import coverage_check, render_text
from impact_twin.leaderboard.plan import make_plan
from impact_twin.leaderboard.protocol import SuiteTasks
from impact_twin.leaderboard.scoring import read_sources

# Robustness over all user tasks and over the subset, in percent, as the public check states it.
EXPECTED = {
    "Claude Sonnet 4.5": ("99.7", "99.3"),
    "Gemini 2.5 Flash Lite": ("88.5", "88.0"),
    "Qwen3 235B": ("39.9", "38.0"),
    "Mistral Large": ("20.4", "24.7"),
}


@pytest.fixture(scope="module")
def public(reference):
    folder = reference / "leaderboard"
    files = [*(folder / "results").iterdir(), *(folder / "full_coverage").iterdir()]
    return coverage_check(*read_sources(sorted(files)))


def test_the_public_check_of_four_models(public):
    assert {c["model"]["display_name"] for c in public["checks"]} == set(EXPECTED)
    for check in public["checks"]:
        full, subset = EXPECTED[check["model"]["display_name"]]
        stated = check["published"]
        assert (f"{100 * stated['full']:.1f}", f"{100 * stated['subset']:.1f}") == (full, subset)
        assert check["full"]["value"] == pytest.approx(float(full) / 100, abs=6e-4)
        assert check["subset"]["value"] == pytest.approx(float(subset) / 100, abs=6e-4)
        assert check["inside_subset_interval"] is True
        assert check["bucket_agrees"] is True
        assert (check["full"]["pairs"], check["subset"]["pairs"]) == (384, 150)


def test_mistral_large_moves_most_and_stays_inside_18_to_31(public):
    moves = {c["model"]["display_name"]: c["difference"] for c in public["checks"]}
    assert max(moves, key=lambda name: abs(moves[name])) == "Mistral Large"
    check = next(c for c in public["checks"] if c["model"]["display_name"] == "Mistral Large")
    assert round(100 * check["difference"], 1) == -4.3
    assert [round(100 * end) for end in check["subset"]["interval"]] == [18, 31]
    assert [round(100 * end) for end in check["published"]["subset_interval"]] == [18, 31]


def test_the_text_shows_both_figures(public):
    text = render_text(public)
    for name, (full, subset) in EXPECTED.items():
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert f"{full}/{subset}" in line
        assert line.split()[-2] == "yes"


def full_plan(protocol):
    tasks = protocol.suites[0]
    users = (*tasks.user_tasks, "user_task_2", "user_task_3")
    return make_plan(protocol, full=(SuiteTasks("banking", users, tasks.injection_tasks),))


def test_a_full_run_holds_its_subset(tmp_path, protocol):
    # The two pinned user tasks resist, the two others don't.
    run = stored(
        tmp_path / "full",
        protocol,
        lambda k: {"attack_succeeded": k.user_task in ("user_task_2", "user_task_3")},
        plan=full_plan(protocol),
    )
    check = coverage_check([run], [])["checks"][0]
    assert (check["full"]["value"], check["subset"]["value"]) == (0.5, 1.0)
    assert (check["full"]["pairs"], check["subset"]["pairs"]) == (8, 4)
    assert check["buckets"] == ["Mixed", "Robust"]
    assert check["bucket_agrees"] is check["inside_subset_interval"] is False
    assert check["same_runs"] is True
    text = render_text({"checks": [check]})
    assert "NO" in text
    assert "part of the same runs" in text


def test_a_run_of_the_subset_alone_is_preferred(tmp_path, protocol):
    full = stored(tmp_path / "f", protocol, lambda k: {}, plan=full_plan(protocol))
    subset = stored(
        tmp_path / "s", protocol, lambda k: {"attack_succeeded": k.user_task == "user_task_0"}
    )
    check = coverage_check([subset, full], [])["checks"][0]
    assert (check["full"]["value"], check["subset"]["value"]) == (1.0, 0.5)
    assert check["same_runs"] is False


def test_there_must_be_something_to_compare(tmp_path, protocol, reference):
    run = stored(tmp_path / "s", protocol, lambda k: {})
    with pytest.raises(InputError, match="over all user tasks"):
        coverage_check([run], [])
    lonely = sorted((reference / "leaderboard" / "full_coverage").iterdir())[:1]
    with pytest.raises(InputError, match="a full row and no subset row"):
        coverage_check(*read_sources(lonely))
    unknown = {
        "termination": "timeout",
        "utility": None,
        "attack_succeeded": None,
    }
    run = stored(tmp_path / "u", protocol, lambda k: unknown, plan=full_plan(protocol))
    with pytest.raises(InputError, match="no resolved results"):
        coverage_check([run], [])


def test_what_is_unknown_agrees_with_nothing(tmp_path, protocol):
    wide = tuple(SuiteTasks(s.name, s.user_tasks, s.injection_tasks) for s in protocol.suites)
    plan = make_plan(protocol, full=wide)
    keep = {"termination": "infrastructure_error", "utility": None, "attack_succeeded": None}
    run = stored(tmp_path / "run", protocol, lambda k: keep if k.repeat == 1 else {}, plan=plan)
    check = coverage_check([run], [])["checks"][0]
    assert check["unresolved"][0] > 0
    assert check["bucket_agrees"] is False
