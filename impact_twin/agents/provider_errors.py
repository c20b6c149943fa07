"""What a failed request to a model means: a fixed word, the true status, whether to try again.

LiteLLM invents a status for what has none (500 for a broken connection or an unreadable reply, 408
for a timeout), so the status is read from the HTTP error underneath.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

RETRY_AFTER_CAP_S = 30.0

RETRYABLE = frozenset({"rate_limit", "server_error", "connection", "bad_response"})

# Kind of failure -> how the case ends when it stands.
TERMINATIONS = {
    "content_filter": "refused",
    "refusal": "refused",
    "context_length": "limit",
    "time_over": "limit",
    "reply_too_long": "agent_error",
}

_CONTEXT = re.compile(
    r"context[ _](?:length|size|window)|maximum context|too many (?:input )?tokens", re.IGNORECASE
)
_FILTER = re.compile(
    r"content[ _](?:management[ _])?(?:policy|filter)|safety system", re.IGNORECASE
)
_PREFIX = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?:: | - ))+")
_CLIENTS = frozenset(
    {"openai", "anthropic", "litellm", "httpx", "cohere", "google", "mistralai", "groq"}
)
_STATUS_KINDS = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "no_such_model",
    408: "server_error",
    409: "server_error",
    425: "server_error",
    429: "rate_limit",
}
# The first that is in the chain; without a true status there was no error reply.
_NAME_KINDS = (
    ("APIConnectionError", "connection"),
    ("TransportError", "connection"),
    ("ConnectionError", "connection"),
    ("AuthenticationError", "auth"),
    ("PermissionDeniedError", "auth"),
    ("NotFoundError", "no_such_model"),
    ("RateLimitError", "rate_limit"),
    ("BadRequestError", "bad_request"),
    ("UnsupportedParamsError", "bad_request"),
    ("APIResponseValidationError", "bad_response"),
    ("APIError", "bad_response"),
    ("OpenAIError", "bad_response"),
)


@dataclass(frozen=True)
class Failure:
    """A failed request.

    Attributes:
        kind: `rate_limit`, `quota`, `server_error`, `connection`, `request_timeout`,
            `bad_response`, `auth`, `no_such_model`, `bad_request`, `content_filter`,
            `context_length`, `time_over`, `reply_too_long`, or `engine` for what is none of these.
        http_status: The status that the provider really sent; None when there was no reply, or the
            reply was not an error.
        retry_after_s: What the provider asked for, seconds, not capped; None when it did not ask.
    """

    kind: str
    http_status: int | None = None
    retry_after_s: float | None = None

    @property
    def termination(self) -> str:
        """How a case ends that this failure ends."""
        return TERMINATIONS.get(self.kind, "infrastructure_error")


def classify(error: BaseException) -> Failure:
    """Say what an exception of `litellm.completion` means."""
    chain = list(_chain(error))
    names = {cls.__name__ for item in chain for cls in type(item).__mro__}
    status = _true_status(chain)
    text = " ".join((str(error)[:4000], _code(chain)))
    kind = _special(names, status, text)
    if kind is None and status is not None:
        kind = _STATUS_KINDS.get(status, "server_error" if status >= 500 else "bad_request")
    if kind is None:
        found = (word for name, word in _NAME_KINDS if name in names)
        kind = next(found, "engine")
    return Failure(kind, status, _retry_after(chain))


def _special(names: set[str], status: int | None, text: str) -> str | None:
    """Return what only a name or the provider's words can tell."""
    if names & {"Timeout", "APITimeoutError", "TimeoutException"}:
        return "request_timeout"
    refused = status in (None, 400, 413, 422)
    if "ContextWindowExceededError" in names or (refused and _CONTEXT.search(text)):
        return "context_length"
    if "ContentPolicyViolationError" in names or (refused and _FILTER.search(text)):
        return "content_filter"
    return "quota" if status == 429 and "insufficient_quota" in text else None


def of_provider(error: BaseException) -> Failure | None:
    """Say what an exception that an agent let through means, if it comes from a provider's client.

    Returns:
        None when no part of its chain does: then it is the agent's own.
    """
    packages = {type(item).__module__.partition(".")[0] for item in _chain(error)}
    if not packages & _CLIENTS:
        return None
    failure = classify(error)
    return None if failure.kind in ("engine", "bad_request") else failure


def plain_words(error: BaseException) -> str:
    """Return the provider's words, without LiteLLM's prefixes and tracebacks."""
    text = str(error).partition("Traceback (most recent call last)")[0]
    return _PREFIX.sub("", text).strip() or type(error).__name__


def capped(seconds: float | None) -> float | None:
    """Return a wish to wait, between 0 and the cap."""
    return None if seconds is None else min(max(seconds, 0.0), RETRY_AFTER_CAP_S)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _true_status(chain: list[BaseException]) -> int | None:
    for item in chain:
        module = type(item).__module__.partition(".")[0]
        response = getattr(item, "response", None)
        if module in ("openai", "httpx", "requests", "aiohttp", "anthropic"):
            found = getattr(item, "status_code", None) or getattr(item, "status", None)
            found = found or getattr(response, "status_code", None)
            if isinstance(found, int) and 400 <= found <= 599:
                return found
    return None


def _code(chain: list[BaseException]) -> str:
    for item in chain:
        body = getattr(item, "body", None)
        if isinstance(body, dict) and isinstance(body.get("code"), str):
            return str(body["code"])
    return ""


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a reply's `retry-after` header asks for, not capped."""
    value = headers.get("retry-after")
    if not isinstance(value, str):
        return None
    try:
        return float(value) if value.strip().replace(".", "", 1).isdigit() else _until(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _retry_after(chain: list[BaseException]) -> float | None:
    for item in chain:
        headers: Any = getattr(getattr(item, "response", None), "headers", None)
        if headers:
            return retry_after_of(headers)
    return None


def _until(date: str) -> float:
    return parsedate_to_datetime(date).timestamp() - time.time()
