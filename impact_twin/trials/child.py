"""A case's own process: calls the agent; the world and the record stay with the driver."""

from __future__ import annotations

import contextlib
import itertools
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence

from impact_twin.agents.protocol import AgentSource, CaseOutcome, CaseRequest, ModelCall
from impact_twin.agents.tools import GONE
from impact_twin.procurement.arguments import plain_arguments, plain_name
from impact_twin.procurement.model import JSON, ToolSpec
from impact_twin.trials.codec import call_to_json, usage_to_json
from impact_twin.trials.wire import Wire


def run_child(sock: socket.socket, source: AgentSource) -> None:
    """Run the one case that the driver sends, answer with its outcome, and end this process.

    When the driver goes away, this process and its children are killed.

    Args:
        sock: Connected to the driver.
        source: Makes and calls the agent.
    """
    code = 1
    try:
        _reseed()
        wire = Wire(sock)
        message = wire.receive()
        if message is not None:
            link = _Link(wire)
            threading.Thread(target=link.listen, name="driver-link", daemon=True).start()
            wire.send({"type": "done", "outcome": _outcome_json(_run(source, message, link))})
            code = 0
    finally:
        _flush()
        os._exit(code)


def _run(source: AgentSource, message: Mapping[str, JSON], link: _Link) -> CaseOutcome:
    request = CaseRequest(
        query=message["query"],
        system_directive=message["system_directive"],
        tools=tuple(ToolSpec(**spec) for spec in message["tools"]),
        call=link.call,
        monitor=link,
        seed=message["seed"],
        deadline_s=message["deadline_s"],
    )
    try:
        return source.run_case(request)
    except BaseException as error:  # the agent's own doing: no signal gets here
        kind = "interrupted" if isinstance(error, KeyboardInterrupt) else "exception"
        return CaseOutcome("agent_error", error_kind=kind, message=type(error).__name__)


class _Link:
    """Tool calls and the monitor, over the wire. Every method is thread-safe and never raises."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._pid = os.getpid()
        self._serial = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[JSON]] = {}

    def listen(self) -> None:
        """Hand answers to whoever waits for them; kill this process when the driver has gone."""
        try:
            while (message := self._wire.receive()) is not None:
                waiting = self._waiting.pop(message["id"], None)
                if waiting is not None:
                    waiting.put(message["answer"])
        finally:
            _kill_group(self._pid)

    def call(self, name: str, arguments: JSON) -> str:
        answer = self._ask(
            {"type": "call", "name": plain_name(name), "arguments": plain_arguments(arguments)}
        )
        return GONE if answer is None else str(answer)

    def request_started(self) -> None:
        self._tell({"type": "request_started"})

    def request_finished(self, call: ModelCall) -> None:
        self._tell({"type": "request_finished", "call": call_to_json(call)})

    def delivered(self, texts: Sequence[str]) -> None:
        self._tell({"type": "delivered", "texts": list(texts)})

    def rate_limited(self, retry_after_s: float) -> None:
        self._tell({"type": "rate_limited", "seconds": retry_after_s})

    def wait_turn(self) -> bool:
        seconds = self._ask({"type": "wait_turn"})
        if seconds:
            time.sleep(seconds)
        return True  # a case that is over has no process left

    def _ask(self, message: dict[str, JSON]) -> JSON:
        if os.getpid() != self._pid:
            return None
        number = next(self._serial)
        box: queue.SimpleQueue[JSON] = queue.SimpleQueue()
        self._waiting[number] = box
        try:
            self._wire.send({**message, "id": number})
        except OSError:
            return None
        return box.get()

    def _tell(self, message: Mapping[str, JSON]) -> None:
        if os.getpid() == self._pid:
            with contextlib.suppress(OSError):
                self._wire.send(message)


def _outcome_json(outcome: CaseOutcome) -> dict[str, JSON]:
    return {
        "termination": outcome.termination,
        "final_answer": outcome.final_answer,
        "error_kind": outcome.error_kind,
        "message": outcome.message,
        "http_status": outcome.http_status,
        "usage": None if outcome.usage is None else usage_to_json(outcome.usage),
        "instance": outcome.instance,
        "detail": dict(outcome.detail),
    }


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    os._exit(1)


def _reseed() -> None:
    # `random` reseeds itself after a fork; numpy's global generator would repeat in every case.
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def main(descriptor: int) -> None:
    """Start in a fresh interpreter: the driver sends the agent's spec first."""
    from impact_twin.agents import load_source

    sock = socket.socket(fileno=descriptor)
    hello = Wire(sock).receive()
    if hello is not None:
        run_child(sock, load_source(hello["spec"]))
