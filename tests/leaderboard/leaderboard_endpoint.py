"""A scripted chat endpoint on loopback: HTTP and the OpenAI protocol are real, the model is not.

A script is a function from the request's body to a reply: `call(...)`, `say(...)`, `status(...)`,
`body(...)`, or a float to sleep and then say nothing. It sees the whole conversation, so it can
act on the request and on the tools' results.
"""

import itertools
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def call(*calls, finish="tool_calls"):
    """Answer with native tool calls: (name, arguments) pairs."""
    return {
        "message": {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": f"call_{index}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for index, (name, arguments) in enumerate(calls)
            ],
        },
        "finish_reason": finish,
    }


def say(text, finish="stop", **more):
    """Answer with text."""
    return {"message": {"role": "assistant", "content": text, **more}, "finish_reason": finish}


def status(code, error=None, headers=None):
    """Answer with an HTTP error."""
    return {"status": code, "error": error or {"message": "scripted"}, "headers": headers or {}}


def results(request):
    """Return the texts of the tool results in a request, in order."""
    return [m["content"] for m in request["messages"] if m["role"] == "tool"]


class ScriptedEndpoint:
    """Serves a script on 127.0.0.1; keeps request bodies in `.requests`."""

    def __init__(self, script, *, same_id=False):
        self.script = script
        self.requests = []
        self.authorizations = []
        self.lock = threading.Lock()
        numbers = itertools.count(1)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *arguments):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer.lock:
                    outer.requests.append(request)
                    outer.authorizations.append(self.headers.get("authorization", ""))
                    number = next(numbers)
                reply = outer.script(request)
                if isinstance(reply, float):
                    time.sleep(reply)
                    reply = say("")
                if "status" in reply:
                    self.reply(reply["status"], {"error": reply["error"]}, reply["headers"])
                    return
                answer = {
                    "id": "scripted-0" if same_id else f"scripted-{number}",
                    "object": "chat.completion",
                    "created": 0,
                    "model": f"served-{request['model']}",
                    "choices": [{"index": 0, **reply}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
                }
                self.reply(200, answer, {})

            def reply(self, code, content, headers):
                data = json.dumps(content).encode()
                try:
                    self.send_response(code)
                    self.send_header("content-type", "application/json")
                    self.send_header("content-length", str(len(data)))
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request, client_address):
                pass  # A client that a test has killed.

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_address[1]}/v1"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
