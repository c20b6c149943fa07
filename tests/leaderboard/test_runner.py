"""Whole plans against a scripted endpoint: what is stored, retried, stopped and resumed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from leaderboard_endpoint import ScriptedEndpoint, call, results, say, status
from leaderboard_samples import identity_of

from impact_twin.errors import StoppedError
from impact_twin.leaderboard import runner
from impact_twin.leaderboard.endpoint import Endpoint, EndpointOptions
from impact_twin.leaderboard.protocol import Limits
from impact_twin.leaderboard.runner import Work, execute, pending
from impact_twin.leaderboard.store import RunStore, read_run, read_traces

SUBMIT = call(("submit", {"answer": "Your total spending was 1050."}))


class Bench:
    """Runs a plan of the small protocol against a script."""

    def __init__(self, folder, benchmark, protocol):
        self.folder = folder
        self.benchmark = benchmark
        self.protocol = protocol

    def go(self, script, *, jobs=2, benign=False, again=False, progress=lambda _: None):
        with (
            ScriptedEndpoint(script) as server,
            RunStore(self.folder, identity_of(self.protocol)) as store,
        ):
            endpoint = Endpoint(
                EndpointOptions("local/m-1", api_base=server.url), request_seconds=20
            )
            keys = pending(store, benign=benign, again=again)
            try:
                execute(Work(self.protocol, self.benchmark, endpoint, store, jobs, progress), keys)
            finally:
                self.requests = server.requests
                endpoint.close()
        return read_run(self.folder)


@pytest.fixture
def bench(tmp_path, benchmark, protocol, monkeypatch):
    monkeypatch.setattr(runner, "_pause", lambda *_: 0.0)
    return Bench(tmp_path / "run", benchmark, protocol)


def test_every_planned_run_is_stored_with_its_raw_result(bench):
    seen = []
    run = bench.go(lambda _: SUBMIT, benign=True, progress=seen.append)
    # 2 x 2 pairs x 2 attacks x 2 repeats, and 2 user tasks x 2 repeats without an attack.
    assert len(run.records) == len(seen) == 16 + 4
    assert len(bench.requests) == 20
    for record in run.records.values():
        assert record.termination == "completed"
        assert record.utility is (record.key.user_task == "user_task_1")
        assert record.attack_succeeded is (None if record.key.injection_task is None else False)
        assert len(record.response_ids) == record.requests == record.with_tools == 1
        assert record.served_models == ("served-m-1",)
        assert len(record.attempts) == 1
    ids = [i for record in run.records.values() for i in record.response_ids]
    assert len(set(ids)) == 20
    assert {record.trace for record in run.records.values()} == set(read_traces(bench.folder))


def test_a_finished_plan_asks_for_nothing_more(bench):
    bench.go(lambda _: SUBMIT)
    bench.go(lambda _: status(500))
    assert bench.requests == []
    run = bench.go(lambda _: SUBMIT, benign=True)
    assert len(bench.requests) == 4
    assert len(run.records) == 20


def test_a_providers_error_is_tried_again_and_every_try_is_kept(bench):
    failed = threading.Lock()
    left = [3]

    def script(_):
        with failed:
            left[0] -= 1
            return status(503) if left[0] >= 0 else SUBMIT

    run = bench.go(script, jobs=1)
    tries = [record.attempts for record in run.records.values()]
    assert sorted(map(len, tries)) == [1] * 14 + [2] * 2
    first = next(iter(run.records.values()))
    assert [a["termination"] for a in first.attempts] == ["infrastructure_error"] * 2
    assert first.attempts[0]["status"] == 503
    assert (first.termination, first.unresolved, first.requests) == (
        "infrastructure_error",
        True,
        2,
    )


def test_what_stayed_unknown_runs_again_only_on_request(bench):
    calls = [0]

    def flaky(_):
        calls[0] += 1
        return status(500) if calls[0] <= 2 else SUBMIT

    run = bench.go(flaky, jobs=1)
    assert sum(record.unresolved for record in run.records.values()) == 1
    bench.go(lambda _: SUBMIT)
    assert bench.requests == []
    run = bench.go(lambda _: SUBMIT, again=True)
    assert len(bench.requests) == 1
    assert not any(record.unresolved for record in run.records.values())
    # The two failed tries stay on record beside the one that worked.
    assert max(len(record.attempts) for record in run.records.values()) == 3


def test_an_attack_that_succeeded_before_the_error_isnt_run_again(bench, monkeypatch):
    monkeypatch.setattr(runner, "FAILURES_IN_A_ROW", 100)
    steal = ("update_scheduled_transaction", {"id": 6, "recipient": "US133000000121212121212"})

    def script(request):
        return status(500) if results(request) else call(steal)

    run = bench.go(script, jobs=1)
    met = [r for r in run.records.values() if r.key.injection_task == "injection_task_4"]
    assert {(r.utility, r.attack_succeeded, len(r.attempts)) for r in met} == {(None, True, 1)}
    bench.go(lambda _: SUBMIT, again=True)
    again = read_run(bench.folder)
    assert {again.records[r.key].attack_succeeded for r in met} == {True}


def test_a_provider_that_is_down_stops_the_run(bench, monkeypatch):
    monkeypatch.setattr(runner, "FAILURES_IN_A_ROW", 3)
    with pytest.raises(StoppedError, match="3 runs on end stayed unresolved") as caught:
        bench.go(lambda _: status(500), jobs=1)
    assert "--retry-unresolved" in caught.value.line()
    stored = read_run(bench.folder)
    assert len(stored.records) == 3
    run = bench.go(lambda _: SUBMIT, again=True)
    assert len(run.records) == 16
    assert not any(record.unresolved for record in run.records.values())


def test_a_wrong_key_stops_the_run_at_once_and_stores_no_result(bench):
    with pytest.raises(StoppedError, match="won't serve this model"):
        bench.go(lambda _: status(401), jobs=1)
    assert len(bench.requests) == 1
    assert read_run(bench.folder).records == {}


def test_the_wait_that_a_server_asks_for_is_capped():
    assert runner._pause(0, 86_400.0) == runner.LONGEST_WAIT_S
    assert runner._pause(0, 1.5) == 1.5
    assert [runner._pause(tried, None) for tried in range(3)] == [1.0, 2.0, 4.0]
    assert runner._pause(30, None) == runner.LONGEST_WAIT_S


def test_a_timeout_is_unresolved(bench):
    bench.protocol = replace(
        bench.protocol, limits=Limits(pair_seconds=3.0, request_seconds=60, attempts=1)
    )
    slow = threading.Event()

    def script(_):
        if not slow.is_set():
            slow.set()
            return 4.0
        return SUBMIT

    run = bench.go(script, jobs=1)
    endings = [record.termination for record in run.records.values()]
    assert endings.count("timeout") >= 1
    assert all(r.unresolved for r in run.records.values() if r.termination == "timeout")


def test_an_empty_reply_is_never_safe(bench):
    bench.protocol = replace(
        bench.protocol, limits=Limits(pair_seconds=20, request_seconds=20, attempts=1)
    )
    with pytest.raises(StoppedError):
        bench.go(lambda _: say(""), jobs=1)
    records = read_run(bench.folder).records.values()
    assert {(r.termination, r.attack_succeeded) for r in records} == {("empty_reply", None)}


COMMAND = """
import sys
from impact_twin.cli.main import COMMANDS, main
COMMANDS.setdefault("leaderboard", ("impact_twin.cli.leaderboard:leaderboard", ""))
main(sys.argv[1:])
"""


def command(folder, protocol_file, url):
    arguments = ["leaderboard", "run", "--model", "local/m-1", "--api-base", url, "--jobs", "1"]
    arguments += ["--protocol", str(protocol_file), "--out", str(folder), "--quiet"]
    return [sys.executable, "-c", COMMAND, *arguments]


@pytest.mark.slow
def test_a_quiet_run_says_nothing_of_replies_that_can_not_be_parsed(tmp_path, content):
    protocol_file = tmp_path / "protocol.json"
    protocol_file.write_text(json.dumps(content), encoding="utf-8")
    with ScriptedEndpoint(lambda _: say("no field at all \x1b[31m")) as server:
        arguments = command(tmp_path / "run", protocol_file, server.url)
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, check=False)
        assert server.requests
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_a_killed_run_loses_no_finished_pair_and_goes_on(tmp_path, content):
    protocol_file = tmp_path / "protocol.json"
    protocol_file.write_text(json.dumps(content), encoding="utf-8")
    folder = tmp_path / "run"
    records = folder / "records.jsonl"

    def script(_):
        time.sleep(0.1)
        return SUBMIT

    with ScriptedEndpoint(script) as server:
        first = subprocess.Popen(command(folder, protocol_file, server.url))
        until = time.monotonic() + 120
        while not records.exists() or len(records.read_bytes().splitlines()) < 3:
            assert first.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        before = read_run(folder).records
        asked = len(server.requests)
        assert 3 <= len(before) <= asked <= len(before) + 1
        done = subprocess.run(command(folder, protocol_file, server.url), timeout=120, check=False)
        assert done.returncode == 0
        assert len(server.requests) - asked == 16 - len(before)
    after = read_run(folder).records
    assert len(after) == 16
    assert {key: after[key] for key in before} == before


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_stores_what_was_under_way(tmp_path, content, sent, code):
    protocol_file = tmp_path / "protocol.json"
    protocol_file.write_text(json.dumps(content), encoding="utf-8")
    started = threading.Event()

    def script(_):
        started.set()
        time.sleep(1.0)
        return SUBMIT

    with ScriptedEndpoint(script) as server:
        process = subprocess.Popen(
            command(tmp_path / "run", protocol_file, server.url), stderr=subprocess.PIPE, text=True
        )
        assert started.wait(120)
        process.send_signal(sent)
        _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert "The same command goes on" in said
    assert len(read_run(tmp_path / "run").records) == len(server.requests)
