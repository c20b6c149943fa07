"""Signals, sent to a real driver process."""

import signal
import subprocess
import threading

import pytest

from impact_twin.trials.interrupt import Interrupt
from impact_twin.trials.journal import load_run

SLEEPY = """
import os, time

class Agent:
    name = "sleepy"

    def run(self, query, tools, *, system_directive=""):
        tools[0]()
        time.sleep(float(os.environ.get("NAP", "0.7")))
        return "done"

def build():
    return Agent()
"""


def start(start_driver, agent_module, tmp_path, *arguments):
    process = start_driver(
        tmp_path / "run",
        f"factory={agent_module(SLEEPY)}:build",
        "--trials",
        "5",
        *arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # As a shell starts a command in the foreground.
        start_new_session=True,
    )
    wait_for_line(process, "started")
    return process


def wait_for_line(process, word):
    for line in process.stdout:
        if line.startswith(word):
            return
    raise AssertionError(f"no line {word!r}: {process.stderr.read()}")


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_one_signal_lets_cases_in_flight_finish(
    start_driver, agent_module, tmp_path, signum, code, isolation
):
    process = start(start_driver, agent_module, tmp_path, "--isolation", isolation)
    wait_for_line(process, "recorded")
    process.send_signal(signum)
    # Not communicate: it would lose the lines that are buffered already.
    rest = process.stdout.read()
    assert process.wait(60) == code, process.stderr.read()
    run = load_run(tmp_path / "run")
    recorded = 1 + sum(line.startswith("recorded") for line in rest.splitlines())
    assert len(run.cases) == recorded
    assert 3 <= recorded < 50
    assert {record.termination for record in run.cases.values()} == {"completed"}
    assert run.stopped == f"interrupted by {signal.Signals(signum).name}"
    assert f"stopping {run.stopped}" in rest
    assert f"stopped {run.stopped}" in rest


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_second_signal_stops_at_once(start_driver, agent_module, tmp_path, monkeypatch, isolation):
    monkeypatch.setenv("NAP", "120")
    process = start(start_driver, agent_module, tmp_path, "--isolation", isolation)
    process.send_signal(signal.SIGINT)
    wait_for_line(process, "stopping")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    run = load_run(tmp_path / "run")
    assert run.cases == {}
    assert run.stopped == "interrupted by SIGINT, twice: cases in flight were given up"


def test_an_interrupted_run_is_finished_by_resume(
    start_driver, agent_module, tmp_path, monkeypatch
):
    monkeypatch.setenv("NAP", "0.05")
    module = agent_module(SLEEPY)
    arguments = (tmp_path / "run", f"factory={module}:build")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start_driver(*arguments, "--trials", "5", **pipes)
    wait_for_line(process, "recorded")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    before = load_run(tmp_path / "run").cases
    again = start_driver(*arguments, "--resume", **pipes)
    again.communicate(timeout=60)
    assert again.returncode == 0
    run = load_run(tmp_path / "run")
    assert len(run.cases) == 50
    assert {key: run.cases[key] for key in before} == before
    assert (run.stopped, run.resumed) == ("", 1)


def test_handlers_come_back():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interrupt() as interrupt:
        assert signal.getsignal(signal.SIGINT) != before[0]
        signal.raise_signal(signal.SIGTERM)
        assert (interrupt.draining, interrupt.aborted, interrupt.exit_code) == (True, False, 143)
        signal.raise_signal(signal.SIGINT)
        assert (interrupt.aborted, interrupt.exit_code, interrupt.name) == (True, 143, "SIGTERM")
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_without_the_main_thread_it_is_a_plain_switch():
    caught = []

    def elsewhere():
        with Interrupt() as interrupt:
            interrupt.request()
            caught.append((interrupt.draining, interrupt.exit_code))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert caught == [(True, 130)]
