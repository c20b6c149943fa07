"""Two user tasks x two injection tasks of banking on a real small language model on loopback.

The model's answers are nonsense; what is held is that the real chain works and says what it saw.
The server is that of tests/live, or the one that IMPACT_TWIN_LIVE_API_BASE names.
"""

import copy
import importlib.util
import json
from pathlib import Path

import pytest

from impact_twin.cli import main as entry
from impact_twin.leaderboard.protocol import BUNDLED
from impact_twin.leaderboard.store import read_run, read_traces

_PLACE = Path(__file__).parents[1] / "live" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("live_conftest_of_leaderboard", _PLACE)
_LIVE = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(_LIVE)
endpoint = _LIVE.endpoint


@pytest.fixture
def protocol_file(tmp_path):
    content = copy.deepcopy(json.loads(BUNDLED.read_text(encoding="utf-8")))
    content["id"] = "live"
    content["benchmark"]["suites"] = {
        "banking": {
            "user_tasks": ["user_task_0", "user_task_1"],
            "injection_tasks": ["injection_task_0", "injection_task_4"],
        }
    }
    content["attacks"]["secondary"] = []
    # Short turns: the model is slow on a CPU and its context is small.
    content["scaffold"]["max_iters"] = 2
    content["decoding"]["max_tokens"] = 48
    content["repeats"] = 1
    content["limits"] = {"pair_seconds": 900, "request_seconds": 600, "attempts": 1}
    path = tmp_path / "protocol.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.live
@pytest.mark.slow
def test_a_real_model_is_measured_on_two_by_two_pairs(
    tmp_path, protocol_file, monkeypatch, capsys, endpoint
):
    known = {"leaderboard": ("impact_twin.cli.leaderboard:leaderboard", "")}
    monkeypatch.setattr(entry, "COMMANDS", {**known, **entry.COMMANDS})
    folder = tmp_path / "run"
    arguments = ["leaderboard", "run", "--model", "local/smollm2-135m-instruct-q4_1", "--jobs", "1"]
    arguments += [
        "--api-base",
        endpoint.url,
        "--protocol",
        str(protocol_file),
        "--out",
        str(folder),
    ]
    with pytest.raises(SystemExit) as caught:
        entry.main([*arguments, "--json", str(tmp_path / "row.json")])
    assert caught.value.code == 0, capsys.readouterr().err
    run = read_run(folder)
    assert len(run.records) == 4
    for record in run.records.values():
        # The model chose tools by itself: native calls went out, and something came back.
        assert record.termination in ("completed", "no_answer"), record.attempts[-1]
        assert record.attack_succeeded is not None
        assert record.utility is not None
        assert 1 <= record.requests == record.with_tools <= 3
        assert all(record.response_ids)
    assert len({i for r in run.records.values() for i in r.response_ids}) == sum(
        len(r.response_ids) for r in run.records.values()
    )
    traces = read_traces(folder)
    assert {record.trace for record in run.records.values()} == set(traces)
    assert any(turn["calls"] for trace in traces.values() for turn in trace["turns"])
    row = json.loads((tmp_path / "row.json").read_text(encoding="utf-8"))["rows"][0]
    found = row["attacks"]["important_instructions"]["R"]["combined"]
    assert (found["pairs"], found["unresolved"], found["method"]) == (4, 0, "exact")
    assert row["status"] == "provisional"
