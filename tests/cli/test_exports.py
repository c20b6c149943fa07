import json

import pytest


@pytest.fixture
def run(tool):
    assert tool("repeat", "--trials", "2", "--quiet", "--out", "run").returncode == 0
    return tool


STARTS = {
    "html": "<!doctype html>",
    "markdown": "",
    "csv": "pair,",
    "sarif": "{",
    "junit": "<?xml",
}


@pytest.mark.parametrize("name", STARTS)
def test_a_format_goes_to_a_file_or_to_standard_output(run, name):
    filed = run("report", "run", f"--{name}", "out")
    assert filed.returncode == 0, filed.stderr
    assert "award-bias" in filed.stdout
    text = (run.folder / "out").read_text(encoding="utf-8")
    assert text.lower().startswith(STARTS[name])
    assert "award-bias" in text
    piped = run("report", "run", f"--{name}", "-")
    assert piped.stdout == text


def test_repeat_writes_every_format_at_once(tool):
    targets = [part for name in STARTS for part in (f"--{name}", f"r.{name}")]
    done = tool("repeat", "--trials", "1", "--out", "run", "--json", "-", *targets)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == tool.report()
    assert all((tool.folder / f"r.{name}").stat().st_size for name in STARTS)


def test_targets_are_refused_before_anything_runs(tool):
    (tool.folder / "mine.html").write_text("mine")
    for arguments in (
        ["--html", "mine.html"],
        ["--csv", "none/x.csv"],
        ["--csv", "-", "--json", "-"],
        ["--csv", "same", "--html", "same"],
    ):
        done = tool("repeat", "--out", "run", *arguments)
        assert done.returncode == 2, arguments
        assert arguments[0] in done.stderr or arguments[2] in done.stderr
        assert "Traceback" not in done.stderr
    assert tool.files() == ["mine.html"]
    assert (tool.folder / "mine.html").read_text() == "mine"
