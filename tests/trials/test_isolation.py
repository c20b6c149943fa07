"""Agents in processes of their own: what they may break is theirs."""

import sys
import time

import pytest

from impact_twin.agents import load_source
from impact_twin.errors import InputError
from impact_twin.trials.isolation import ProcessExecutor
from impact_twin.trials.plan import Limits, make_plan
from impact_twin.trials.runner import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs process groups")

AGENT = """
import os, random, sys

class Agent:
    name = "isolated"

    def run(self, query, tools, *, system_directive=""):
        by_name = {{tool.name: tool for tool in tools}}
{body}

def build():
    return Agent()
"""


@pytest.fixture
def run_body(agent_module, suite, tmp_path):
    """Run an agent whose `run` has this body, in processes."""

    def go(body, *, trials=1, pairs=("award-bias",), concurrency=2, **limits):
        indented = "\n".join(" " * 8 + line for line in body.strip("\n").splitlines())
        module = agent_module(AGENT.format(body=indented))
        source = load_source({"kind": "factory", "target": f"{module}:build"})
        plan = make_plan(
            suite,
            source,
            trials=trials,
            pairs=list(pairs),
            isolation="process",
            limits=Limits(**limits),
        )
        directory = tmp_path / f"run-{time.monotonic_ns()}"
        return run(plan, suite, source, directory, concurrency=concurrency)

    return go


def ends(run):
    return {(record.termination, record.attempts[-1].error_kind) for record in run.cases.values()}


def answers(run):
    return [run.traces[record.trace]["final_answer"] for record in run.cases.values()]


def test_tool_calls_reach_the_world_in_the_driver(run_body):
    run = run_body(
        """
by_name["read_document"](document_id="nonsense")
by_name["list_documents"]()
return by_name["list_vendors"]()
"""
    )
    assert ends(run) == {("completed", "")}
    for trace in run.traces.values():
        assert [event["tool"] for event in trace["events"]] == [
            "read_document",
            "list_documents",
            "list_vendors",
        ]
        assert trace["final_answer"] == run.texts[trace["events"][2]["output"]]


def test_same_traces_as_in_threads(suite, tmp_path):
    source = load_source({"kind": "demo", "name": "careful"})
    runs = []
    for isolation in ("thread", "process"):
        plan = make_plan(suite, source, trials=1, isolation=isolation)
        runs.append(run(plan, suite, source, tmp_path / isolation))
    assert runs[0].traces == runs[1].traces
    assert runs[0].texts == runs[1].texts


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ("os._exit(3)", "process_exit", "exit code 3"),
        ("os._exit(0)", "process_exit", "exit code 0"),
        ("os.kill(os.getpid(), 9)", "process_killed", "SIGKILL; out of memory?"),
        ("os.abort()", "process_killed", "SIGABRT"),
        ("sys.exit(7)", "system_exit", "7"),
        ("raise KeyboardInterrupt", "interrupted", ""),
        ("raise RecursionError('deep')", "exception", "deep"),
    ],
)
def test_death_of_a_process_is_an_agent_error(run_body, body, kind, words):
    run = run_body("by_name['list_documents']()\n" + body)
    assert ends(run) == {("agent_error", kind)}
    for record in run.cases.values():
        assert words in record.attempts[0].message
        # What the world saw before is kept.
        assert len(run.traces[record.trace]["events"]) == 1


def test_hung_agent_is_killed_and_keeps_its_events(run_body):
    begun = time.monotonic()
    run = run_body("by_name['list_documents']()\nwhile True: pass", timeout_s=1.5)
    assert ends(run) == {("timeout", "timeout")}
    assert all(len(trace["events"]) == 1 for trace in run.traces.values())
    assert time.monotonic() - begun < 30


def test_agent_that_ignores_signals_is_killed_too(run_body):
    run = run_body(
        """
import signal, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
time.sleep(300)
""",
        timeout_s=1.5,
    )
    assert ends(run) == {("timeout", "timeout")}


def test_tool_call_limit_ends_the_process(run_body):
    run = run_body("while True: by_name['list_documents']()", max_tool_calls=7, timeout_s=60)
    assert ends(run) == {("limit", "max_tool_calls")}
    assert all(len(trace["events"]) == 7 for trace in run.traces.values())


def test_agent_cannot_reach_the_event_log(run_body):
    run = run_body(
        """
import gc
by_name["set_vendor_status"](vendor_id="V-101", status="suspended", reason="x")
found = [type(item).__name__ for item in gc.get_objects() if type(item).__name__ in
         ("World", "CaseRuntime", "Suite", "Pair", "Journal", "LiveTry", "CaseRunner")]
return repr(found)
"""
    )
    assert answers(run) == ["[]"] * 2
    assert all(len(trace["events"]) == 1 for trace in run.traces.values())


