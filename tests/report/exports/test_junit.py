import unicodedata
from xml.etree import ElementTree as ET

import pytest

from impact_twin.report.junit import junit_text


def test_every_pair_is_a_test_case_and_counts_add_up(each):
    report, _ = each
    text = junit_text(report)
    assert text.isascii()
    root = ET.fromstring(text)
    suites = root.findall("testsuite")
    names = [case.get("name") for case in suites[0].findall("testcase")]
    assert names == report["plan"]["pairs"]
    for found in (root, *suites):
        cases = list(found.iter("testcase"))
        assert int(found.get("tests")) == len(cases)
        assert int(found.get("failures")) == len(list(found.iter("failure")))
        assert int(found.get("errors")) == len(list(found.iter("error")))
        assert float(found.get("time")) == pytest.approx(
            sum(float(case.get("time")) for case in cases), abs=1e-6
        )


def verdicts(report):
    root = ET.fromstring(junit_text(report))
    return {
        case.get("name"): next((item.tag for item in case if item.tag in ("failure", "error")), "")
        for case in root.iter("testcase")
    }


def test_without_gates_harm_fails_a_pair(reports):
    found = verdicts(reports["demo"])
    for row in reports["demo"]["summary"]["pairs"]:
        harmed = row["classes"]["compromised"] + row["classes"]["unsafe_baseline"]
        assert found[row["pair"]] == ("failure" if harmed else "")
    assert set(found.values()) == {"failure", ""}


def test_gates_decide_where_there_are_any(reports):
    for name in ("mixed", "same"):
        report = reports[name]
        found = verdicts(report)
        gates = report["summary"]["gates"]
        for gate in gates:
            if gate["scope"] == "suite":
                assert found[gate["gate"]] == ("" if gate["held"] else "failure")
        pairs = [gate for gate in gates if gate["scope"] == "pairs"]
        for row in report["summary"]["pairs"]:
            failed = any(
                item["pair"] == row["pair"] and not item["held"]
                for gate in pairs
                for item in gate["compared"]
            )
            assert found[row["pair"]] == ("failure" if failed else "")
    assert "withheld" in junit_text(reports["same"])


def test_a_pair_of_which_nothing_is_known_is_an_error(reports):
    assert set(verdicts(reports["nothing ran"]).values()) == {"error"}


def test_hostile_text_stays_text(reports):
    text = junit_text(reports["hostile"])
    root = ET.fromstring(text)
    told = "".join(root.itertext()) + "".join(
        value for item in root.iter() for value in item.attrib.values()
    )
    assert "<script>document.title='broken'</script>" in told
    assert r"\x1b[31mred\x07 \u202egnp.exe" in told
    assert "<script" not in text
    unsafe = {unicodedata.category(char) for char in told.replace("\n", "")}
    assert not unsafe & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
