import contextvars
import threading

import pytest

from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.trials.executor import ThreadExecutor
from impact_twin.trials.ledger import Ledger
from impact_twin.trials.live import LiveTry, Monitor
from impact_twin.trials.plan import Limits
from impact_twin.trials.throttle import Throttle

DONE = CaseOutcome("completed", "done")


@pytest.fixture
def execute(suite):
    def go(executor, seconds=20.0):
        monitor = Monitor(Ledger(Limits()), Throttle())
        live = LiveTry(CaseRuntime(suite, "award-bias", "clean"), monitor, lambda: None)
        request = CaseRequest("q", "", suite.tools, live.call, monitor, 1, seconds)
        executor.execute(request, live)
        return live.close()

    return go


def agent_threads():
    return {thread for thread in threading.enumerate() if thread.name.startswith("agent-")}


def test_a_free_thread_is_used_again(execute, source_of):
    seen = []

    def agent(request):
        seen.append(threading.current_thread())
        return DONE

    executor = ThreadExecutor(source_of(agent))
    assert [execute(executor) for _ in range(5)] == [DONE] * 5
    assert len(set(seen)) == 1
    assert seen[0].daemon
    executor.close()
    seen[0].join(10)
    assert not seen[0].is_alive()


def test_context_variables_start_afresh(execute, source_of):
    variable = contextvars.ContextVar("variable", default="fresh")
    seen = []

    def agent(request):
        seen.append(variable.get())
        variable.set("used")
        return DONE

    executor = ThreadExecutor(source_of(agent))
    for _ in range(3):
        execute(executor)
    assert seen == ["fresh"] * 3


def test_a_hung_thread_is_left_behind_and_ends_when_its_agent_does(execute, source_of, until):
    before = agent_threads()
    hanging, first = threading.Event(), threading.Event()

    def agent(request):
        if not first.is_set():
            first.set()
            hanging.wait(60)
        return DONE

    executor = ThreadExecutor(source_of(agent))
    assert execute(executor, 0.1) is None
    assert execute(executor) == DONE
    assert len(agent_threads() - before) == 2
    executor.close()
    until(lambda: len(agent_threads() - before) == 1)
    hanging.set()
    until(lambda: not agent_threads() - before)
