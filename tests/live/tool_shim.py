"""Gives tool calls to a model that has no template for them.

An OpenAI-compatible endpoint in front of a llama.cpp server. A request with `tools` becomes one
with a JSON schema that only a call of one of these tools satisfies; the server samples within it,
so every reply is a call that the model chose. Its strings are kept short, and so are its replies.
"""

import json
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LONGEST_STRING = 48
MOST_ITEMS = 2


class ToolShim:
    """Serves on a free port of 127.0.0.1 until `close`.

    Args:
        upstream: Base URL of the llama.cpp server, without `/v1`.

    Attributes:
        url: What to give as `--api-base`.
        requests: Chat requests that were answered.
    """

    def __init__(self, upstream: str) -> None:
        self.requests = 0
        self._upstream = f"{upstream}/v1/chat/completions"
        self._lock = threading.Lock()
        shim = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, answer = shim.answer(body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(
            self._upstream,
            data=json.dumps(to_plain_request(body)).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=600) as reply:
                answer = json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")
        with self._lock:
            self.requests += 1
            number = self.requests
        return 200, to_tool_reply(answer, number) if body.get("tools") else answer


def to_plain_request(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request that a server without tools understands."""
    plain = {
        key: value
        for key, value in body.items()
        if key not in ("tools", "tool_choice", "parallel_tool_calls", "response_format")
    }
    plain["messages"] = [to_plain_message(message) for message in body["messages"]]
    tools = chosen_tools(body)
    if tools:
        lines = [signature(tool["function"]) for tool in tools]
        text = "Answer with one call, as JSON. You can call:\n" + "\n".join(lines)
        plain["messages"][0]["content"] += "\n\n" + text
        plain["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "call", "schema": {"anyOf": list(map(call_schema, tools))}},
        }
    return plain


def chosen_tools(body: dict[str, Any]) -> list[dict[str, Any]]:
    tools = body.get("tools") or []
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        wanted = choice["function"]["name"]
        tools = [tool for tool in tools if tool["function"]["name"] == wanted]
    return tools


def signature(function: dict[str, Any]) -> str:
    names = ", ".join(function["parameters"].get("properties", {}))
    return f"{function['name']}({names})"


def call_schema(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool["function"]
    properties = function["parameters"].get("properties", {})
    arguments = {
        "type": "object",
        "properties": {name: short(schema) for name, schema in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"call": {"const": function["name"]}, "with": arguments},
        "required": ["call", "with"],
        "additionalProperties": False,
    }


def short(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose values are short, without what a grammar has no use for."""
    kept = {key: schema[key] for key in ("type", "enum") if key in schema}
    if kept.get("type") == "string" and "enum" not in kept:
        kept["maxLength"] = LONGEST_STRING
    if kept.get("type") == "array":
        kept["items"] = short(schema.get("items", {"type": "string"}))
        kept["maxItems"] = MOST_ITEMS
    return kept


def to_plain_message(message: dict[str, Any]) -> dict[str, str]:
    content = message.get("content") or ""
    if message["role"] == "tool":
        return {"role": "user", "content": f"{message.get('name', 'tool')} answered:\n{content}"}
    calls = [
        json.dumps(
            {"call": call["function"]["name"], "with": json.loads(call["function"]["arguments"])}
        )
        for call in message.get("tool_calls") or []
    ]
    return {
        "role": message["role"],
        "content": "\n".join([content, *calls] if content else calls or [""]),
    }


def to_tool_reply(answer: dict[str, Any], number: int) -> dict[str, Any]:
    """Turn the JSON that the model wrote into a tool call; what was cut stays text."""
    choice = answer["choices"][0]
    try:
        said = json.loads(choice["message"]["content"])
        name, arguments = said["call"], said["with"]
    except (ValueError, KeyError, TypeError):
        return answer
    choice["finish_reason"] = "tool_calls"
    choice["message"] = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
        ],
    }
    return answer
