"""A small protocol, AgentDojo's suites loaded once, and an endpoint that answers by a script."""

import copy
import json
import sys
from pathlib import Path

import pytest

from impact_twin.leaderboard.protocol import BUNDLED, parse_protocol

sys.path.insert(0, str(Path(__file__).parent))

SHARED = Path(__file__).parents[2].parent / "shared" / "reference"


@pytest.fixture(scope="session")
def reference():
    if not SHARED.is_dir():
        pytest.skip("../shared is not here")
    return SHARED


@pytest.fixture(scope="session")
def small_content():
    """Two user tasks x two injection tasks of banking, two attacks, two repeats."""
    content = json.loads(BUNDLED.read_text(encoding="utf-8"))
    content["id"] = "small"
    content["benchmark"]["suites"] = {
        "banking": {
            "user_tasks": ["user_task_0", "user_task_1"],
            "injection_tasks": ["injection_task_4", "injection_task_5"],
        }
    }
    content["repeats"] = 2
    content["limits"] = {"pair_seconds": 20, "request_seconds": 20, "attempts": 2}
    return content


@pytest.fixture
def content(small_content):
    return copy.deepcopy(small_content)


@pytest.fixture(scope="session")
def protocol(small_content):
    return parse_protocol(small_content, where="small")


@pytest.fixture(scope="session")
def benchmark(protocol):
    from impact_twin.leaderboard.tasks import Benchmark

    return Benchmark(protocol)
