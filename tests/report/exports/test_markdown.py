import re
import unicodedata

import pytest

from impact_twin.report.evidence import suite_of_report
from impact_twin.report.markdown import LEAST, LIMIT, code, markdown_text, prose


def test_it_fits_and_holds_no_unsafe_character(each):
    report, suite = each
    text = markdown_text(report, suite)
    assert len(text.encode()) <= LIMIT
    assert text.endswith("\n")
    unsafe = {unicodedata.category(char) for char in text.replace("\n", "")}
    assert not unsafe & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def test_every_table_has_rows_as_wide_as_its_head(each):
    report, suite = each
    for table in re.findall(r"(?:^\|.*\n)+", markdown_text(report, suite), re.MULTILINE):
        lines = table.splitlines()
        assert len(lines) > 2
        assert {line.count("|") for line in lines} == {lines[0].count("|")}


@pytest.mark.parametrize("limit", [0, LEAST, 6_000, 20_000])
def test_what_does_not_fit_is_left_out_whole(reports, limit):
    for name in ("mixed", "hostile", "long"):
        report = reports[name]
        text = markdown_text(report, suite_of_report(report), limit=limit)
        assert len(text.encode()) <= max(limit, LEAST)
        assert text.count("<details>") == text.count("</details>")
        whole = markdown_text(report, suite_of_report(report), limit=1_000_000)
        assert ("did not fit" in text) == (text != whole)


def spans_left_out(text):
    """The text without its code spans: there, nothing is live."""
    return re.sub(r"`[^`\n]*`", "", text)


def test_hostile_text_is_no_markup(reports):
    report = reports["hostile"]
    text = markdown_text(report, suite_of_report(report))
    assert text.count("`") % 2 == 0
    outside = spans_left_out(text)
    assert set(re.findall(r"<[^>]*>", outside)) <= {
        *("<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>")
    }
    for live in ("@everyone", "http://", "[link](", "*bold*", "`", "&amp;", "#1"):
        assert live not in re.sub(r"&#\d+;", "", outside), live
    assert r"\\x1b\[31mred" in outside


def test_code_and_prose_keep_what_they_hold():
    assert code("a_b*c*") == "`a_b*c*`"
    assert code("") == "`''`"
    assert code("`" * 5).count("`") == 2
    assert prose("3 of 5 cases. Read on.") == "3 of 5 cases. Read on."
    assert prose("WWW.x.example") == r"WWW\\x2ex.example"


def test_it_says_what_the_report_says(reports):
    report = reports["mixed"]
    text = markdown_text(report, suite_of_report(report))
    rate = report["summary"]["aggregate"]["rates"]["secure_utility"]
    assert f"| {rate['count']} | {rate['unresolved']} | {rate['n']} |" in text
    for row in report["summary"]["pairs"]:
        assert f"| `{row['pair']}` | {row['label']}" in text
    for item in report["summary"]["warnings"]:
        assert f"**{item['code']}**" in text
    assert "**failed**" in text
    assert "**No result.**" in markdown_text(reports["nothing ran"], None)


def test_the_last_look_of_a_stop_rule_is_told(reports):
    report = reports["mixed"]
    look = {"trial": 2, "interval": [0.25, 0.98], "verdict": "holds"}
    sequential = {"rule": "secure_utility >= `x`", "looks": [look]}
    report = {**report, "summary": {**report["summary"], "sequential": sequential}}
    told = "Stop rule `secure_utility >= \\x60x\\x60`: holds at trial 2"
    assert told in markdown_text(report, None)
