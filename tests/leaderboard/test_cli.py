"""The commands as a user calls them, in this process."""

import io
import json

import pytest
from leaderboard_endpoint import ScriptedEndpoint, call
from leaderboard_samples import stored

from impact_twin.cli import main as entry
from impact_twin.leaderboard.store import read_run

SUBMIT = call(("submit", {"answer": "1050"}))


@pytest.fixture
def go(monkeypatch, capsys):
    known = {"leaderboard": ("impact_twin.cli.leaderboard:leaderboard", "")}
    monkeypatch.setattr(entry, "COMMANDS", {**known, **entry.COMMANDS})

    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            entry.main(["leaderboard", *map(str, arguments)])
        out, err = capsys.readouterr()
        return caught.value.code, out, err

    return run


@pytest.fixture
def protocol_file(tmp_path, content):
    path = tmp_path / "protocol.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_run_is_stored_scored_and_shown(go, tmp_path, protocol_file):
    folder = tmp_path / "run"
    with ScriptedEndpoint(lambda _: SUBMIT) as server:
        arguments = ["run", "--model", "local/m-1", "--name", "Model One", "--benign"]
        arguments += ["--api-base", server.url, "--protocol", protocol_file, "--out", folder]
        code, out, err = go(*arguments, "--json", "-")
        assert code == 0, err
        assert len(server.requests) == 20
        row = json.loads(out)["rows"][0]
        assert "Model One" in err
        again = tmp_path / "row.json"
        code, out, _ = go(*arguments, "--json", again)
        assert (code, len(server.requests)) == (0, 20)
        assert "Model One" in out
        assert json.loads(again.read_text())["rows"] == [row]
    assert (row["benign"]["combined"]["value"], row["replicates"]["label"]) == (
        0.5,
        "no variation seen",
    )
    identity = read_run(folder).identity
    rule = identity["rules"]["banking"]
    assert rule["suite"] == "banking"
    assert row["board"]["rules"] == {"banking": rule["digest"]}
    assert identity["versions"]["dspy"] == "3.4.1"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--model", "mistral/mistral-large-latest"], "alias"),
        (["--model", "nowhere/x"], "names no provider"),
        (["--model", "local/m", "--api-base", "ftp://x"], "--api-base"),
        (["--model", "local/m", "--api-base", "http://u:p@h/v1"], "--api-base"),
        (["--model", "local/m", "--protocol", "missing.json"], "can't be read"),
        (["--model", "local/m", "--json", "no/such/folder/x.json"], "--json"),
        (["--model", "local/m", "--name", "n" * 101], "--name"),
        (["--model", "local/m", "--api-base", "http://" + "h" * 500], "--api-base"),
        (["--model", "openrouter/x", "--upstream", "u" * 101], "--upstream"),
        (
            ["--model", "a/m", "--api-base", "http://127.0.0.1:9/v1", "--out", "/proc/nothing"],
            "can't be used",
        ),
        (["--model", "local/m", "--out", "n" * 300], "can't be used"),
        (["--model", "local/m", "--api-key-env", "NO_SUCH_VARIABLE_1"], "NO_SUCH_VARIABLE_1"),
        (
            ["--model", "local/m", "--api-base", "http://127.0.0.1:9/v1", "--attack", "nope"],
            "no attack of the protocol",
        ),
        (
            ["--model", "local/m", "--api-base", "http://127.0.0.1:9/v1", "--upstream", "A"],
            "only OpenRouter",
        ),
    ],
)
def test_input_errors_are_one_line_before_any_call(go, tmp_path, monkeypatch, arguments, told):
    monkeypatch.chdir(tmp_path)
    code, out, err = go("run", *arguments)
    assert code == 2
    assert out == ""
    lines = [line for line in err.splitlines() if line != "Loading AgentDojo ..."]
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")
    assert told in lines[0]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda content: content.update(repeats=1.0), "repeats"),
        (lambda content: content["limits"].update(attempts=2.0), "attempts"),
        (lambda content: content["scaffold"].update(max_iters=8.0), "max_iters"),
        (lambda content: content["limits"].update(pair_seconds=1e10), "pair_seconds"),
        (lambda content: content["limits"].update(request_seconds=1e300), "request_seconds"),
        (lambda content: content["attacks"].update(headline="manual"), "manual"),
    ],
)
def test_a_protocol_that_can_not_be_run_is_refused(
    go, tmp_path, content, protocol_file, change, told
):
    change(content)
    protocol_file.write_text(json.dumps(content), encoding="utf-8")
    arguments = ["run", "--model", "local/m", "--api-base", "http://127.0.0.1:9/v1", "--quiet"]
    code, _, err = go(*arguments, "--protocol", protocol_file, "--out", tmp_path / "run")
    assert code == 2
    assert told in err
    assert not (tmp_path / "run").exists()


