"""The golden situations: hand-written verdicts and outcome classes against the real world."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from impact_twin.procurement import golden
from impact_twin.procurement.model import CONTROLS, TERMINATIONS, TWINS, Trace
from impact_twin.procurement.replay import replay
from impact_twin.procurement.scoring import score_case
from impact_twin.procurement.suite import load_suite
from impact_twin.procurement.suite_schema import check_schema
from impact_twin.report.cases import pair_facts
from impact_twin.report.outcomes import CaseView, PairOutcome, classify

SUITE = load_suite()
CASES = golden.cases(SUITE)
TRIALS = golden.pair_trials(SUITE)
OUTCOMES = (
    "compromised",
    "unsafe_baseline",
    "unresolved",
    "attempted",
    "incapable",
    "unexposed",
    "derailed",
    "swayed",
    "resisted",
)


def view(name: str) -> CaseView:
    trace = golden.play(SUITE, CASES[name])
    return CaseView(trace.termination, score_case(SUITE, trace))


def outcome(trial: dict[str, Any]) -> PairOutcome:
    facts = pair_facts(SUITE.pair(CASES[trial["clean"]]["pair"]))
    return classify(view(trial["clean"]), view(trial["poisoned"]), facts)


@pytest.mark.parametrize("name", CASES)
def test_the_verdict_is_the_one_written_by_hand(name: str) -> None:
    now = golden.record(SUITE, CASES[name])
    assert now["verdict"] == CASES[name]["verdict"]


@pytest.mark.parametrize("name", CASES)
def test_the_trace_is_the_one_in_the_file(name: str) -> None:
    assert golden.record(SUITE, CASES[name])["trace_digest"] == CASES[name]["trace_digest"]


@pytest.mark.parametrize("name", CASES)
def test_a_replay_gives_the_trace_again(name: str) -> None:
    trace = golden.play(SUITE, CASES[name])
    texts: dict[str, str] = {}
    stored = json.loads(json.dumps(trace.to_json(texts)))
    assert replay(SUITE, Trace.from_json(stored, texts)) == trace


@pytest.mark.parametrize("name", TRIALS)
def test_the_outcome_class_is_the_one_written_by_hand(name: str) -> None:
    trial = dict(TRIALS[name])
    found = outcome(trial)
    assert found.outcome == trial["outcome"], found
    assert found.targeted == trial.get("targeted", False)
    assert found.toward_attacker == trial.get("toward_attacker", False)


@pytest.mark.parametrize("file", SUITE.golden)
def test_files_fit_their_schema_and_bear_their_names(file: str) -> None:
    situation = SUITE.golden[file]
    check_schema("golden", situation, file)
    assert file == f"{situation['name']}.json"
    assert situation["about"].endswith(".")


def test_every_situation_is_counted() -> None:
    assert len(CASES) + len(TRIALS) == len(SUITE.golden)
    assert len(CASES) >= 100
    assert len(TRIALS) >= 50


def test_no_two_situations_are_the_same() -> None:
    seen = Counter(
        json.dumps([case["pair"], case["twin"], case["termination"], case["calls"]])
        + case["final_answer"]
        for case in CASES.values()
    )
    assert max(seen.values()) == 1


def test_situations_spread_over_pairs_twins_and_endings() -> None:
    spread = Counter((case["pair"], case["twin"]) for case in CASES.values())
    for pair in SUITE.pairs:
        for twin in TWINS:
            assert spread[pair.id, twin] >= 3
    assert {case["termination"] for case in CASES.values()} == set(TERMINATIONS)


def test_every_outcome_class_is_shown() -> None:
    assert {trial["outcome"] for trial in TRIALS.values()} == set(OUTCOMES)


def test_every_control_is_shown_violated_kept_and_by_either_twin() -> None:
    for control in CONTROLS:
        twins = {
            case["twin"] for case in CASES.values() if control in case["verdict"]["violations"]
        }
        assert twins == set(TWINS), control


@pytest.mark.parametrize("pair", SUITE.pairs, ids=[pair.id for pair in SUITE.pairs])
def test_each_control_fires_on_its_own_action_and_on_no_other(pair: Any) -> None:
    """Doing what the poison of this pair asks for violates the pair's control, and it alone."""
    obeyed = CASES[f"{pair.id}-obeyed"]["verdict"]
    assert obeyed["violations"] == [pair.control]
    assert obeyed["goal_reached"]
    for twin in TWINS:
        done = CASES[f"{pair.id}-mission-done-{twin}"]["verdict"]
        assert done["mission_completed"]
        assert done["violations"] == []


def script() -> ModuleType:
    path = Path(__file__).with_name("regenerate_golden.py")
    spec = importlib.util.spec_from_file_location("regenerate_golden", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the suite with two golden situations."""
    keep = {"award-bias-obeyed.json", "award-bias-mission-done-clean.json"}
    target = tmp_path / "suite"
    shutil.copytree(SUITE.folder, target)
    for path in (target / "golden").iterdir():
        if path.name not in keep:
            path.unlink()
    return target


def change(path: Path, **fields: object) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    data.update(fields)
    path.write_text(json.dumps(data), encoding="utf-8")


def test_the_script_fills_in_a_digest(copied: Path) -> None:
    path = copied / "golden" / "award-bias-obeyed.json"
    change(path, trace_digest="sha256:" + "0" * 64)
    assert script().main([str(copied)]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == CASES["award-bias-obeyed"]


def test_the_script_refuses_to_change_a_verdict(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied / "golden" / "award-bias-obeyed.json"
    verdict = CASES["award-bias-obeyed"]["verdict"]
    change(path, verdict={**verdict, "goal_reached": False}, trace_digest="sha256:" + "0" * 64)
    before = path.read_bytes()
    assert script().main([str(copied)]) == 1
    assert path.read_bytes() == before
    assert "award-bias-obeyed: goal_reached is True" in capsys.readouterr().out
