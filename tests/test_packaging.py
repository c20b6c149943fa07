"""The wheel carries its data and works away from the checkout."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

DESCRIBE = """
import json
from impact_twin.procurement.suite import load_suite
from impact_twin.resources import data_folder
suite = load_suite()
print(json.dumps({"digest": suite.digest, "pairs": str(data_folder("pairs"))}))
"""


def describe(folder: Path, path: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    target = folder / "site"
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target)]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=300)
    return target


def test_the_installed_suite_is_the_checkout_s_suite(installed, tmp_path):
    away = describe(tmp_path, str(installed))
    here = describe(tmp_path, str(ROOT))
    assert away["digest"] == here["digest"]
    assert Path(away["pairs"]).is_relative_to(installed)
    assert Path(here["pairs"]) == ROOT / "pairs"


def test_the_installed_command_runs_the_demo(installed, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "impact_twin", "repeat", "--trials", "1", "--out", "run"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text(encoding="utf-8"))
    assert report["summary"]["aggregate"]["n"] == 5
