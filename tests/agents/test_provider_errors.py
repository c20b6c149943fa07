import email.utils
import time

import httpx
import openai
import pytest

from impact_twin.agents.provider_errors import (
    RETRY_AFTER_CAP_S,
    capped,
    classify,
    of_provider,
    plain_words,
    retry_after_of,
)

REQUEST = httpx.Request("POST", "http://host.example/v1/chat/completions")


def status_error(status, message="injected", headers=None, code=None):
    response = httpx.Response(status, headers=headers or {}, request=REQUEST)
    body = {"message": message, "code": code}
    return openai.APIStatusError(message, response=response, body=body)


def lite(name):
    """An exception that only looks like LiteLLM's: it invents its status."""
    return type(name, (Exception,), {"status_code": 500, "__module__": "litellm.exceptions"})


@pytest.mark.parametrize(
    ("status", "kind", "termination"),
    [
        (400, "bad_request", "infrastructure_error"),
        (401, "auth", "infrastructure_error"),
        (402, "quota", "infrastructure_error"),
        (403, "auth", "infrastructure_error"),
        (404, "no_such_model", "infrastructure_error"),
        (408, "server_error", "infrastructure_error"),
        (422, "bad_request", "infrastructure_error"),
        (429, "rate_limit", "infrastructure_error"),
        (500, "server_error", "infrastructure_error"),
        (529, "server_error", "infrastructure_error"),
    ],
)
def test_a_status_has_one_meaning(status, kind, termination):
    failure = classify(status_error(status))
    assert (failure.kind, failure.http_status, failure.termination) == (kind, status, termination)


@pytest.mark.parametrize(
    ("error", "kind", "termination"),
    [
        (status_error(400, "maximum context length is 8192 tokens"), "context_length", "limit"),
        (status_error(400, "exceeds the available context size"), "context_length", "limit"),
        (status_error(400, "x", code="content_filter"), "content_filter", "refused"),
        (status_error(400, "violates our content management policy"), "content_filter", "refused"),
        (status_error(429, "x", code="insufficient_quota"), "quota", "infrastructure_error"),
        (openai.APIConnectionError(request=REQUEST), "connection", "infrastructure_error"),
        (openai.APITimeoutError(request=REQUEST), "request_timeout", "infrastructure_error"),
        (httpx.ReadTimeout("x"), "request_timeout", "infrastructure_error"),
        (httpx.RemoteProtocolError("x"), "connection", "infrastructure_error"),
        (lite("InternalServerError")("x"), "engine", "infrastructure_error"),
        (lite("APIError")("not JSON"), "bad_response", "infrastructure_error"),
        (lite("NotFoundError")("x"), "no_such_model", "infrastructure_error"),
        (lite("ContentPolicyViolationError")("x"), "content_filter", "refused"),
        (lite("ContextWindowExceededError")("x"), "context_length", "limit"),
        (ZeroDivisionError(), "engine", "infrastructure_error"),
    ],
)
def test_what_a_status_does_not_tell(error, kind, termination):
    failure = classify(error)
    assert (failure.kind, failure.termination) == (kind, termination)


def test_the_true_status_is_read_below_the_invented_one():
    error = lite("InternalServerError")("wrapped")
    error.__cause__ = status_error(503)
    assert (classify(error).kind, classify(error).http_status) == ("server_error", 503)
    error.__cause__ = openai.APIConnectionError(request=REQUEST)
    assert (classify(error).kind, classify(error).http_status) == ("connection", None)


def test_a_ring_of_causes_ends():
    one, two = ValueError("a"), ValueError("b")
    one.__cause__, two.__cause__ = two, one
    assert classify(one).kind == "engine"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("7", 7.0), ("0.5", 0.5), ("soon", None), ("", None), ("-3", None), ("1e3", None)],
)
def test_retry_after_in_seconds(value, seconds):
    assert retry_after_of({"retry-after": value}) == seconds
    assert classify(status_error(429, headers={"Retry-After": value})).retry_after_s == seconds


def test_retry_after_as_a_date():
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert retry_after_of({"retry-after": date}) == pytest.approx(100, abs=3)


def test_a_wish_is_capped_both_ways():
    assert capped(3600) == RETRY_AFTER_CAP_S
    assert capped(-5) == 0
    assert capped(None) is None


def test_only_a_provider_s_client_excuses_an_agent():
    assert of_provider(ValueError("x")) is None
    assert of_provider(ConnectionError("my own")) is None
    assert of_provider(status_error(400)) is None
    wrapped = RuntimeError("agent gave up")
    wrapped.__cause__ = status_error(500)
    assert of_provider(wrapped).kind == "server_error"


def test_plain_words_leave_prefixes_and_tracebacks_out():
    text = "litellm.RateLimitError: RateLimitError: OpenAIException - slow down"
    assert plain_words(Exception(text)) == "slow down"
    text = "x\nTraceback (most recent call last):\n  File '/home/me/secret.py'"
    assert plain_words(Exception(text)) == "x"
    assert plain_words(KeyError()) == "KeyError"
