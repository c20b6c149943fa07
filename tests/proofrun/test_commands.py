"""`submit` and `verify` as a user meets them: the real commands."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from impact_twin.canonical import digest_bytes

ROOT = Path(__file__).parents[2]
WHO = ("--submitter", "@somebody", "--source", "https://example.org/agent")


@pytest.fixture
def tool(tmp_path):
    def call(*arguments, env=None, stdin=None):
        clean = {name: value for name, value in os.environ.items() if name[:6] != "GITHUB"}
        return subprocess.run(
            [sys.executable, "-m", "impact_twin", *map(str, arguments)],
            cwd=tmp_path,
            env={**clean, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"}
            | (env or {}),
            input=stdin,
            capture_output=True,
            check=False,
            timeout=120,
        )

    return call


@pytest.fixture(scope="session")
def report_bytes(good_bytes):
    return json.dumps(json.loads(good_bytes)["report"]).encode()


def text(done):
    return done.stdout.decode() + done.stderr.decode()


def test_from_a_run_to_a_bundle_to_a_verdict(tool, tmp_path):
    run = tool("repeat", "--trials", "2", "--quiet", "--out", "run")
    assert run.returncode == 0, text(run)
    made = tool("submit", "run", *WHO, "--notes", "n\u202e", "--out", "mine.json")
    assert made.returncode == 0, text(made)
    shown = made.stdout.decode()
    assert "adds integrity, not certainty" in " ".join(shown.split())
    assert "self-attested" in shown
    assert "not eligible: The agent is a demo agent" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    data = (tmp_path / "mine.json").read_bytes()
    assert digest_bytes(data) in shown
    bundle = json.loads(data)
    assert bundle["report"] == json.loads((tmp_path / "run" / "report.json").read_bytes())
    assert bundle["ci"] is None

    held = tool("verify", "mine.json")
    assert held.returncode == 0, text(held)
    assert "mine.json: verified" in held.stdout.decode()
    assert "consistency, not occurrence" in " ".join(held.stdout.decode().split())
    assert all(len(line) <= 80 for line in held.stdout.decode().splitlines())
    again = tool("verify", "-", stdin=data)
    assert again.returncode == 0
    assert "-: verified" in again.stdout.decode()


def test_submit_to_standard_output_is_the_bundle_alone(tool, report_bytes):
    done = tool("submit", "-", *WHO, "--out", "-", stdin=report_bytes)
    assert done.returncode == 0, text(done)
    assert tool("verify", "-", stdin=done.stdout).returncode == 0
    assert b"self-attested" in done.stderr


def test_a_report_that_would_not_verify_is_refused_by_its_rung(tool, report_bytes, tmp_path):
    report = json.loads(report_bytes)
    report["summary"]["aggregate"]["rates"]["secure_utility"]["count"] += 1
    (tmp_path / "bad.json").write_text(json.dumps(report), encoding="utf-8")
    done = tool("submit", "bad.json", *WHO, "--out", "mine.json")
    assert done.returncode == 1
    assert "rung 4 (figures)" in done.stderr.decode()
    assert "secure_utility.count" in done.stderr.decode()
    assert not (tmp_path / "mine.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--submitter", "me", "--source", "https://a.example"), "--submitter"),
        (("--submitter", "@\u202e", "--source", "https://a.example"), "--submitter"),
        (("--submitter", "@me", "--source", "http://a.example"), "--source"),
        (("--submitter", "@me", "--source", "https://u:p@a.example"), "--source"),
        ((*WHO, "--notes", "n" * 2001), "--notes"),
        (("--submitter", "@me"), "--source"),
        ((), "--submitter"),
    ],
)
def test_submit_says_which_option_is_wrong(tool, report_bytes, tmp_path, options, words):
    done = tool("submit", "-", *options, "--out", "mine.json", stdin=report_bytes)
    assert done.returncode == 2, text(done)
    assert words in done.stderr.decode()
    assert "\u202e" not in text(done)
    assert not (tmp_path / "mine.json").exists()


def test_submit_overwrites_only_when_asked(tool, report_bytes, tmp_path):
    (tmp_path / "mine.json").write_text("mine", encoding="utf-8")
    done = tool("submit", "-", *WHO, "--out", "mine.json", stdin=report_bytes)
    assert done.returncode == 2
    assert "--force" in done.stderr.decode()
    assert (tmp_path / "mine.json").read_text(encoding="utf-8") == "mine"
    forced = tool("submit", "-", *WHO, "--out", "mine.json", "--force", stdin=report_bytes)
    assert forced.returncode == 0, text(forced)


def test_in_github_actions_the_run_is_recorded_as_a_claim(tool, report_bytes, tmp_path):
    environment = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_REPOSITORY": "owner/name",
        "GITHUB_WORKFLOW_REF": "owner/name/.github/workflows/x.yml@refs/heads/main",
        "GITHUB_RUN_ID": "123456",
        "GITHUB_RUN_ATTEMPT": "2",
        "GITHUB_RUN_NUMBER": "not a number",
        "GITHUB_SHA": "a" * 40,
        "RUNNER_ENVIRONMENT": "github-hosted",
    }
    done = tool("submit", "-", *WHO, "--out", "mine.json", stdin=report_bytes, env=environment)
    assert done.returncode == 0, text(done)
    assert json.loads((tmp_path / "mine.json").read_bytes())["ci"] == {
        "provider": "github-actions",
        "repository": "owner/name",
        "workflow_ref": "owner/name/.github/workflows/x.yml@refs/heads/main",
        "ref": "",
        "sha": "a" * 40,
        "event": "",
        "runner_environment": "github-hosted",
        "run_id": 123456,
        "run_attempt": 2,
        "run_number": None,
    }
    assert "without an attestation anybody can name one" in " ".join(text(done).split())


def test_one_bad_file_does_not_stop_the_others(tool, good_bytes, messy_bytes, tmp_path):
    (tmp_path / "good.json").write_bytes(good_bytes)
    (tmp_path / "messy.json").write_bytes(messy_bytes)
    (tmp_path / "bad\u202e\n.json").write_bytes(good_bytes[:-1])
    done = tool("verify", "good.json", "bad\u202e\n.json", "messy.json")
    assert done.returncode == 1
    shown = done.stdout.decode()
    assert "good.json: verified" in shown
    assert "bad\\u202e\\x0a.json: NOT VERIFIED" in shown
    assert "messy.json: verified" in shown
    assert "eligible" in shown
    assert "\u202e" not in shown


@pytest.mark.parametrize("bad", ["missing.json", "folder", "pipe", "nul"])
def test_a_path_that_cannot_be_opened_outranks_a_failure(tool, good_bytes, tmp_path, bad):
    (tmp_path / "good.json").write_bytes(good_bytes)
    (tmp_path / "bad.json").write_bytes(b"{}")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    name = "/dev/null" if bad == "nul" else bad
    done = tool("verify", "bad.json", name, "good.json")
    assert done.returncode == 2
    assert name in done.stderr.decode()
    assert "good.json: verified" in done.stdout.decode()
    assert "Traceback" not in text(done)


def test_json_says_everything(tool, good_bytes, tmp_path):
    (tmp_path / "good.json").write_bytes(good_bytes)
    (tmp_path / "bad.json").write_bytes(b"[]")
    done = tool("verify", "good.json", "bad.json", "missing.json", "--json")
    assert done.returncode == 2
    result = json.loads(done.stdout)
    assert result["kind"] == "impact-twin/verification"
    good, bad, missing = result["files"]
    assert (good["verified"], bad["verified"], missing["verified"]) == (True, False, False)
    assert good["bundle"] == digest_bytes(good_bytes)
    assert (good["eligible"], good["reasons"]) == (True, [])
    assert good["tier"]["name"] == "self-attested"
    assert good["submission"]["submitter"] == "@somebody"
    assert {check["rung"] for check in good["checks"]} == {1, 2, 3, 4, 5, 6}
    assert [c["name"] for c in bad["checks"] if c["status"] == "failed"] == ["schema"]
    assert "can't be read" in missing["error"]


@pytest.mark.parametrize("command", [("verify", "-"), ("import", "-"), ("report", "-")])
def test_a_closed_standard_input_is_an_input_error(tool, tmp_path, command):
    line = [sys.executable, "-m", "impact_twin", *command]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *line], capture_output=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2, text(done)
    assert "standard input" in text(done)
    assert "Traceback" not in text(done)


def test_attestations_that_a_glob_takes_along_are_left_out(tool, good_bytes, tmp_path):
    (tmp_path / "x.json").write_bytes(good_bytes)
    names = ("x.sigstore.json", "x.plan.sigstore.json")
    for name in (*names, "y.sigstore.json"):
        (tmp_path / name).write_bytes(b"{}")
    done = tool("verify", "x.json", *names)
    assert done.returncode == 0, text(done)
    assert all(f"{name}: left out" in done.stdout.decode() for name in names)
    assert json.loads(tool("verify", "x.json", *names, "--json").stdout)["left_out"] == [*names]
    # Without its bundle beside it, it is a file like any other.
    assert tool("verify", "x.json", "y.sigstore.json").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a.json", "--max-bytes", "0"),
        ("a.json", "--max-depth", "1000"),
        ("a.json", "--suite", "nowhere"),
        ("a.json", "--repository", "a/b"),
        ("a.json", "b.json", "--attestation", "a.json"),
        ("a.json", "--attestation", "missing.json"),
        ("a.json", "--attestation", "a.json", "--runner", "mine"),
    ],
)
def test_wrong_usage_exits_2(tool, tmp_path, arguments):
    (tmp_path / "a.json").write_bytes(b"{}")
    done = tool("verify", *arguments)
    assert done.returncode == 2, text(done)
    assert "Traceback" not in text(done)


def test_limits_can_be_changed(tool, good_bytes, tmp_path):
    (tmp_path / "good.json").write_bytes(good_bytes)
    small = tool("verify", "good.json", "--max-bytes", "1000")
    assert small.returncode == 1
    assert "larger than 1000 bytes" in small.stdout.decode()
    flat = tool("verify", "good.json", "--max-depth", "3")
    assert "nested deeper than 3" in flat.stdout.decode()


def test_an_attestation_that_is_none_fails_rung_7(tool, good_bytes, tmp_path):
    pytest.importorskip("sigstore")
    (tmp_path / "good.json").write_bytes(good_bytes)
    done = tool(
        "verify", "good.json", "--attestation", "good.json", "--repository", "a/b", "--json"
    )
    assert done.returncode == 1, text(done)
    (result,) = json.loads(done.stdout)["files"]
    assert not result["verified"]
    assert result["attestation"]["status"] == "failed"
    (check,) = [check for check in result["checks"] if check["rung"] == 7]
    assert check["status"] == "failed"
