import os
import subprocess
import sys
import textwrap

import pytest

from impact_twin.agents import load_source
from impact_twin.errors import InputError

MODULE = """
import asyncio

class Agent:
    name = "my agent"
    def __init__(self, seed=None):
        self.seed = seed
    def run(self, query, tools, *, system_directive=""):
        return f"seed {self.seed}"

made = []

def build():
    made.append(Agent())
    return made[-1]

def seeded(seed):
    made.append(Agent(seed))
    return made[-1]

def positional(seed, /):
    return Agent(seed)

async def later():
    await asyncio.sleep(0)
    return Agent("later")

_one = Agent("one")
def shared():
    return _one

def nothing():
    return None

def runless():
    return object()

def needs(model):
    return Agent(model)

def broken():
    raise RuntimeError("no licence sk-abcdefghijklmnop1234")

def leaves():
    raise SystemExit(4)

number = 3

class Outer:
    build = staticmethod(build)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"agents_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    sys.modules.pop(name, None)


def source(target, label=None):
    return load_source({"kind": "factory", "target": target, "label": label})


def test_a_plain_factory_s_probe_is_the_first_case_s_agent(module, case):
    mine = source(f"{module}:build")
    mine.prepare()
    outcomes = [mine.run_case(case().request) for _ in range(3)]
    assert [outcome.final_answer for outcome in outcomes] == ["seed None"] * 3
    assert len(sys.modules[module].made) == 3
    assert len({outcome.instance for outcome in outcomes}) == 3
    assert mine.identity()["name"] == "my agent"
    assert mine.identity()["takes_seed"] is False
    assert mine.identity()["source_digest"].startswith("sha256:")


def test_a_factory_that_takes_seed_gets_the_case_s(module, case):
    mine = source(f"{module}:seeded")
    mine.prepare()
    assert mine.run_case(case(seed=17).request).final_answer == "seed 17"
    assert source(f"{module}:positional").run_case(case(seed=5).request).final_answer == "seed 5"
    assert mine.identity()["takes_seed"] is True


def test_a_class_an_attribute_of_one_and_an_async_factory_do(module, case):
    assert source(f"{module}:Agent").run_case(case(seed=2).request).final_answer == "seed 2"
    source(f"{module}:Outer.build").prepare()
    mine = source(f"{module}:later")
    mine.prepare()
    assert mine.run_case(case().request).final_answer == "seed later"


def test_a_shared_object_shows_in_the_instance(module, case):
    mine = source(f"{module}:shared")
    mine.prepare()
    assert len({mine.run_case(case().request).instance for _ in range(3)}) == 1


def test_a_label_names_the_agent(module):
    assert source(f"{module}:build", "release 7").identity()["name"] == "release 7"


def test_the_spec_makes_the_same_source_again(module):
    mine = source(f"{module}:build", "x")
    assert load_source(dict(mine.spec)).spec == mine.spec


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nocolon", "module:attr"),
        (":build", "module:attr"),
        ("module:", "module:attr"),
        ("no_such_module_here:build", "install it"),
        ("{m}:absent", "no attribute"),
        ("{m}:number", "can't be called"),
        ("{m}:needs", "argument model"),
        ("{m}:nothing", "returned None"),
        ("{m}:runless", "without a method run"),
        ("{m}:broken", "no licence"),
        ("{m}:leaves", "SystemExit: 4"),
    ],
)
def test_what_can_t_be_an_agent_is_an_input_error_with_the_mend(module, target, words):
    with pytest.raises(InputError, match=words) as caught:
        source(target.format(m=module)).prepare()
    assert caught.value.mend
    assert caught.value.where == "--agent"
    assert "sk-abc" not in caught.value.line()


def test_a_module_that_fails_or_exits_on_import_is_an_input_error(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, body in (
        ("broken_one", "1/0"),
        ("broken_two", "raise SystemExit(3)"),
        ("broken_three", "import not_there_at_all"),
        ("broken_four", "def ("),
    ):
        (tmp_path / f"{name}.py").write_text(body)
        with pytest.raises(InputError, match=name):
            source(f"{name}:build").prepare()


def test_the_current_directory_comes_first_as_for_python_m(tmp_path):
    (tmp_path / "here_only.py").write_text(
        "class A:\n    def run(self, query, tools, *, system_directive=''):\n        return 'x'\n"
    )
    code = textwrap.dedent(
        """
        import sys
        sys.path[:] = [p for p in sys.path if p]
        from impact_twin.agents import load_source
        load_source({"kind": "factory", "target": "here_only:A"}).prepare()
        print("ok")
        """
    )
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.stdout.strip() == "ok", done.stderr
