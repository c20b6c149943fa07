import json
import sys

import pytest
from click.testing import CliRunner

from impact_twin.cli.audit import audit
from impact_twin.errors import CheckFailedError, InputError

GPT = ["--configuration", "gpt-4o-2024-05-13-t*", "--injection-task", "injection_task_0"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        return CliRunner().invoke(audit, list(map(str, arguments)))

    return invoke


def assert_plain(text):
    assert text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


@pytest.mark.parametrize("command", [[], ["rules"], ["records"], ["exclusions"]])
def test_help_is_short_and_plain(run, command):
    done = run(*command, "--help")
    assert done.exit_code == 0
    assert_plain(done.output)


def test_rules_are_described_stored_and_compared(run, tmp_path, survey, documented):
    (tmp_path / "start.json").write_text(json.dumps(survey["start"]))
    done = run(
        *("rules", "--against", "start.json", "--save", "s.json"),
        *("--html", "r.html", "--json", "r.json"),
    )
    assert done.exit_code == 0, done.exception
    assert_plain(done.output)
    assert "892 rules (7 benchmark versions, 4" in done.output
    assert "0 rules of 0 tasks changed" in done.output
    assert documented("rules") <= set(done.output.splitlines())
    assert "changes 32 rules of 8 tasks." in done.output
    assert "overwrote another one in the same slot: 2." in done.output
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["if_loaded"]["rebuilt"]["changed_tasks"] == 8
    assert json.loads((tmp_path / "s.json").read_text()) == report["snapshot"] == survey["start"]
    assert (tmp_path / "r.html").read_text().count('scope="row"') > 892


def test_a_changed_rule_ends_with_1_and_is_named(run, tmp_path, survey):
    (tmp_path / "rebuilt.json").write_text(json.dumps(survey["rebuilt"]))
    done = run("rules", "--against", "rebuilt.json", "--benchmark-version", "v1")
    assert isinstance(done.exception, CheckFailedError)
    assert done.exception.exit_code == 1
    assert_plain(done.output)
    assert "1 rule of 1 task changed under an unchanged version name." in done.output
    assert "user_task_13" in done.output
    assert "124 rules (1 benchmark version, 4" in done.output


def test_records_are_compared(run, excerpt_folder, tmp_path):
    done = run(
        *("records", excerpt_folder, "--other-version", "v1.1.2"),
        *("--json", "r.json", "--html", "r.html"),
    )
    assert done.exit_code == 0, done.exception
    assert_plain(done.output)
    assert "6 records saved as failed attacks whose tool results show" in done.output
    assert "4 fail under the loaded rule and pass under that of v1.1.2" in done.output
    value = json.loads((tmp_path / "r.json").read_text())
    assert value["to_look_at"] == {"count": 6, "explained_by_other_rule": 4}
    assert "<script" not in (tmp_path / "r.html").read_text()


def test_exclusions_are_shown(run, excerpt_folder):
    done = run("exclusions", excerpt_folder, *GPT, "--json", "-")
    assert done.exit_code == 0, done.exception
    value = json.loads(done.output)
    assert value["records"] == 6
    assert value["not_selected"] == 12
    assert [item["reversed_by_filter"] for item in value["orders"]] == [False]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["rules", "--against", "nowhere.json"], "can't be read"),
        (["rules", "--save", "there.json"], "exists"),
        (["rules", "--html", "no/such/folder.html"], "is not a folder"),
        (["rules", "--json", "-", "--html", "-"], "both would go to standard output"),
        (["rules", "--json", "a.json", "--save", "a.json"], "both would go to a.json"),
        (["records", "nowhere"], "can't be read"),
        (["records", "there.json", "--json", "there.json"], "exists"),
        (["records", "there.json"], "not one whole tar archive"),
        (["exclusions", "empty"], "no record is selected"),
        (["exclusions", "empty", "--filter", "no-error", "--tool", "x"], "--tool belongs"),
    ],
)
def test_what_can_t_work_is_refused_before_anything_is_loaded(
    run, tmp_path, monkeypatch, arguments, why
):
    (tmp_path / "there.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    done = run(*arguments)
    assert isinstance(done.exception, InputError), done.exception
    assert why in done.exception.line()
    assert (tmp_path / "there.json").read_text() == "{}"
