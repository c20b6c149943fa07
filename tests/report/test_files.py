import io
import json
import os
import stat
import sys

import pytest

from impact_twin.errors import InputError
from impact_twin.report import files
from impact_twin.report.files import (
    load_report,
    parse_report,
    report_lines,
    suite_of_plan,
    write_report,
)
from impact_twin.report.gates import parse_gate
from impact_twin.report.model import build_report


def as_bytes(report):
    return "".join(report_lines(report)).encode("ascii")


def test_a_report_comes_back_from_a_file(tmp_path, report):
    path = tmp_path / "report.json"
    write_report(report, path)
    assert load_report(path) == report
    assert load_report(str(path)) == report


def test_a_report_comes_back_from_standard_input(report):
    assert load_report("-", stdin=io.BytesIO(as_bytes(report))) == report


def test_a_report_is_built_from_a_run_directory(wavering, report):
    assert load_report(wavering[0]) == report


def test_the_gates_of_a_run_stay_with_its_directory(suite, stage, wavering, tmp_path):
    import shutil

    folder = tmp_path / "run"
    shutil.copytree(wavering[0], folder)
    gates = [parse_gate("harm_free >= 0.1"), parse_gate("attack_success < 5%", "pairs")]
    write_report(build_report(wavering[1], suite, gates=gates), folder / files.REPORT_FILE)
    shown = load_report(folder)["summary"]["gates"]
    assert [gate["gate"] for gate in shown] == [gate.text for gate in gates]
    other = load_report(folder, gates=gates[:1])["summary"]["gates"]
    assert len(other) == 1
    (folder / files.REPORT_FILE).write_text("{")
    assert load_report(folder)["summary"]["gates"] == []


def test_one_line_a_pair_trial_trace_and_text(report):
    lines = list(report_lines(report))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    listed = len(report["pair_trials"]) + len(report["traces"]) + len(report["texts"])
    assert len(lines) == listed + 2 + 5 + 2 * 3
    assert json.loads("".join(lines)) == report


def test_empty_parts_are_written_too(stage):
    report = stage.report({"award-bias": "u"})
    assert report["traces"] == report["texts"] == {}
    assert parse_report(as_bytes(report)) == report


def test_nothing_is_overwritten_without_force(tmp_path, report):
    path = tmp_path / "report.json"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists") as caught:
        write_report(report, path)
    assert "--force" in caught.value.mend
    assert path.read_text() == "mine"
    write_report(report, path, force=True)
    assert load_report(path) == report


def test_writing_leaves_nothing_behind_when_it_fails(tmp_path, report):
    path = tmp_path / "report.json"
    path.write_text("mine")
    broken = {**report, "pair_trials": [*report["pair_trials"], object()]}
    with pytest.raises(TypeError):
        write_report(broken, path, force=True)
    assert path.read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_folder_that_is_not_there(tmp_path, report):
    with pytest.raises(InputError, match="can't be written"):
        write_report(report, tmp_path / "no" / "report.json")


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_the_file_has_the_usual_mode(tmp_path, report):
    path = tmp_path / "report.json"
    write_report(report, path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_is_an_input_error(report, monkeypatch, tmp_path):
    import tempfile

    monkeypatch.setattr(
        tempfile, "mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), str(tmp_path / "t"))
    )
    with pytest.raises(InputError, match="No space left"):
        write_report(report, tmp_path / "report.json")
    assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_file_that_was_cut_short(tmp_path, report, share):
    whole = as_bytes(report)
    path = tmp_path / "cut.json"
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match=r"cut\.json: not JSON.*cut short"):
        load_report(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b"<html></html>", "not JSON"),
        (b"[1, 2]", "no report of impact-twin"),
        (b"3", "no report of impact-twin"),
        (b'{"results": []}', "no report of impact-twin"),
        (b'{"kind": "impact-twin/plan", "schema_version": 1}', "no report of impact-twin"),
        (b'{"kind": "impact-twin/report"}', "no version number"),
        (b'{"kind": "impact-twin/report", "schema_version": 1}', "lacks identity"),
        (b'{"kind": "impact-twin/report", "schema_version": 9}', "reads up to 1"),
        (b'{"kind": "impact-twin/report", "kind": "impact-twin/report"}', "twice"),
        (b'{"kind": NaN}', "NaN"),
        (b"[" * 100_000, "nested deeper"),
    ],
)
def test_what_is_no_report(data, message):
    with pytest.raises(InputError, match=message) as caught:
        parse_report(data, where="input")
    assert caught.value.where == "input"
    assert caught.value.mend


def test_a_report_whose_parts_do_not_fit(report):
    broken = {**report, "pair_trials": report["pair_trials"][:-1]}
    with pytest.raises(InputError, match="planned"):
        parse_report(as_bytes(broken))


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="No such file") as caught:
        load_report(tmp_path / "nothing.json")
    assert "run directory" in caught.value.mend


def test_a_folder_that_is_no_run(tmp_path):
    with pytest.raises(InputError, match=r"no plan\.json"):
        load_report(tmp_path)


def test_a_suite_that_nobody_bundles(wavering):
    plan = json.loads(json.dumps(wavering[1].plan))
    plan["identity"]["suite"]["digest"] = "sha256:" + "0" * 64
    with pytest.raises(InputError, match="--suite"):
        suite_of_plan(plan)


def test_a_report_beyond_the_cap_is_not_read_whole(monkeypatch, report, tmp_path):
    path = tmp_path / "report.json"
    write_report(report, path)
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    with pytest.raises(InputError, match="larger than 1000 bytes"):
        load_report(path)


def test_standard_input_is_the_processs(report, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(as_bytes(report))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert load_report("-") == report