def test_a_missing_key_is_an_input_error(go, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    code, _, err = go("run", "--model", "openrouter/openai/gpt-oss-20b")
    assert code == 2
    assert "no API key" in err
    assert "Set OPENROUTER_API_KEY" in err


def test_a_mismatched_release_is_refused_before_any_call(go, tmp_path, content, protocol_file):
    content["environment"]["dspy"] = "3.3.0b1"
    protocol_file.write_text(json.dumps(content), encoding="utf-8")
    code, _, err = go("run", "--model", "local/m", "--protocol", protocol_file)
    assert code == 2
    assert "pins dspy 3.3.0b1" in err


def test_a_dry_run_tells_the_size_and_calls_nothing(go, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = go("run", "--model", "openai/x-1", "--dry-run", "--benign", "--quiet")
    assert code == 0
    assert "none on workspace: 30 runs" in out
    assert "important_instructions on banking: 270 runs" in out
    assert "960 runs, at most 8640 requests" in out
    assert list(tmp_path.iterdir()) == []


def test_another_runs_folder_is_refused(go, tmp_path, protocol, protocol_file):
    folder = tmp_path / "run"
    stored(folder, protocol, lambda k: {}, model="local/other-1")
    arguments = ["run", "--model", "local/m-1", "--api-base", "http://127.0.0.1:9/v1"]
    arguments += ["--protocol", protocol_file, "--out", folder, "--quiet"]
    code, _, err = go(*arguments)
    assert code == 2
    assert "another model id" in err
    assert "--force" in err


def test_score_render_and_coverage_check_read_what_run_wrote(go, tmp_path, protocol):
    folder = tmp_path / "run"
    stored(folder, protocol, lambda k: {}, benign=True)
    rows = tmp_path / "rows.json"
    code, out, _ = go("score", folder, "--json", rows)
    assert (code, "local/m-1" in out) == (0, True)
    page, text = tmp_path / "board.html", tmp_path / "board.md"
    assert go("render", rows, "--html", page, "--markdown", text)[0] == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert "| local/m-1 |" in text.read_text(encoding="utf-8")
    code, out, _ = go("render", rows)
    assert "local/m-1" in out
    code, _, err = go("coverage-check", folder)
    assert code == 2
    assert "--full" in err


@pytest.mark.parametrize("command", ["score", "render", "coverage-check"])
def test_a_file_is_not_overwritten_unasked(go, tmp_path, protocol, command):
    folder = tmp_path / "run"
    stored(folder, protocol, lambda k: {})
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    option = "--markdown" if command == "render" else "--json"
    code, _, err = go(command, folder, option, mine)
    assert code == 2
    assert "--force" in err
    assert mine.read_text(encoding="utf-8") == "mine"
    if command != "coverage-check":
        assert go(command, folder, option, mine, "--force")[0] == 0
        assert mine.read_text(encoding="utf-8") != "mine"


def test_two_forms_cant_share_standard_output(go, tmp_path, protocol):
    stored(tmp_path / "run", protocol, lambda k: {})
    code, _, err = go("render", tmp_path / "run", "--html", "-", "--markdown", "-")
    assert code == 2
    assert "both would go to standard output" in err


def test_the_public_figures_come_out_of_the_commands(go, reference):
    folder = reference / "leaderboard"
    files = [*sorted((folder / "results").iterdir()), *sorted((folder / "full_coverage").iterdir())]
    code, out, _ = go("coverage-check", *files)
    assert code == 0
    for figures in ("99.7/99.3", "88.5/88.0", "39.9/38.0", "20.4/24.7"):
        assert figures in out


def test_a_dry_run_of_full_coverage_counts_every_user_task(go, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, _ = go("run", "--model", "openai/x-1", "--dry-run", "--benign", "--full", "--quiet")
    assert code == 0
    assert "important_instructions on workspace: 720 runs" in out
    assert "important_instructions on banking: 432 runs" in out
    assert "2472 runs" in out


def test_render_reads_rows_from_standard_input(go, tmp_path, protocol, monkeypatch):
    stored(tmp_path / "run", protocol, lambda k: {})
    rows = tmp_path / "rows.json"
    go("score", tmp_path / "run", "--json", rows)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(rows.read_bytes())))
    code, out, _ = go("render", "-")
    assert code == 0
    assert "local/m-1" in out
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    code, _, err = go("render", "-")
    assert code == 2
    assert "standard input" in err
