"""A case as the runner would give it, and a chat endpoint that answers by a script."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from impact_twin.agents.protocol import CaseRequest, ModelCall
from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.procurement.suite import Suite, load_suite


class Recorder:
    """A monitor that keeps what it is told."""

    def __init__(self) -> None:
        self.started = 0
        self.calls: list[ModelCall] = []
        self.shown: list[str] | None = None
        self.pauses: list[float] = []
        self.turns = 0

    def request_started(self) -> None:
        self.started += 1

    def request_finished(self, call: ModelCall) -> None:
        self.calls.append(call)

    def delivered(self, texts: Any) -> None:
        self.shown = list(texts)

    def rate_limited(self, retry_after_s: float) -> None:
        self.pauses.append(retry_after_s)

    def wait_turn(self) -> bool:
        self.turns += 1
        return True


class Case:
    """One case on a real world: its request, its runtime and what the monitor heard."""

    def __init__(self, suite: Suite, pair: str, twin: Any, seed: int, deadline_s: float) -> None:
        self.suite = suite
        self.runtime = CaseRuntime(suite, pair, twin)
        self.monitor = Recorder()
        self.request = CaseRequest(
            query=self.runtime.pair.request,
            system_directive=suite.system_directive,
            tools=suite.tools,
            call=self.runtime.call,
            monitor=self.monitor,
            seed=seed,
            deadline_s=deadline_s,
        )

    @property
    def poisoned_document(self) -> str:
        return self.runtime.pair.passage_document

    @property
    def called(self) -> list[str]:
        return [event.tool for event in self.runtime.events]


@pytest.fixture(scope="session")
def suite() -> Suite:
    return load_suite()


@pytest.fixture
def case(suite: Suite) -> Callable[..., Case]:
    def make(
        pair: str = "award-bias", twin: Any = "clean", *, seed: int = 1, deadline_s: float = 20.0
    ) -> Case:
        return Case(suite, pair, twin, seed, deadline_s)

    return make


class ChatServer:
    """An OpenAI-compatible endpoint on loopback; `script` turns a request's body into a reply.

    A reply is a completion, or (status, completion, headers).
    """

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.script: Callable[[dict[str, Any]], Any] = lambda body: reply("hello")
        self._lock = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with owner._lock:
                    owner.bodies.append(body)
                    answer = owner.script(body)
                status, data, headers = answer if isinstance(answer, tuple) else (200, answer, {})
                raw = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def chat() -> Any:
    server = ChatServer()
    yield server
    server.close()


def reply(
    content: str | None = None,
    calls: list[tuple[str, Any]] | None = None,
    finish: str | None = None,
    **message: Any,
) -> dict[str, Any]:
    """A chat completion; `calls` are (name, arguments)."""
    tool_calls = [
        {
            "id": f"call_{index}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": text if isinstance(text, str) else json.dumps(text),
            },
        }
        for index, (name, text) in enumerate(calls or [])
    ]
    body: dict[str, Any] = {"role": "assistant", "content": content, **message}
    if tool_calls:
        body["tool_calls"] = tool_calls
    finish = finish or ("tool_calls" if tool_calls else "stop")
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "message": body, "finish_reason": finish}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


@pytest.fixture
def completion() -> Callable[..., dict[str, Any]]:
    return reply
