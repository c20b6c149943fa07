"""The real suite; small agent sources for this process, agent modules for other processes."""

import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from impact_twin.agents.protocol import CaseOutcome
from impact_twin.procurement.suite import load_suite
from impact_twin.trials.case import Backoff
from impact_twin.trials.plan import Limits, make_plan
from impact_twin.trials.runner import run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


class FunctionSource:
    """An agent source that is one function of the case request."""

    def __init__(self, function, kind="model", **identity):
        self.function = function
        self._kind = kind
        self._identity = {"name": "function", "kind": kind, **identity}

    @property
    def spec(self):
        return {"kind": self._kind}

    def identity(self):
        return dict(self._identity)

    def prepare(self):
        pass

    def run_case(self, request):
        return self.function(request)


@pytest.fixture(scope="session")
def suite():
    return load_suite()


@pytest.fixture
def source_of():
    return FunctionSource


@pytest.fixture
def plan_of(suite):
    def make(source=None, **options):
        limits = Limits(**options.pop("limits", {}))
        options.setdefault("trials", 1)
        source = source or FunctionSource(lambda request: CaseOutcome("completed", "done"))
        return make_plan(suite, source, limits=limits, **options)

    return make


@pytest.fixture
def run_function(suite, tmp_path, plan_of):
    """Run a function as agent; returns the run. Options of the plan and of `run` are told apart."""
    folders = (tmp_path / f"run-{number}" for number in itertools.count())

    def go(function, directory=None, **options):
        source = FunctionSource(function)
        plan_options = {
            key: options.pop(key)
            for key in ("trials", "pairs", "limits", "seed", "confidence", "isolation")
            if key in options
        }
        plan = plan_of(source, **plan_options)
        options.setdefault("backoff", Backoff(first_s=0.01))
        return run(plan, suite, source, directory or next(folders), **options)

    return go


@pytest.fixture
def agent_module(tmp_path, monkeypatch):
    """Write a module that a factory spec can name, for this process and its children."""

    def write(code, name="agent_under_test"):
        folder = tmp_path / "modules"
        folder.mkdir(exist_ok=True)
        name = f"{name}_{time.monotonic_ns()}"
        (folder / f"{name}.py").write_text(code, encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
        return name

    return write


@pytest.fixture
def start_driver(tmp_path):
    """Start a real run in a process of its own; see drive.py for the arguments."""
    started = []

    def start(directory, target, *arguments, **popen):
        process = subprocess.Popen(
            [sys.executable, str(HERE / "drive.py"), str(directory), target, *arguments],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(tmp_path / "modules"), str(ROOT)]),
            },
            cwd=tmp_path,
            text=True,
            **popen,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def until():
    """Wait for something to become true; fails loudly when it does not."""

    def wait(condition, seconds=20.0):
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            value = condition()
            if value:
                return value
            time.sleep(0.01)
        raise AssertionError("it did not become true in time")

    return wait
