"""`--isolation process`: each try in a process of its own; world and record stay in the driver."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Protocol

from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.trials.codec import call_from_json, usage_from_json
from impact_twin.trials.forkserver import MAX_CONTROL_BYTES
from impact_twin.trials.live import LiveTry
from impact_twin.trials.wire import Wire, WireError

START_S = 300.0
EXIT_S = 5.0

_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from impact_twin.trials.{module} import main; main(int(sys.argv[1]))"
)


class Child(Protocol):
    """A process that runs one try."""

    wire: Wire

    def kill(self) -> None:
        """Kill it and its children; nothing happens when it has ended."""

    def exit_code(self, timeout_s: float) -> int | None:
        """Return its exit code, or minus the signal that killed it; None when not known."""


class ProcessExecutor:
    """One process a try, killed with its children when the try is over.

    On Linux the processes are forked from a server that has imported the agent already; elsewhere,
    or when that import started threads (which a fork would not carry over), each is a fresh
    interpreter.

    Args:
        spec: The agent source's spec.
        fresh: Use fresh interpreters in any case.

    Raises:
        InputError: the system has no process groups, or the agent can't be imported.
    """

    def __init__(self, spec: Mapping[str, Any], *, fresh: bool = False) -> None:
        if os.name != "posix":
            raise InputError(
                "this system has no process groups",
                where="--isolation process",
                mend="Use --isolation thread, or run on Linux or macOS.",
            )
        self._spec = dict(spec)
        self._lock = threading.Lock()
        self._closed = False
        self._server: _ForkServer | None = None
        self._fresh = fresh or sys.platform != "linux"
        self._children: set[Child] = set()
        if not self._fresh:
            server = _ForkServer(self._spec)
            if server.threads == 1:
                self._server = server
            else:
                server.close()
                self._fresh = True

    @property
    def forks(self) -> bool:
        """Whether children are forked rather than started afresh."""
        return not self._fresh

    def execute(self, request: CaseRequest, live: LiveTry) -> None:
        """See `impact_twin.trials.executor.Executor`."""
        deadline = time.monotonic() + request.deadline_s
        child = self._start()
        try:
            child.wire.send(_case_json(request))
            _Conversation(child, live, deadline).hold()
        except TimeoutError:
            return
        except WireError as error:
            live.finish(_failed("bad_message", f"the agent's process sent {error}"))
        except OSError:
            live.finish(_ended(child))
        finally:
            child.kill()
            child.wire.close()
            with self._lock:
                self._children.discard(child)

    def close(self) -> None:
        """Kill every process of the run."""
        with self._lock:
            self._closed = True
            children, server = list(self._children), self._server
        for child in children:
            child.kill()
        if server is not None:
            server.close()

    def _start(self) -> Child:
        with self._lock:
            if self._closed:
                raise RuntimeError("the run is over")
            if self._fresh:
                child: Child = _FreshChild(self._spec)
            else:
                if self._server is None or self._server.gone:
                    self._server = _ForkServer(self._spec)
                child = self._server.start()
            self._children.add(child)
            return child


class _Conversation:
    """What the driver does with a child's messages until the try is over."""

    def __init__(self, child: Child, live: LiveTry, deadline: float) -> None:
        self._child = child
        self._live = live
        self._deadline = deadline

    def hold(self) -> None:
        while not self._live.runtime.limit_reached:
            message = self._child.wire.receive(self._deadline)
            if message is None:
                self._live.finish(_ended(self._child))
                return
            try:
                if not self._heed(message):
                    return
            except (KeyError, TypeError, ValueError, AttributeError):
                raise WireError("a message that isn't part of the protocol") from None

    def _heed(self, message: Mapping[str, JSON]) -> bool:
        monitor = self._live.monitor
        kind = message["type"]
        if kind == "done":
            self._live.finish(_outcome(message["outcome"]))
            return False
        if kind == "call":
            self._answer(message, self._live.call(message["name"], message["arguments"]))
        elif kind == "wait_turn":
            self._answer(message, monitor.take_turn())
        elif kind == "request_started":
            monitor.request_started()
        elif kind == "request_finished":
            monitor.request_finished(call_from_json(message["call"]))
        elif kind == "delivered":
            monitor.delivered([str(text) for text in message["texts"]])
        elif kind == "rate_limited":
            monitor.rate_limited(float(message["seconds"]))
        else:
            raise ValueError(kind)
        return True

    def _answer(self, message: Mapping[str, JSON], answer: JSON) -> None:
        self._child.wire.send({"id": message["id"], "answer": answer})