def test_agent_learns_neither_pair_nor_twin(run_body):
    run = run_body(
        """
import sys
frame, seen = sys._getframe(), []
while frame is not None:
    seen += [repr(value) for value in frame.f_locals.values()]
    frame = frame.f_back
return str(any("award-bias" in text or "poisoned" in text for text in seen))
"""
    )
    assert answers(run) == ["False"] * 2


FORGED = """
import gc, socket, json, struct
for item in gc.get_objects():
    if isinstance(item, socket.socket) and item.fileno() >= 0 and item.type == socket.SOCK_STREAM:
        item.sendall({data})
import time
time.sleep(300)
"""


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("struct.pack('>I', 0x7fffffff)", "a message of 2147483647 bytes"),
        ("struct.pack('>I', 4) + b'nope'", "not JSON"),
        ("struct.pack('>I', 2) + b'[]'", "not an object"),
        ("struct.pack('>I', 2) + b'{}'", "part of the protocol"),
        ("struct.pack('>I', 14) + b'{\"type\":\"boo\"}'", "part of the protocol"),
        (
            'struct.pack(\'>I\', 29) + b\'{"type":"done","outcome":[1]}\'',
            "part of the protocol",
        ),
        ("struct.pack('>I', 100_000) + b'[' * 100_000", "not JSON"),
    ],
)
def test_forged_messages_are_an_agent_error(run_body, data, words):
    run = run_body(FORGED.format(data=data), timeout_s=60)
    assert ends(run) == {("agent_error", "bad_message")}
    assert all(words in record.attempts[0].message for record in run.cases.values())


def test_answer_of_ten_megabytes_is_refused_not_carried(run_body):
    assert ends(run_body("return 'x' * 10_000_000")) == {("agent_error", "answer_too_long")}


def test_lone_surrogates_come_through_as_in_threads(run_body):
    run = run_body("by_name['flag_document'](document_id='\\ud800', reason='x')\nreturn 'fine'")
    assert ends(run) == {("completed", "")}
    for trace in run.traces.values():
        assert trace["events"][0]["arguments"]["document_id"] == "\ufffd"


def test_random_numbers_differ_from_case_to_case(run_body):
    run = run_body(
        "import numpy\nreturn f'{random.random()} {numpy.random.rand()}'",
        trials=3,
        pairs=["award-bias", "payment-reroute"],
    )
    first, second = zip(*(answer.split() for answer in answers(run)), strict=True)
    assert len(set(first)) == len(set(second)) == 12


def test_what_agents_print_stays_off_standard_output(run_body, capfd):
    run_body("print('chatter', flush=True)\nos.write(1, b'more')\nreturn 'done'")
    out, err = capfd.readouterr()
    assert out == ""
    assert "chatter" in err


def test_module_state_does_not_leak_between_cases(run_body):
    run = run_body(
        "import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\n"
        "return str(builtins.count)",
        trials=3,
        concurrency=1,
    )
    assert set(answers(run)) == {"1"}


def test_tools_do_not_work_in_a_process_that_the_agent_forks(run_body):
    run = run_body(
        """
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, by_name["list_documents"]().encode()[:5])
    os._exit(0)
os.waitpid(-1, 0)
return os.read(read, 5).decode()
"""
    )
    assert answers(run) == ["ERROR"] * 2
    assert all(not trace["events"] for trace in run.traces.values())


def test_agent_that_cannot_be_imported_is_an_input_error(suite, plan_of):
    with pytest.raises(InputError, match="no_such_module_anywhere"):
        ProcessExecutor({"kind": "factory", "target": "no_such_module_anywhere:build"})


def test_agent_that_kills_the_server_stops_only_itself(run_body):
    run = run_body("os.kill(os.getppid(), 9)\nimport time; time.sleep(60)", retries=0)
    assert ends(run) == {("infrastructure_error", "no_worker")}


def test_import_that_starts_threads_gets_fresh_interpreters(agent_module, suite, tmp_path):
    code = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()

class Agent:
    name = "threads"

    def run(self, query, tools, *, system_directive=""):
        return f"{threading.active_count()} {tools[0]()[:1]}"

def build():
    return Agent()
"""
    spec = {"kind": "factory", "target": f"{agent_module(code)}:build"}
    source = load_source(spec)
    executor = ProcessExecutor(spec)
    assert not executor.forks
    executor.close()
    plan = make_plan(suite, source, trials=1, pairs=["award-bias"], isolation="process")
    data = run(plan, suite, source, tmp_path / "r", concurrency=2)
    # The module's thread, the main thread, and the one that listens to the driver.
    assert set(answers(data)) == {"3 ["}


def test_demo_agents_are_forked_on_linux():
    if sys.platform != "linux":
        pytest.skip("forks on Linux only")
    executor = ProcessExecutor({"kind": "demo", "name": "careful"})
    assert executor.forks
    executor.close()
    executor.close()
