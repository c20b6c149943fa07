import asyncio
import threading
import time

import pytest

from impact_twin.agents.background import wait_for


async def value(seconds, result):
    await asyncio.sleep(seconds)
    return result


def test_waiting_callers_share_one_loop():
    results = []
    threads = [
        threading.Thread(target=lambda i=i: results.append(wait_for(value(0.2, i), 5)))
        for i in range(8)
    ]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == list(range(8))
    assert time.monotonic() - start < 1.2


def test_what_it_raises_comes_through():
    async def fail():
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        wait_for(fail(), 5)


def test_the_time_is_bounded():
    with pytest.raises(TimeoutError):
        wait_for(value(60, None), 0.01)


def test_the_loop_s_thread_never_keeps_the_process_alive():
    wait_for(value(0, None), 5)
    (loop,) = [thread for thread in threading.enumerate() if thread.name == "agents-loop"]
    assert loop.daemon
