import subprocess
import sys

import pytest

from impact_twin.agents import load_source, spec_from_options
from impact_twin.errors import InputError


def test_without_options_it_is_the_wavering_demo():
    assert spec_from_options() == {"kind": "demo", "name": "wavering", "label": None}


def test_each_option_names_its_kind():
    assert spec_from_options(agent="demo:careful")["name"] == "careful"
    assert spec_from_options(agent="a.b:c")["target"] == "a.b:c"
    assert spec_from_options(pipeline="a:b")["kind"] == "pipeline"
    spec = spec_from_options(
        model="openai/x", temperature=0.0, max_tokens=5, api_base="http://h/v1", name=" my  run "
    )
    assert spec == {
        "kind": "model",
        "model": "openai/x",
        "temperature": 0.0,
        "max_tokens": 5,
        "api_base": "http://h/v1",
        "label": "my run",
    }
    assert load_source(spec).spec["temperature"] == 0.0


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"agent": "demo:careful", "model": "m"}, "--agent and --model"),
        ({"agent": " "}, "--agent"),
        ({"agent": "demo:careful", "temperature": 0.5}, "--temperature"),
        ({"api_base": "http://x"}, "--api-base"),
        ({"pipeline": "a:b", "max_iters": 3}, "--max-iters"),
        ({"model": "m", "temperature": float("nan")}, "--temperature"),
        ({"model": "m", "temperature": 2.1}, "--temperature"),
        ({"model": "m", "max_tokens": 0}, "--max-reply-tokens"),
        ({"model": "m", "api_base": "host:80"}, "--api-base"),
        ({"model": "m", "api_base": "http://me:secret@host/v1"}, "--api-base"),
        ({"model": "m", "api_base": "http://host/v1?api_key=abcdefgh"}, "--api-base"),
        ({"name": "x" * 101}, "--name"),
        ({"name": "  "}, "--name"),
    ],
)
def test_options_that_can_t_be_are_refused(options, where):
    with pytest.raises(InputError) as caught:
        spec_from_options(**options)
    assert where in caught.value.line()
    assert caught.value.mend


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError):
        load_source({"kind": "magic"})


def test_making_a_source_imports_nothing_heavy():
    code = """
import sys
from impact_twin.agents import load_source
for spec in ({"kind": "demo", "name": "careful"}, {"kind": "factory", "target": "a:b"},
             {"kind": "model", "model": "openai/x"}, {"kind": "pipeline", "target": "a:b"}):
    load_source(spec)
heavy = {"dspy", "litellm", "agentdojo.agent_pipeline", "rich", "numpy"} & set(sys.modules)
print(sorted(heavy))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
