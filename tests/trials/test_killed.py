"""kill -9 of a real driver: nothing acknowledged is lost, nothing runs twice, nobody is left."""

import os
import random
import signal
import subprocess
import time

import pytest

from impact_twin.trials.journal import load_run
from impact_twin.trials.records import CaseKey

QUICK = """
import time

class Agent:
    name = "quick"

    def run(self, query, tools, *, system_directive=""):
        for tool in tools[:3]:
            tool()
        time.sleep(0.01)
        return "done"

def build():
    return Agent()
"""


def acknowledged(lines):
    found = []
    for line in lines:
        word, *rest = line.split()
        # A line that the kill cut off says nothing.
        if word == "recorded" and line.endswith("\n"):
            found.append(CaseKey(rest[0], int(rest[1]), rest[2]))
    return found


@pytest.mark.slow
def test_many_kills_lose_nothing_and_repeat_nothing(start_driver, agent_module, tmp_path):
    target = f"factory={agent_module(QUICK)}:build"
    directory = tmp_path / "run"
    rng, seen, kills = random.Random(7), [], 0
    for session in range(60):
        process = start_driver(
            directory,
            target,
            *(("--resume",) if (directory / "plan.json").exists() else ("--trials", "30")),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        first = process.stdout.readline()
        if session < 9:
            time.sleep(rng.uniform(0.0, 0.25))
            process.kill()
            kills += 1
        seen += acknowledged([first, *process.stdout])
        process.wait()
        run = load_run(directory)
        assert set(seen) <= set(run.cases)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr.read()
    assert kills >= 6
    assert len(run.cases) == 300
    # Every case was acknowledged at most once: none ran after it had been recorded.
    assert len(seen) == len(set(seen))
    positions = [record.position for record in run.cases.values()]
    assert len(positions) == len(set(positions))
    assert run.resumed >= 6
    assert run.stopped == ""


FAMILY = """
import os, subprocess, sys, time

class Agent:
    name = "family"

    def run(self, query, tools, *, system_directive=""):
        folder = os.environ["PIDS"]
        nap = [sys.executable, "-c", "import time; time.sleep(300)"]
        child = subprocess.Popen(nap)
        loner = subprocess.Popen(nap, start_new_session=True)
        for pid in (os.getpid(), child.pid, loner.pid):
            open(os.path.join(folder, str(pid)), "w").close()
        time.sleep(300)

def build():
    return Agent()
"""


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")
def test_killed_driver_leaves_no_orphan(start_driver, agent_module, tmp_path, monkeypatch, until):
    folder = tmp_path / "pids"
    folder.mkdir()
    monkeypatch.setenv("PIDS", str(folder))
    process = start_driver(
        tmp_path / "run",
        f"factory={agent_module(FAMILY)}:build",
        "--isolation",
        "process",
        "--concurrency",
        "2",
    )
    until(lambda: len(list(folder.iterdir())) == 6, 60)
    pids = [int(path.name) for path in folder.iterdir()]
    assert all(alive(pid) for pid in pids)
    process.kill()
    process.wait()
    until(lambda: not any(alive(pid) for pid in pids))


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")
def test_timed_out_case_is_killed_with_its_children(
    start_driver, agent_module, tmp_path, monkeypatch, until
):
    folder = tmp_path / "pids"
    folder.mkdir()
    monkeypatch.setenv("PIDS", str(folder))
    process = start_driver(
        tmp_path / "run",
        f"factory={agent_module(FAMILY)}:build",
        *("--isolation", "process", "--timeout", "2", "--trials", "1", "--concurrency", "5"),
        stdout=subprocess.PIPE,
    )
    process.communicate(timeout=120)
    assert process.returncode == 0
    pids = [int(path.name) for path in folder.iterdir()]
    assert len(pids) >= 20
    until(lambda: not any(alive(pid) for pid in pids))
    run = load_run(tmp_path / "run")
    assert {record.termination for record in run.cases.values()} == {"timeout"}


def test_full_disk_stops_with_exit_3_and_resume_finishes(start_driver, agent_module, tmp_path):
    target = f"factory={agent_module(QUICK)}:build"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start_driver(
        tmp_path / "run", target, "--trials", "5", "--largest-file", "40000", **pipes
    )
    seen = acknowledged(process.stdout)
    process.wait(timeout=60)
    assert process.returncode == 3
    run = load_run(tmp_path / "run")
    assert 0 < len(run.cases) < 50
    # What was told is on the disk; a case that was written as another write failed may be untold.
    assert seen
    assert set(seen) <= set(run.cases)
    again = start_driver(tmp_path / "run", target, "--resume", **pipes)
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert len(load_run(tmp_path / "run").cases) == 50
