"""Bundles that were made once: they verify on every Python, with every later version."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
SAMPLES = sorted(path.name for path in DATA.glob("*.bundle.json"))
# Names of interpreters, separated by os.pathsep, that have impact_twin's dependencies.
OTHERS = [name for name in os.environ.get("IMPACT_TWIN_PYTHONS", "").split(os.pathsep) if name]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_verifies(name, verifier):
    failed = verifier.verify((DATA / name).read_bytes()).failed
    assert failed is None, (
        f"{failed}. If the suite's words have changed: python tests/proofrun/regenerate_samples.py"
    )


def test_there_are_samples():
    assert SAMPLES == ["messy.bundle.json", "wavering.bundle.json"]


def test_the_samples_show_what_they_are_for():
    bundles = [json.loads((DATA / name).read_bytes()) for name in SAMPLES]
    ends = {
        case["termination"]
        for bundle in bundles
        for row in bundle["report"]["pair_trials"]
        for case in (row["clean"], row["poisoned"])
    }
    assert len(ends) >= 5
    assert len({row["outcome"] for b in bundles for row in b["report"]["pair_trials"]}) >= 5


@pytest.mark.skipif(not OTHERS, reason="IMPACT_TWIN_PYTHONS names no other Python")
@pytest.mark.parametrize("python", OTHERS)
def test_other_pythons_say_the_same(python, tmp_path):
    """The same checks with the same results, on good and on changed files."""
    files = [DATA / name for name in SAMPLES]
    for name in SAMPLES:
        data = (DATA / name).read_bytes()
        for place, changed in enumerate(
            (data + b"\n", data[:-1], data.replace(b"swayed", b"derailed", 1), data[:2000] + data)
        ):
            files.append(tmp_path / f"{place}-{name}")
            files[-1].write_bytes(changed)
    results = [verdicts(interpreter, files) for interpreter in (sys.executable, python)]
    assert results[0] == results[1]


def verdicts(python, files):
    done = subprocess.run(
        [python, "-m", "impact_twin", "verify", "--json", *map(str, files)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr.decode()
    return [
        (item["file"], item["verified"], item["eligible"], item["reasons"],
         [(check["name"], check["status"]) for check in item["checks"]])
        for item in json.loads(done.stdout)["files"]
    ]  # fmt: skip
