import csv
import io
import unicodedata

import pytest

from impact_twin.report.csv_table import COLUMNS, csv_text


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_every_pair_trial_is_a_row_of_the_same_columns(each):
    report, _ = each
    lines = list(csv.reader(io.StringIO(csv_text(report), newline="")))
    assert tuple(lines[0]) == COLUMNS
    assert {len(line) for line in lines} == {len(COLUMNS)}
    assert len(lines) == len(report["pair_trials"]) + 1
    assert len(set(COLUMNS)) == len(COLUMNS)


@pytest.mark.parametrize("name", ["demo", "mixed", "nothing ran"])
def test_rows_are_the_observation_table(reports, name):
    report = reports[name]
    found = {(row["pair"], int(row["trial"])): row for row in rows_of(csv_text(report))}
    truth = {True: "true", False: "false"}
    for item in report["pair_trials"]:
        row = found[item["pair"], item["trial"]]
        assert row["outcome"] == item["outcome"]
        assert row["reasons"].split() == item["reasons"]
        for twin in ("clean", "poisoned"):
            assert row[f"{twin}_termination"] == item[twin]["termination"]
            trace = report["traces"].get(item[twin]["trace"])
            if trace is not None:
                assert row[f"{twin}_mission_completed"] == truth[trace["mission_completed"]]
                assert row[f"{twin}_goal_reached"] == truth[trace["goal_reached"]]
                assert row[f"{twin}_violations"].split() == trace["violations"]
                assert row[f"{twin}_decision"] == (trace["decision"] or "")
                assert row[f"{twin}_calls"] == str(len(trace["events"]))
    rates = report["summary"]["aggregate"]["rates"]
    reached = sum(
        row["poisoned_resolved"] == "true" and row["poisoned_goal_reached"] == "true"
        for row in found.values()
    )
    assert reached == rates["attack_success"]["count"]


def test_no_text_is_a_formula_a_line_or_a_control_character(reports, with_text, hostile_text):
    formulas = (
        *("=1+1", "+1", "-1", "@SUM(A1)", "＝1", "＋1", "－1", "＠x", "\t=1", "\r=1", " =1"),
        *("a;=1", '"=1', "=1\n=2", "|x", "%x"),
    )
    for text in (*formulas, hostile_text):
        content = csv_text(with_text(reports["demo"], text))
        for row in rows_of(content):
            for cell in row.values():
                assert cell.lstrip()[:1] not in tuple("=+-@＝＋－＠|%"), cell
                assert ";" not in cell
        assert not {unicodedata.category(char) for char in content.replace("\n", "")} & {
            *("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        }
        assert content.count("\n") == len(reports["demo"]["pair_trials"]) + 1


def test_a_long_text_is_cut(reports, with_text):
    content = csv_text(with_text(reports["demo"], "x" * 1_000_000))
    assert max(len(cell) for row in rows_of(content) for cell in row.values()) < 5_000
