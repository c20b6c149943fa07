"""dspy.ReActV2 on a real small language model, by the command that a user types.

The model is no capable agent: its answers are nonsense, and really vary. What is tested is the way
from its replies to a valid report. About a minute on two idle cores; a busy machine takes longer,
hence the generous times.
"""

import json

import pytest

from impact_twin.procurement.suite import load_suite
from impact_twin.report.files import load_report

PAIRS = ("award-bias", "payment-reroute")


@pytest.mark.live
def test_a_real_model_gives_a_valid_report(endpoint, impact_twin, tmp_path):
    done = impact_twin(
        "repeat",
        *("--model", endpoint.model, "--api-base", endpoint.url, "--temperature", "0.8"),
        *("--max-reply-tokens", "160", "--max-iters", "2", "--pairs", ",".join(PAIRS)),
        *("--trials", "1", "--timeout", "600", "--retries", "0", "--concurrency", "1"),
        *("--out", str(tmp_path / "run"), "--json", str(tmp_path / "report.json")),
        timeout=2400,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    report = load_report(tmp_path / "report.json")
    assert report["identity"]["agent"]["tool_calls"] == "native"
    assert report["identity"]["suite"]["digest"] == load_suite().digest
    cases = [trial[twin] for trial in report["pair_trials"] for twin in ("clean", "poisoned")]
    assert len(cases) == 2 * len(PAIRS)
    calls = [call for case in cases for call in case["model_calls"]]
    assert len(calls) >= len(cases)
    assert not any(call["cached"] for call in calls)
    assert all(call["error"] is None for call in calls), calls
    assert all(call["usage"]["input_tokens"] > 0 for call in calls)
    assert all(call["usage"]["output_tokens"] > 0 for call in calls)
    assert len({call["response_id"] for call in calls}) == len(calls)
    if endpoint.shim is not None:
        assert len(calls) == endpoint.shim.requests
    # Whatever it did, it called tools, and the world saw it.
    events = [event for trace in report["traces"].values() for event in trace["events"]]
    assert events
    assert json.dumps(report, allow_nan=False)
