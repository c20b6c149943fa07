"""Ordinary bad days of `repeat`: agents that break things, full disks, lost streams."""

import json
import os
import signal
import subprocess
import time

import pytest

FRAME = """
import os, subprocess, sys, time
class A:
    name = "trouble"
    def __init__(self, seed):
        self.seed = seed
    def run(self, query, tools, *, system_directive=""):
        by = {tool.name: tool for tool in tools}
        BODY
def build(seed):
    return A(seed)
"""
ONE = ("--agent", "mine:build", "--trials", "1", "--pairs", "award-bias", "--out", "run")


def body(*lines):
    return FRAME.replace("BODY", "\n        ".join(lines))


def test_a_run_that_failed_all_over_can_not_look_like_success(tool, agent):
    agent(body("raise RuntimeError('no luck')"))
    done = tool("repeat", *ONE)
    assert done.returncode == 1
    assert "NO RESULT" in done.stdout
    assert "no luck" in done.stdout
    assert tool.report()["summary"]["aggregate"]["rates"]["secure_utility"]["count"] == 0
    quiet = tool("repeat", *ONE, "--quiet", "--force")
    assert quiet.returncode == 1
    assert "No case ran to its end" in quiet.stderr


def test_an_agent_that_changes_the_working_directory_loses_nothing(tool, agent):
    agent(body("os.chdir('/')", "return 'moved'"))
    done = tool("repeat", *ONE, "--csv", "table.csv")
    assert done.returncode == 0, done.stderr
    assert tool.report()["pair_trials"][0]["outcome"] == "incapable"
    assert (tool.folder / "table.csv").stat().st_size


def test_what_an_agent_prints_is_not_in_the_json(tool, agent):
    agent(body("print('noise')", "subprocess.run(['echo', 'more'])", "return 'said'"))
    done = tool("repeat", *ONE, "--json", "-")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "impact-twin/report"
    assert "noise" in done.stderr
    assert "more" in done.stderr


@pytest.mark.parametrize("blocks", [2, 40, 120])
def test_a_full_disk_ends_with_3_and_says_how_to_go_on(tool, blocks):
    command = " ".join(f"'{part}'" for part in tool.command("repeat", "--trials", "3"))
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f {blocks}; exec {command} --out run"],
        cwd=tool.folder,
        env=tool.environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "--resume run" in done.stdout
    again = tool("repeat", "--resume", "run")
    assert again.returncode == 0, again.stderr
    assert tool.report()["summary"]["aggregate"]["classes"]["unresolved"] == 0


def test_gates_are_kept_when_a_run_goes_on(tool, agent):
    agent(body("time.sleep(0.15)", "return 'done'"))
    gate = "secure_utility >= 0.2"
    command = tool.command(
        *("repeat", "--agent", "mine:build", "--trials", "2", "--concurrency", "1"),
        *("--gate", gate, "--out", "run"),
    )
    process = subprocess.Popen(
        command, cwd=tool.folder, env=tool.environment(), stdout=subprocess.PIPE, text=True
    )
    journal = tool.folder / "run" / "journal.jsonl"
    for _ in range(600):
        if journal.exists() and journal.read_bytes().count(b"\n") > 3:
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"--gate '{gate}'" in out
    done = tool("repeat", "--resume", "run")
    assert done.returncode == 1, done.stdout
    assert [item["gate"] for item in tool.report()["summary"]["gates"]] == [gate]


CHEAT = """
tries = {}
class A:
    name = "cheat"
    def __init__(self, seed):
        self.seed = seed
    def run(self, query, tools, *, system_directive=""):
        from impact_twin.agents.demo import Careful
        by = {tool.name: tool for tool in tools}
        tries[self.seed] = tries.get(self.seed, 0) + 1
        if tries[self.seed] == 1:
            FIRST
            import httpx
            raise httpx.ConnectError("did not like how that went")
        return Careful(self.seed).run(query, tools, system_directive=system_directive)
def build(seed):
    return A(seed)
"""


def test_an_agent_can_not_claim_a_provider_error_to_get_a_better_run(tool, agent):
    agent(CHEAT.replace("FIRST", "by['recommend_award'](vendor_id='V-101', rationale='wrong')"))
    assert tool("repeat", *ONE, "--quiet").returncode == 1
    (row,) = tool.report()["pair_trials"]
    assert row["outcome"] == "unresolved"
    assert len(row["poisoned"]["attempts"]) == 1


def test_a_provider_error_before_the_first_call_is_tried_again_and_said(tool, agent):
    agent(CHEAT.replace("FIRST", "pass"))
    done = tool("repeat", *ONE)
    assert done.returncode == 0, done.stderr
    (row,) = tool.report()["pair_trials"]
    assert row["outcome"] == "resisted"
    assert len(row["poisoned"]["attempts"]) == 2
    assert "run again after an infrastructure error" in " ".join(done.stdout.split())


def test_a_full_device_behind_standard_output_is_no_failed_gate(tool):
    ran = "repeat", "--trials", "1", "--pairs", "award-bias", "--out", "run"
    codes = []
    for arguments in (ran, ("report", "run", "--json", "-")):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                tool.command(*arguments),
                cwd=tool.folder,
                env=tool.environment(),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=120,
            )
        assert "Traceback" not in done.stderr
        codes.append(done.returncode)
    assert codes == [0, 2]
    assert "standard output" in done.stderr


def test_a_thread_pool_that_an_agent_left_hanging_does_not_keep_the_command(tool, agent):
    target = agent(
        "import concurrent.futures, time\n"
        "class Agent:\n"
        "    name = 'pool'\n"
        "    def run(self, query, tools, *, system_directive=''):\n"
        "        pool = concurrent.futures.ThreadPoolExecutor(1)\n"
        "        pool.submit(time.sleep, 600)\n"
        "        return 'done'\n"
        "def build():\n"
        "    return Agent()\n"
    )
    arguments = ("--trials", "1", "--pairs", "award-bias", "--out", "run")
    done = tool("repeat", "--agent", target, *arguments, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Saved in run" in done.stdout
