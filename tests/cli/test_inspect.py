import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from impact_twin.agents import load_source
from impact_twin.cli.inspect import inspect as command
from impact_twin.errors import InputError
from impact_twin.procurement.suite import load_suite
from impact_twin.report.files import write_report
from impact_twin.report.model import build_report
from impact_twin.trials.plan import Limits, make_plan
from impact_twin.trials.runner import run

ROOT = Path(__file__).parents[2]
# One pair varies with this seed, in four trials.
SEED = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run directory with its report, made by the runner itself."""
    suite = load_suite()
    source = load_source({"kind": "demo", "name": "wavering", "label": None})
    source.prepare()
    limits = Limits(timeout_s=30, retries=0)
    plan = make_plan(suite, source, trials=4, limits=limits, seed=SEED)
    folder = tmp_path_factory.mktemp("runs") / "run"
    data = run(plan, suite, source, folder, concurrency=2)
    write_report(build_report(data, suite), folder / "report.json")
    return folder


@pytest.fixture
def inspect(tool):
    def call(*arguments, **options):
        return tool("inspect", *arguments, **options)

    return call


@pytest.fixture(scope="module")
def content(folder):
    return json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def flipping(content):
    return next(row["pair"] for row in content["summary"]["pairs"] if row["label"] == "variable")


def test_a_run_directory_a_file_and_standard_input_say_the_same(inspect, folder):
    shown = inspect(folder)
    assert shown.returncode == 0, shown.stderr
    assert "Variable:" in shown.stdout
    assert inspect(folder / "report.json").stdout == shown.stdout
    piped = inspect("-", stdin=(folder / "report.json").read_text(encoding="utf-8"))
    assert piped.stdout == shown.stdout
    assert "\x1b" not in shown.stdout


def test_a_pair_shows_its_flip(folder, flipping):
    shown = CliRunner().invoke(command, [str(folder), "--pair", flipping])
    assert shown.exit_code == 0
    for words in ("The request", "They part at call", "Their calls", "Their final answers"):
        assert words in shown.output


def test_a_pipe_gets_lines_however_wide(inspect, folder, flipping):
    shown = inspect(folder, "--pair", flipping, env={"COLUMNS": "160"})
    assert "┃" not in shown.stdout
    assert "\x1b" not in shown.stdout


def test_trials_classes_and_twins_are_chosen(folder, flipping, content):
    def shown(*arguments):
        result = CliRunner().invoke(command, [str(folder), "--pair", flipping, *arguments])
        assert result.exit_code == 0
        return result.output

    both = shown("--trials", "3", "1")
    assert re.search(r"Shown: trial [13] and trial [13], \w+ \(asked for\)", both)
    one = shown("--trial", "2")
    assert "Shown: trial 2," in one
    assert "Its calls" in one
    clean = shown("--twin", "clean")
    assert "What 4 clean runs did" in clean
    outcome = next(i["outcome"] for i in content["pair_trials"] if i["pair"] == flipping)
    count = sum((i["pair"], i["outcome"]) == (flipping, outcome) for i in content["pair_trials"])
    some = shown("--class", outcome)
    assert f"What {count} poisoned run" in some


def test_json_gives_all_of_it(inspect, folder, content, flipping):
    data = json.loads(inspect(folder, "--json").stdout)
    assert data["kind"] == "impact-twin/inspection"
    assert {pair["row"]["pair"] for pair in data["pairs"]} == set(content["plan"]["pairs"])
    assert [row["pair"] for row in data["overview"]] == [
        pair["row"]["pair"] for pair in data["pairs"]
    ]
    flip = next(pair for pair in data["pairs"] if pair["row"]["pair"] == flipping)
    assert flip["comparison"]["rows"]
    assert flip["request"]
    one = json.loads(inspect(folder, "--pair", flipping, "--trial", "1", "--json").stdout)
    assert [pair["row"]["pair"] for pair in one["pairs"]] == [flipping]
    assert one["pairs"][0]["single"]["trial"] == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("width", "beside"), [(60, False), (80, False), (160, True)])
def test_a_wide_terminal_gets_columns(tool, folder, flipping, width, beside):
    shown = on_terminal(tool, width, "inspect", folder, "--pair", flipping)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert "They part at" in plain
    assert ("┃" in plain) == beside
    assert max(map(len, plain.splitlines())) <= width
    assert "\x1b[" in shown


def on_terminal(tool, width, *arguments):
    import fcntl
    import os
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = tool.environment({"TERM": "xterm"})
    environment.pop("COLUMNS")
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        tool.command(*arguments), env=environment, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        data = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not part:
                break
            data += part
        process.wait(60)
    os.close(leader)
    return data.decode("utf-8").replace("\r\n", "\n")


def test_ascii_is_ascii(inspect, folder, flipping):
    assert inspect(folder, "--pair", flipping, "--ascii").stdout.isascii()
    narrow = inspect(folder, env={"PYTHONIOENCODING": "ascii"})
    assert narrow.returncode == 0
    assert narrow.stdout.isascii()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pair", "nothing"), "the report has no pair"),
        (("--trial", "1"), "need a pair"),
        (("--twin", "clean"), "need a pair"),
        (("--pair", "award-bias", "--trial", "99"), "there is no trial 99"),
        (("--pair", "award-bias", "--trials", "1", "1"), "both trials are the same"),
        (("--pair", "award-bias", "--class", "unsafe_baseline"), "is unsafe_baseline"),
        (("--class", "fine"), "--class"),
    ],
)
def test_wrong_use_is_one_kind_line(folder, arguments, words):
    shown = CliRunner().invoke(command, [str(folder), *arguments])
    assert shown.exit_code != 0
    if isinstance(shown.exception, InputError):
        assert shown.exception.exit_code == 2
        assert words in shown.exception.line()
    else:
        assert shown.exit_code == 2
        assert words in shown.output


def test_what_is_no_report_is_refused(inspect, folder, tmp_path, content):
    text = (folder / "report.json").read_text(encoding="utf-8")
    newer, older = ({**content, "schema_version": version} for version in (2, 0))
    files = {
        "cut.json": (text[: len(text) // 2], "cut short"),
        "other.json": ('{"version": "2.1.0", "runs": []}', "is no report of impact-twin"),
        "empty.json": ("", "is empty"),
        "newer.json": (json.dumps(newer), "schema"),
        "older.json": (json.dumps(older), "schema"),
    }
    for name, (data, words) in files.items():
        (tmp_path / name).write_text(data, encoding="utf-8")
        shown = CliRunner().invoke(command, [str(tmp_path / name)])
        assert isinstance(shown.exception, InputError), name
        assert words in shown.exception.line(), name
        assert name in shown.exception.line()
    gone = inspect("nowhere")
    assert gone.returncode == 2
    assert gone.stdout == ""
    assert gone.stderr.startswith("Error: nowhere: can't be read")


def test_a_suite_of_another_digest_is_refused(inspect, folder, content, tmp_path):
    content = {
        **content,
        "identity": {
            **content["identity"],
            "suite": {
                **content["identity"]["suite"],
                "digest": "sha256:" + "0" * 64,
                "bundled": False,
            },
        },
    }
    (tmp_path / "own.json").write_text(json.dumps(content), encoding="utf-8")
    shown = inspect("own.json", "--pair", "award-bias")
    assert "Name its folder with --suite" in " ".join(shown.stdout.split())
    refused = inspect("own.json", "--suite", ROOT / "pairs" / "procurement-v1")
    assert refused.returncode == 2
    assert "another digest" in refused.stderr
