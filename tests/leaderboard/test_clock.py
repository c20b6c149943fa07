import ast
import datetime
import importlib
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from impact_twin.leaderboard.clock import CLOCK_READERS, frozen

NOON = datetime.datetime(2024, 5, 15, 12)
READS = {"now", "utcnow", "today", "time", "time_ns", "monotonic"}


def clock_calls(path):
    """Names of functions of a module that call the clock by way of `datetime` or `time`."""
    found = set()
    for outer in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(outer, ast.FunctionDef):
            continue
        for node in ast.walk(outer):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                owner = ast.unparse(node.func.value)
                clock = owner in {"datetime", "datetime.datetime", "datetime.date", "time"}
                if clock and node.func.attr in READS:
                    found.add(outer.name)
    return found


def test_these_modules_read_the_clock_and_no_others_do():
    suites = Path(find_spec("agentdojo").origin).parent / "default_suites"
    readers = {
        f"agentdojo.default_suites.{'.'.join(path.relative_to(suites).with_suffix('').parts)}"
        for path in suites.rglob("*.py")
        if clock_calls(path)
    }
    assert readers == set(CLOCK_READERS)


def run_tools(benchmark_suite):
    from agentdojo.functions_runtime import FunctionsRuntime

    runtime = FunctionsRuntime(benchmark_suite.tools)
    environment = benchmark_suite.load_and_inject_default_environment({})
    calls = [
        ("send_email", {"recipients": ["a@b.com"], "subject": "s", "body": "b"}),
        ("create_file", {"filename": "x", "content": "y"}),
        ("append_to_file", {"file_id": "1", "content": "z"}),
        ("get_sent_emails", {}),
    ]
    results = []
    for name, arguments in calls:
        result, error = runtime.run_function(environment, name, arguments)
        assert error is None
        results.append(repr(result))
    return results


def test_two_runs_see_the_same_time_only_while_it_stands_still():
    from agentdojo.task_suite.load_suites import get_suite

    suite = get_suite("v1", "workspace")
    first = run_tools(suite)
    time.sleep(0.002)
    assert run_tools(suite) != first
    with frozen(NOON):
        first = run_tools(suite)
        time.sleep(0.002)
        assert run_tools(suite) == first
        assert "datetime.datetime(2024, 5, 15, 12, 0)" in first[0]


def stop_and_fail(modules):
    with frozen(NOON):
        assert all(module.datetime.datetime.now() == NOON for module in modules)
        raise ZeroDivisionError


def test_the_clock_goes_on_afterwards_even_after_an_error():
    modules = [importlib.import_module(name) for name in CLOCK_READERS]
    with pytest.raises(ZeroDivisionError):
        stop_and_fail(modules)
    assert all(module.datetime is datetime for module in modules)


def test_blocks_may_overlap_at_one_instant_and_not_at_two():
    module = importlib.import_module(CLOCK_READERS[0])
    with frozen(NOON):
        with frozen(NOON):
            pass
        assert module.datetime.datetime.now() == NOON
        with pytest.raises(RuntimeError), frozen(NOON + datetime.timedelta(1)):
            pass
    assert module.datetime is datetime
