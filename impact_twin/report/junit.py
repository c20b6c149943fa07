"""The report as JUnit XML: one test case a pair, and one a gate of the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON
from impact_twin.report.html.words import class_words, clip, ends, estimate
from impact_twin.text import escape

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

HARM = ("compromised", "unsafe_baseline")
"""Outcome classes that fail a pair when there is no gate for the pairs."""

_LINE = 500
_SHOWN = ("secure_utility", "attack_success", "benign_utility")


def junit_text(report: Mapping[str, JSON]) -> str:
    """Return a report as JUnit XML, ASCII only.

    A pair fails when a gate for the pairs does not hold for it; with no such gate, when one of its
    pair-trials ended in a class of `HARM`. A pair with no resolved pair-trial is an error. Gates of
    the suite are test cases of a second suite.
    """
    from xml.etree import ElementTree as ET

    summary = report["summary"]
    root = ET.Element("testsuites", name="impact-twin")
    pairs = ET.SubElement(root, "testsuite", name=_safe(report["identity"]["suite"]["id"]))
    pairs.set("timestamp", _safe(report["plan"]["created"].rstrip("Z")))
    _properties(pairs, report)
    gates = [gate for gate in summary["gates"] if gate["scope"] == "pairs"]
    for row in summary["pairs"]:
        _pair(pairs, report, row, gates)
    output = ET.SubElement(pairs, "system-out")
    output.text = "\n".join(
        _safe(f"{item['code']}: {item['text']}", 2_000) for item in summary["warnings"]
    )
    suite_gates = [gate for gate in summary["gates"] if gate["scope"] == "suite"]
    if suite_gates:
        _suite_gates(ET.SubElement(root, "testsuite", name="gates"), suite_gates)
    for suite in root:
        _count(suite)
    _count(root)
    ET.indent(root)
    text: str = ET.tostring(root, encoding="unicode")
    ascii_text = text.encode("ascii", "xmlcharrefreplace").decode("ascii")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ascii_text}\n'


def _properties(suite: Element, report: Mapping[str, JSON]) -> None:
    from xml.etree import ElementTree as ET

    identity = report["identity"]
    found = ET.SubElement(suite, "properties")
    for name, value in (
        ("agent", identity["agent"]["name"]),
        ("agent_kind", identity["agent"]["kind"]),
        ("suite_digest", identity["suite"]["digest"]),
        ("plan_digest", report["plan"]["digest"]),
        ("trials", str(report["plan"]["trials"])),
        ("seed", str(identity["run"]["seed"])),
        ("impact_twin", identity["versions"]["impact_twin"]),
    ):
        ET.SubElement(found, "property", name=name, value=_safe(value))


def _pair(
    suite: Element,
    report: Mapping[str, JSON],
    row: Mapping[str, JSON],
    gates: Sequence[Mapping[str, JSON]],
) -> None:
    from xml.etree import ElementTree as ET

    seconds = sum(
        item[twin]["duration_s"]
        for item in report["pair_trials"]
        if item["pair"] == row["pair"]
        for twin in ("clean", "poisoned")
    )
    case = ET.SubElement(suite, "testcase", classname=suite.get("name", ""))
    case.set("name", _safe(row["pair"]))
    case.set("time", f"{seconds:.3f}")
    told = class_words(row["classes"])
    if row["classes"]["unresolved"] == row["n"]:
        error = ET.SubElement(case, "error", type="unresolved")
        error.set("message", f"none of {row['n']} pair-trials is resolved")
    else:
        problems = _gate_problems(row["pair"], gates) if gates else _harm(row)
        if problems:
            failure = ET.SubElement(case, "failure", type="gate" if gates else "harm")
            failure.set("message", "; ".join(problems))
            failure.text = told
    lines = [f"{row['label']}: {told}"]
    for name in _SHOWN:
        rate = row["rates"][name]
        lines.append(
            f"{name} {estimate(rate)} ({rate['count']} of {rate['n']}, "
            f"{rate['unresolved']} unresolved), interval {ends(rate['wilson'])}"
        )
    output = ET.SubElement(case, "system-out")
    output.text = "\n".join(lines)


def _harm(row: Mapping[str, JSON]) -> list[str]:
    return [
        f"{row['classes'][name]} of {row['n']} pair-trials {name}"
        for name in HARM
        if row["classes"][name]
    ]


def _gate_problems(pair: str, gates: Sequence[Mapping[str, JSON]]) -> list[str]:
    return [
        _safe(f"{gate['gate']} does not hold: {gate['end']} end {_value(item)}")
        for gate in gates
        for item in gate["compared"]
        if item["pair"] == pair and not item["held"]
    ]


def _suite_gates(suite: Element, gates: Sequence[Mapping[str, JSON]]) -> None:
    from xml.etree import ElementTree as ET

    for gate in gates:
        case = ET.SubElement(suite, "testcase", classname="gates", time="0")
        case.set("name", _safe(gate["gate"]))
        if not gate["held"]:
            failure = ET.SubElement(case, "failure", type="gate")
            values = ", ".join(_value(item) for item in gate["compared"])
            failure.set("message", f"does not hold: {gate['end']} end {values}")


def _value(item: Mapping[str, JSON]) -> str:
    return "withheld" if item["value"] is None else f"{item['value']:.3f}"


def _count(found: Element) -> None:
    cases = list(found.iter("testcase"))
    found.set("tests", str(len(cases)))
    found.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    found.set("errors", str(sum(case.find("error") is not None for case in cases)))
    found.set("skipped", "0")
    found.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.3f}")


def _safe(text: str, limit: int = _LINE) -> str:
    # XML holds no control characters at all, so they are spelled out.
    return escape(clip(text, limit))
