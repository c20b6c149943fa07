import pytest
from leaderboard_endpoint import ScriptedEndpoint, say

from impact_twin.errors import InputError
from impact_twin.leaderboard.endpoint import (
    PROVIDERS,
    Endpoint,
    EndpointOptions,
    RecordingEngine,
    redact,
)

# isort: split
from dspy.lm15 import Config, Message, Request, TransportError

REQUEST = Request(model="impact-twin/pinned", messages=(Message.user("hello"),), config=Config())


@pytest.mark.parametrize("prefix", PROVIDERS)
def test_every_provider_that_is_offered_can_be_reached(prefix):
    Endpoint(EndpointOptions(f"{prefix}/some-model-1", api_key="k"), request_seconds=1).close()


@pytest.mark.parametrize("model", ["nowhere/x", "gpt-4o-mini-2024-07-18", "bedrock/x"])
def test_an_unknown_provider_is_refused_with_the_known_ones(model):
    with pytest.raises(InputError) as caught:
        Endpoint(EndpointOptions(model), request_seconds=1)
    assert "openrouter" in caught.value.line()
    assert "--api-base" in caught.value.line()


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("local/m-1", "m-1"),
        ("m-1", "m-1"),
        ("openai/ft:m:org", "ft:m:org"),
        ("openrouter/openai/gpt-oss-20b:free", "openai/gpt-oss-20b:free"),
        ("own/org/m-1", "org/m-1"),
    ],
)
def test_the_server_gets_the_name_without_the_provider(model, sent):
    with ScriptedEndpoint(lambda _: say("hi")) as server:
        endpoint = Endpoint(EndpointOptions(model, api_base=server.url), request_seconds=10)
        assert endpoint.complete(REQUEST).text == "hi"
        endpoint.close()
    assert server.requests[0]["model"] == sent


@pytest.mark.parametrize("model", ["openai/m-1", "local/m-1"])
def test_a_key_of_the_environment_is_not_sent_to_another_address(model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the-real-key")
    with ScriptedEndpoint(lambda _: say("hi")) as server:
        endpoint = Endpoint(EndpointOptions(model, api_base=server.url), request_seconds=10)
        endpoint.complete(REQUEST)
        own = Endpoint(
            EndpointOptions(model, api_base=server.url, api_key="meant-for-it"), request_seconds=10
        )
        own.complete(REQUEST)
    assert "the-real-key" not in server.authorizations[0]
    assert server.authorizations[1] == "Bearer meant-for-it"


def test_the_key_is_in_no_repr():
    assert "secret" not in repr(EndpointOptions("local/m", api_key="secret"))


def test_a_closed_run_sends_nothing_more():
    with ScriptedEndpoint(lambda _: say("hi")) as server:
        endpoint = Endpoint(EndpointOptions("local/m", api_base=server.url), request_seconds=10)
        engine = RecordingEngine(endpoint.complete)
        engine.complete(REQUEST)
        engine.close()
        with pytest.raises(TransportError):
            engine.complete(REQUEST)
    assert (engine.log.requests, len(engine.log.turns), len(server.requests)) == (1, 1, 1)


def test_keys_are_taken_out_of_texts(monkeypatch):
    assert "hunter2" not in redact("the key hunter2 was refused", "hunter2")
    monkeypatch.setenv("MY_TOKEN", "abcdefgh12")
    text = redact("a abcdefgh12 b sk-0123456789abc c https://h/x?key=qqq&z=1 d Bearer tttt e")
    assert text == (
        "a [redacted] b [redacted] c https://h/x?key=[redacted]&z=1 d Bearer [redacted] e"
    )
    monkeypatch.setenv("SHORT_KEY", "a")
    assert redact("banana") == "banana"
