import json
from importlib import metadata

import pytest

from impact_twin.errors import InputError
from impact_twin.leaderboard.protocol import (
    BUNDLED,
    check_model_id,
    check_versions,
    load_protocol,
    parse_protocol,
)

# Whoever changes the bundled protocol makes another protocol, whose rows share no board with these.
FROZEN = "sha256:725ab1f043a3eb0167e5ca50823917afbab767396a0ce829ba5f633d682cedaf"


def test_the_bundled_protocol_is_frozen():
    assert load_protocol().digest == FROZEN


def test_the_bundled_protocol_is_the_one_of_the_board():
    protocol = load_protocol()
    assert (protocol.agentdojo, protocol.benchmark, protocol.dspy) == ("0.1.35", "v1", "3.4.1")
    assert {suite.name: suite.pairs for suite in protocol.suites} == {
        "workspace": 60,
        "banking": 90,
    }
    assert all(len(suite.user_tasks) == 10 for suite in protocol.suites)
    assert protocol.attacks == ("important_instructions", "direct")
    assert (protocol.max_iters, protocol.temperature, protocol.repeats) == (8, 0.0, 3)
    assert (protocol.buckets.robust, protocol.buckets.vulnerable) == (0.9, 0.5)
    scaffold = protocol.content["scaffold"]
    assert scaffold["program"] == "dspy.ReActV2"
    assert scaffold["optimizer"] == scaffold["defense"] == "none"


def test_the_bundled_protocol_runs_under_the_releases_that_we_depend_on():
    check_versions(load_protocol())
    needed = metadata.requires("impact-twin")
    protocol = load_protocol()
    assert f"dspy=={protocol.dspy}" in needed
    assert f"agentdojo=={protocol.agentdojo}" in needed


@pytest.mark.parametrize("name", ["dspy", "agentdojo"])
def test_other_releases_are_refused(content, name):
    content["environment"][name] = "0.0.1"
    with pytest.raises(InputError, match=f"pins {name} 0.0.1, but .* is installed"):
        check_versions(parse_protocol(content, where="x"))


def test_the_digest_covers_every_setting(content):
    seen = {parse_protocol(content, where="x").digest}
    changes = [
        ("repeats", 4),
        ("clock", "2024-05-15T12:00:01"),
        ("confidence", 0.9),
        ("version", "1.0.1"),
    ]
    for field, value in changes:
        seen.add(parse_protocol({**content, field: value}, where="x").digest)
    content["decoding"]["max_tokens"] += 1
    seen.add(parse_protocol(content, where="x").digest)
    assert len(seen) == len(changes) + 2


def test_white_space_and_order_of_keys_are_no_part_of_the_digest(tmp_path):
    content = json.loads(BUNDLED.read_text(encoding="utf-8"))
    path = tmp_path / "p.json"
    path.write_text(json.dumps(dict(reversed(content.items()))), encoding="utf-8")
    assert load_protocol(path).digest == load_protocol().digest


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.pop("clock"), "'clock' is a required property"),
        (lambda c: c.update(surprise=1), "'surprise' was unexpected"),
        (lambda c: c["scaffold"].update(native_function_calling=False), "True was expected"),
        (lambda c: c["scaffold"].update(optimizer="gepa"), "'none' was expected"),
        (lambda c: c["attacks"].update(secondary=["important_instructions"]), "secondary one too"),
        (lambda c: c["buckets"].update(vulnerable=0.95), "not below robust"),
        (lambda c: c.update(clock="2024-13-45T00:00:00"), "not a date and time"),
        (lambda c: c["benchmark"]["suites"]["banking"].update(user_tasks=[]), "user_tasks"),
    ],
)
def test_what_is_no_protocol_is_refused_with_its_place(content, change, told):
    change(content)
    with pytest.raises(InputError) as caught:
        parse_protocol(content, where="p.json")
    assert told in caught.value.line()
    assert caught.value.line().startswith("p.json")


@pytest.mark.parametrize(
    "model",
    [
        "mistral/mistral-large-latest",
        "openrouter/x/y:latest",
        "openai/chatgpt-4o-LATEST",
        "openrouter/auto",
        "latest",
        "a/b@latest",
        "openrouter/x/y-latest:free",
        "vendor/model-stable",
    ],
)
def test_an_alias_is_refused(model):
    with pytest.raises(InputError, match="alias"):
        check_model_id(model)


@pytest.mark.parametrize("model", ["", "a b", "a/", "a\nb", "a\u202eb", "x" * 201])
def test_what_is_no_model_id_is_refused(model):
    with pytest.raises(InputError, match="not a model id"):
        check_model_id(model)


@pytest.mark.parametrize(
    "model",
    [
        "openrouter/mistralai/mistral-large-2512",
        "openai/gpt-4o-mini-2024-07-18",
        "stabilityai/stable-code-3b",
        "org/automodel-7b",
        "local/smollm2-135m-instruct-q4_1",
        "openrouter/nvidia/nemotron-3-nano-30b-a3b:free",
    ],
)
def test_a_pinned_id_is_taken(model):
    check_model_id(model)
