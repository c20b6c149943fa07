"""A process that has imported the agent and forks one child a case. Linux only.

It has one thread, keeps no state of any case, and ends with everything it started when the driver's
end of its control socket closes, however that came about.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import threading
from pathlib import Path
from typing import Any

from impact_twin.errors import ImpactTwinError
from impact_twin.trials.child import run_child

MAX_CONTROL_BYTES = 256 * 1024
_PR_SET_CHILD_SUBREAPER = 36
# What a kind of agent needs at its first case, beyond what its identity imports.
_WARM = {"model": ("dspy",), "pipeline": ("agentdojo.agent_pipeline",)}


def main(descriptor: int) -> None:
    """Serve the driver at the other end of a SOCK_SEQPACKET socket until it closes."""
    control = socket.socket(fileno=descriptor)
    _Server(control).serve()


class _Server:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[int, int] = {}
        self._wake_read, self._wake_write = socket.socketpair()
        self._source: Any = None

    def serve(self) -> None:
        if not self._prepare():
            return
        self._wake_write.setblocking(False)
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda signum, frame: None)
        _become_subreaper()
        gc.collect()
        gc.freeze()
        try:
            while self._step():
                pass
        finally:
            self._end()

    def _prepare(self) -> bool:
        hello = self._receive()
        if hello is None:
            return False
        spec = hello[0]["spec"]
        try:
            from impact_twin.agents import load_source

            self._source = load_source(spec)
            self._source.identity()
            for name in _WARM.get(spec["kind"], ()):
                importlib.import_module(name)
        except ImpactTwinError as error:
            self._send({"op": "failed", "what": error.what, "mend": error.mend})
            return False
        except BaseException as error:
            self._send({"op": "failed", "what": f"{type(error).__name__} in the fork server"})
            return False
        self._send({"op": "ready", "threads": threading.active_count()})
        return True

    def _step(self) -> bool:
        readable, _, _ = select.select([self._control, self._wake_read], [], [])
        if self._wake_read in readable:
            self._wake_read.recv(4096)
            self._reap()
        if self._control not in readable:
            return True
        received = self._receive()
        if received is None:
            return False
        message, descriptors = received
        if message["op"] == "start":
            self._start(message["id"], descriptors[0])
        elif message["op"] == "kill":
            self._kill(message["id"])
        return True

    def _start(self, number: int, descriptor: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            os.close(descriptor)
            self._send({"op": "exited", "id": number, "status": None})
            return
        if pid == 0:
            self._become_child(descriptor)
        os.close(descriptor)
        self._pids[number] = pid

    def _become_child(self, descriptor: int) -> None:
        try:
            os.setsid()
            _become_subreaper()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for sock in (self._control, self._wake_read, self._wake_write):
                sock.close()
            run_child(socket.socket(fileno=descriptor), self._source)
        finally:
            os._exit(1)

    def _kill(self, number: int) -> None:
        pid = self._pids.get(number)
        if pid is not None:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)

    def _reap(self) -> None:
        for number, pid in list(self._pids.items()):
            # Not yet reaped, so its process group's number can't be another's.
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                continue
            self._kill(number)
            del self._pids[number]
            _, status = os.waitpid(pid, 0)
            self._send({"op": "exited", "id": number, "status": os.waitstatus_to_exitcode(status)})
        self._sweep()

    def _sweep(self) -> None:
        """Kill what ended cases left behind in sessions of its own.

        Each case's process adopts its orphans while it lives, so whatever this process has adopted
        belongs to a case that is over.
        """
        known = set(self._pids.values())
        for pid in _children():
            if pid not in known:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)

    def _end(self) -> None:
        for number in list(self._pids):
            self._kill(number)
        self._pids.clear()
        with contextlib.suppress(ChildProcessError):
            while True:
                self._sweep()
                os.waitpid(-1, 0)

    def _receive(self) -> tuple[dict[str, Any], list[int]] | None:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, MAX_CONTROL_BYTES, 1)
        except OSError:
            return None
        return (json.loads(data), descriptors) if data else None

    def _send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self._control.send(json.dumps(message).encode("ascii"))


def _become_subreaper() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _children() -> list[int]:
    """Return the process ids of this process's children, as far as the kernel tells."""
    try:
        text = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(word) for word in text.split()]
