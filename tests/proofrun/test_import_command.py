"""The command `import`, and what report and inspect show of its file."""

import gzip
import json
import os
from pathlib import Path

import click.testing
import pytest

from impact_twin.cli.import_ import import_, inspect_foreign, report_foreign
from impact_twin.errors import CheckFailedError, InputError

DATA = Path(__file__).parent / "data" / "repeattwin"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "theirs.json"
    path.write_bytes(gzip.decompress((DATA / "report.json.gz").read_bytes()))
    return path


def run(*arguments, **options):
    return click.testing.CliRunner().invoke(
        import_, [str(item) for item in arguments], standalone_mode=False, **options
    )


def test_it_shows_the_report_and_writes_it_once(source, tmp_path):
    out = tmp_path / "foreign.json"
    done = run(source, "--out", out)
    assert done.exception is None
    assert "attack resistance" in done.stdout
    assert json.loads(out.read_text())["kind"] == "impact-twin/foreign-report"
    assert isinstance(run(source, "--out", out).exception, InputError)
    assert run(source, "--out", out, "--force").exception is None


def test_standard_input_and_output(source):
    done = run("-", "--out", "-", input=source.read_bytes())
    assert done.exception is None
    assert json.loads(done.stdout)["trials"] == 5


def test_a_false_figure_is_exit_code_1_and_a_bad_path_2(source, tmp_path):
    report = json.loads(source.read_text())
    report["summary"]["harm_free"]["upper"] = 0.99
    source.write_text(json.dumps(report))
    failed = run(source).exception
    assert isinstance(failed, CheckFailedError)
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "none", tmp_path / "pipe", tmp_path):
        assert isinstance(run(name).exception, InputError)
    assert isinstance(run(source, "--max-bytes", "10").exception, InputError)


def test_report_and_inspect_show_a_foreign_report(source, tmp_path, capsys):
    out = tmp_path / "foreign.json"
    run(source, "--out", out)
    report = json.loads(out.read_text())
    copy = tmp_path / "copy.json"
    report_foreign(report, {"json": str(copy)}, plain=True)
    assert json.loads(copy.read_text()) == report
    assert "37.1-73.3" in capsys.readouterr().out
    asked = {"trial": None, "trials": None, "plain": True}
    inspect_foreign(report, pair=None, as_json=False, **asked)
    assert "variable" in capsys.readouterr().out
    inspect_foreign(report, pair="procure-decision-bias", as_json=True, **asked)
    assert len(json.loads(capsys.readouterr().out)["pairs"]) == 1


def test_what_a_foreign_report_cannot_give_is_refused(source, tmp_path):
    out = tmp_path / "foreign.json"
    run(source, "--out", out)
    report = json.loads(out.read_text())
    with pytest.raises(InputError, match="--sarif"):
        report_foreign(report, {"sarif": "x"}, plain=True)
    asked = {"pair": None, "trial": None, "trials": None, "as_json": False, "plain": True}
    with pytest.raises(InputError, match="--twin"):
        inspect_foreign(report, **asked, ours_only=["--twin"])
