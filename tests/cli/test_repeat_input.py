"""Bad input: one clear line, exit 2, no traceback, nothing written."""

import pytest


def refused(done, *words):
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    first = done.stderr.splitlines()[0]
    assert first.startswith("Error: ")
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--trials", "0"], ["--trials"]),
        (["--trials", "-1"], ["--trials"]),
        (["--trials", "2.5"], ["--trials"]),
        (["--confidence", "0"], ["--confidence"]),
        (["--confidence", "1"], ["--confidence"]),
        (["--confidence", "nan"], ["--confidence"]),
        (["--timeout", "0"], ["--timeout"]),
        (["--timeout", "inf"], ["--timeout"]),
        (["--timeout", "1e300"], ["--timeout"]),
        (["--out", "here", "--json", "here"], ["--json", "run directory"]),
        (["--json", "/dev/null"], ["--json", "no regular file"]),
        (["--retries", "-1"], ["--retries"]),
        (["--concurrency", "0"], ["--concurrency"]),
        (["--isolation", "vm"], ["--isolation", "thread or process"]),
        (["--seed", "-5"], ["--seed"]),
        (["--pairs", "nope"], ["--pairs", "award-bias"]),
        (["--pairs", ","], ["--pairs"]),
        (["--pairs", "award-bias,award-bias"], ["--pairs", "twice"]),
        (["--max-cost-usd", "nan"], ["--max-cost-usd"]),
        (["--max-tokens", "0"], ["--max-tokens"]),
        (["--suite", "nowhere"], ["nowhere"]),
        (["--resume", "nowhere"], ["nowhere", "plan.json"]),
        (["--gate", "secure_utility >= 1.5"], ["--gate"]),
        (["--gate", "quality >= 0.5"], ["--gate", "secure_utility"]),
        (["--gate-pairs", "secure_utility >= 0.8"], ["--gate-pairs", "16"]),
        (["--json", "."], ["--json", "folder"]),
        (["--json", "none/x.json"], ["--json", "none"]),
        (["--agent", "demo:unknown"], ["demo:"]),
        (["--agent", "no_such_module_x:build"], ["no_such_module_x"]),
        (["--agent", "json"], ["module:"]),
        (["--agent", "json:__name__"], ["json:__name__"]),
        (["--agent", "json:nothing"], ["nothing"]),
        (["--agent", "demo:careful", "--model", "openai/x"], ["--agent", "--model"]),
        (["--agent", "demo:careful", "--temperature", "1"], ["--temperature", "--model"]),
        (["--model", "openai/x", "--temperature", "nan"], ["--temperature"]),
        (["--model", "openai/x", "--api-base", "ftp://x"], ["--api-base"]),
        (["--trails", "5"], ["--trails", "--trials"]),
        (["extra"], ["extra"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_refused_before_anything_is_written(tool, arguments, words):
    refused(tool("repeat", *arguments), *words)
    assert tool.files() == []


def test_an_out_that_is_a_file_is_refused(tool):
    (tool.folder / "here").write_text("mine")
    refused(tool("repeat", "--out", "here"), "here", "file")
    assert (tool.folder / "here").read_text() == "mine"


def test_an_out_that_holds_something_is_refused_even_with_force(tool):
    (tool.folder / "here").mkdir()
    (tool.folder / "here" / "thesis.txt").write_text("mine")
    refused(tool("repeat", "--out", "here"), "here")
    refused(tool("repeat", "--out", "here", "--force"), "here")
    assert tool.files() == ["here", "here/thesis.txt"]


def test_a_run_is_overwritten_only_with_force(tool):
    small = ("repeat", "--trials", "1", "--pairs", "award-bias", "--quiet", "--out", "run")
    assert tool(*small).returncode == 0
    refused(tool(*small), "run", "--force")
    before = tool.report()["plan"]["digest"]
    assert tool(*small, "--force", "--seed", "3").returncode == 0
    assert tool.report()["plan"]["digest"] != before


def test_a_factory_that_returns_none_is_refused_before_a_run_directory_is_made(tool, agent):
    target = agent("def build():\n    return None\n")
    refused(tool("repeat", "--agent", target, "--out", "run"), "mine:build", "None")
    assert not (tool.folder / "run").exists()


def test_a_module_that_fails_to_import_is_refused(tool, agent):
    target = agent("import not_installed_anywhere\n")
    refused(tool("repeat", "--agent", target, "--out", "run"), "not_installed_anywhere")
    assert not (tool.folder / "run").exists()