class _ForkServer:
    """The driver's side of `impact_twin.trials.forkserver`."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._serial = itertools.count(1)
        self._children: dict[int, _ForkedChild] = {}
        self._lock = threading.Lock()
        self.gone = False
        with theirs:
            self._process = _popen("forkserver", theirs)
        try:
            self.threads = self._hello(spec)
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._listen, name="fork-server", daemon=True).start()

    def start(self) -> _ForkedChild:
        """Have a child forked; raises RuntimeError when the server has gone."""
        ours, theirs = socket.socketpair()
        number = next(self._serial)
        child = _ForkedChild(Wire(ours), number, self)
        with self._lock:
            self._children[number] = child
        with theirs:
            message = json.dumps({"op": "start", "id": number}).encode("ascii")
            try:
                socket.send_fds(self._control, [message], [theirs.fileno()])
            except OSError as error:
                child.ended(None)
                raise RuntimeError(f"the fork server has gone: {error.strerror}") from None
        return child

    def kill(self, number: int) -> None:
        """Have a child killed with its children."""
        with contextlib.suppress(OSError):
            self._control.send(json.dumps({"op": "kill", "id": number}).encode("ascii"))

    def close(self) -> None:
        """End the server and everything that it started."""
        self.gone = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(EXIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _hello(self, spec: Mapping[str, Any]) -> int:
        self._control.settimeout(START_S)
        try:
            self._control.send(json.dumps({"spec": dict(spec)}).encode("ascii"))
            data = self._control.recv(MAX_CONTROL_BYTES)
        except OSError:
            data = b""
        finally:
            self._control.settimeout(None)
        answer = json.loads(data) if data else {"op": "failed", "what": "its process ended"}
        if answer["op"] != "ready":
            raise InputError(
                f"the agent can't be made in a process of its own: {answer['what']}",
                where="--isolation process",
                mend=answer.get("mend", ""),
            )
        return int(answer["threads"])

    def _listen(self) -> None:
        while True:
            try:
                data = self._control.recv(MAX_CONTROL_BYTES)
            except OSError:
                data = b""
            if not data:
                break
            message = json.loads(data)
            with self._lock:
                child = self._children.pop(message["id"], None)
            if child is not None:
                child.ended(message["status"])
        self.gone = True
        with self._lock:
            children = list(self._children.values())
            self._children.clear()
        for child in children:
            child.ended(None)


class _ForkedChild:
    def __init__(self, wire: Wire, number: int, server: _ForkServer) -> None:
        self.wire = wire
        self._number = number
        self._server = server
        self._exited = threading.Event()
        self._code: int | None = None

    def kill(self) -> None:
        if not self._exited.is_set():
            self._server.kill(self._number)

    def exit_code(self, timeout_s: float) -> int | None:
        self._exited.wait(timeout_s)
        return self._code

    def ended(self, code: int | None) -> None:
        self._code = code
        self._exited.set()
        # A grandchild may hold the socket open: nobody shall wait for it.
        self.wire.hang_up()


class _FreshChild:
    def __init__(self, spec: Mapping[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        self.wire = Wire(ours)
        with theirs:
            self._process = _popen("child", theirs)
        with contextlib.suppress(OSError):
            self.wire.send({"spec": dict(spec)})

    def kill(self) -> None:
        # Not yet reaped by `wait`, so its process group's number can't be another's.
        if self._process.returncode is None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def exit_code(self, timeout_s: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.returncode


def _popen(module: str, theirs: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  (our own interpreter and module)
        [
            sys.executable,
            "-c",
            _BOOT.format(module=module),
            str(theirs.fileno()),
            json.dumps(sys.path),
        ],
        stdin=subprocess.DEVNULL,
        # What an agent prints must not get into a report on standard output.
        stdout=_standard_error(),
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )


def _standard_error() -> int:
    try:
        os.fstat(2)
    except OSError:
        return subprocess.DEVNULL
    return 2


def _case_json(request: CaseRequest) -> dict[str, JSON]:
    return {
        "query": request.query,
        "system_directive": request.system_directive,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in request.tools
        ],
        "seed": request.seed,
        "deadline_s": request.deadline_s,
    }


def _outcome(data: Mapping[str, JSON]) -> CaseOutcome:
    texts = {name: data[name] for name in ("termination", "final_answer", "error_kind", "message")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise TypeError
    numbers = {name: data[name] for name in ("http_status", "instance")}
    if not all(number is None or type(number) is int for number in numbers.values()):
        raise TypeError
    usage = data["usage"]
    return CaseOutcome(
        **texts,
        **numbers,
        usage=None if usage is None else usage_from_json(usage),
        detail=dict(data["detail"]),
    )


def _ended(child: Child) -> CaseOutcome:
    """Say how a process ended that ended without an outcome."""
    code = child.exit_code(EXIT_S)
    if code is None:
        return CaseOutcome(
            "infrastructure_error", error_kind="no_worker", message="the agent's process was lost"
        )
    if code >= 0:
        return _failed("process_exit", f"the agent's process ended with exit code {code}")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; out of memory?" if name == "SIGKILL" else ""
    return _failed("process_killed", f"the agent's process was killed by {name}{hint}")


def _failed(kind: str, message: str) -> CaseOutcome:
    return CaseOutcome("agent_error", error_kind=kind, message=message)
