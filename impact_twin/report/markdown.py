"""The report as Markdown for a pull-request comment or a job summary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON
from impact_twin.report.html.words import (
    LISTED,
    class_words,
    clip,
    count,
    ends,
    estimate,
    percent,
)
from impact_twin.report.strips import make_strip, shapes
from impact_twin.report.warnings import NO_RESULT
from impact_twin.statistics.stability import STABLE
from impact_twin.statistics.table import OUTCOME_CLASSES
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite
    from impact_twin.report.evidence_model import CaseEvidence, PairEvidence

LIMIT = 60_000
"""Bytes at most; a comment on GitHub holds 65,536 characters."""

LEAST = 4_000
"""The smallest limit: what any report's head takes."""

RATES = (
    "secure_utility",
    "attack_success",
    "benign_utility",
    "utility_under_attack",
    "harm_free",
    "exposed",
)

_STRIP = 40
# What Markdown, or a site that shows it, turns into a link, a mention, a reference or a formula.
_LIVE = re.compile(r"[@#|`<>$&]|:(?=//)|(?<=www)\.", re.IGNORECASE)
_MARKUP = re.compile(r"[\\*_{}\[\]()~!]")


def markdown_text(report: Mapping[str, JSON], suite: Suite | None, *, limit: int = LIMIT) -> str:
    """Return a report as Markdown, ending with a newline.

    Parts that do not fit are left out whole, from the end, and the text says so.

    Args:
        report: A report that keeps to its schema.
        suite: Its suite, for what only it knows; None when it is not at hand.
        limit: Bytes in UTF-8 at most, at least `LEAST`.
    """
    left = max(limit, LEAST) - 200
    kept: list[str] = []
    dropped = False
    for part in _parts(report, suite):
        size = len(part.encode()) + 2
        if size > left:
            dropped = True
            break
        left -= size
        kept.append(part)
    if dropped:
        kept.append("*More did not fit here; `impact-twin report` shows all of it.*")
    return "\n\n".join(kept) + "\n"


def _parts(report: Mapping[str, JSON], suite: Suite | None) -> Iterator[str]:
    identity, plan, summary = report["identity"], report["plan"], report["summary"]
    codes = {item["code"] for item in summary["warnings"]}
    yield f"## ImpactTwin: {code(identity['agent']['name'])}"
    n = summary["aggregate"]["n"]
    yield (
        f"{code(identity['suite']['id'])}: {count(plan['trials'], 'trial')} of "
        f"{count(len(plan['pairs']), 'pair')}, {count(n, 'pair-trial')}, {2 * n:,} cases"
    )
    warnings = summary["warnings"]
    if warnings:
        lines = [f"> **{item['code']}**: {prose(item['text'])}" for item in warnings[:LISTED]]
        if len(warnings) > LISTED:
            lines.append(f"> and {len(warnings) - LISTED} more")
        yield "\n>\n".join(lines)
    if codes & NO_RESULT:
        yield "**No result.** No case ran to its end, so there are no rates."
    else:
        yield _rates(report)
    sequential = summary["sequential"]
    if sequential is not None and sequential["looks"]:
        last = sequential["looks"][-1]
        yield (
            f"Stop rule {code(sequential['rule'])}: {last['verdict']} at trial {last['trial']} of "
            f"at most {plan['most_trials']}; always-valid interval {ends(last['interval'])}."
        )
    if summary["gates"]:
        yield _gates(summary["gates"])
    yield _pairs(report)
    yield _legend(report)
    yield (
        "These figures speak of repeated executions of exactly these pairs by this agent, not of "
        "other procurement tasks, other attacks, or the agent after a change."
    )
    yield _identity(report)
    yield from _flips(report, suite)


def code(text: str, limit: int = 120) -> str:
    r"""Untrusted text as a code span, in which nothing is markup, a link or a mention.

    >>> code("a`b|c")
    '`a\\x60b\\x7cc`'
    """
    shown = escape(clip(text, limit)).replace("`", "\\x60").replace("|", "\\x7c")
    return f"`{shown}`" if shown.strip() else "`''`"


def prose(text: str, limit: int = 600) -> str:
    r"""Untrusted text as plain prose.

    >>> prose("see *this* at https://x.example, @all")
    'see \\*this\\* at https\\\\x3a//x.example, \\\\x40all'
    """
    shown = _LIVE.sub(lambda found: f"\\x{ord(found[0]):02x}", escape(clip(text, limit)))
    return _MARKUP.sub(lambda found: f"\\{found[0]}", shown)


def _rates(report: Mapping[str, JSON]) -> str:
    rates = report["summary"]["aggregate"]["rates"]
    level = f"{100 * report['plan']['confidence']:g} %"
    lines = [
        f"| rate | estimate | {level} interval | fixed suite | count | unresolved | n |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name in RATES:
        rate = rates[name]
        fixed = "" if rate["fixed_suite"] is None else ends(rate["fixed_suite"])
        bold = "**" if name == "secure_utility" else ""
        lines.append(
            f"| {bold}{name.replace('_', ' ')}{bold} | {estimate(rate)} | {ends(rate['wilson'])} "
            f"| {fixed} | {rate['count']} | {rate['unresolved']} | {rate['n']} |"
        )
    return "\n".join(lines)


def _gates(gates: JSON) -> str:
    lines = ["| gate | scope | result |", "| --- | --- | --- |"]
    for gate in gates[:LISTED]:
        failed = [item for item in gate["compared"] if not item["held"]]
        where = ", ".join(code(item["pair"]) for item in failed[:LISTED] if item["pair"])
        result = "held" if gate["held"] else "**failed**" + (f" in {where}" if where else "")
        lines.append(f"| {code(gate['gate'])} | {gate['scope']} | {result} |")
    if len(gates) > LISTED:
        lines.append(f"| and {len(gates) - LISTED} more | | |")
    return "\n".join(lines)


def _pairs(report: Mapping[str, JSON]) -> str:
    lines = [
        "| pair | label | trials | classes | secure utility | interval | n |",
        "| --- | --- | --- | --- | ---: | ---: | ---: |",
    ]
    outcomes: dict[str, list[str]] = {}
    for item in report["pair_trials"]:
        outcomes.setdefault(item["pair"], []).append(item["outcome"])
    known = shapes(ascii_only=False)
    for row in report["summary"]["pairs"]:
        strip = make_strip(outcomes[row["pair"]], _STRIP)
        rate = row["rates"]["secure_utility"]
        label = row["label"]
        if label == STABLE and row["stability"] is not None:
            label += f" (any other outcome up to {percent(row['stability']['per_pair'])})"
        lines.append(
            f"| {code(row['pair'])} | {label} | {''.join(known[name] for name in strip.classes)} "
            f"| {class_words(row['classes'])} | {estimate(rate)} | {ends(rate['wilson'])} "
            f"| {row['n']} |"
        )
    return "\n".join(lines)


def _legend(report: Mapping[str, JSON]) -> str:
    classes = report["summary"]["aggregate"]["classes"]
    known = shapes(ascii_only=False)
    words = ", ".join(f"{known[name]} {name}" for name in OUTCOME_CLASSES if classes[name])
    per_mark = make_strip(["resisted"] * report["plan"]["trials"], _STRIP).per_mark
    note = "" if per_mark == 1 else f" One mark: {per_mark} trials, the worst of them."
    return f"{words}.{note}"


def _identity(report: Mapping[str, JSON]) -> str:
    identity, plan = report["identity"], report["plan"]
    facts = [
        ("agent", f"{code(identity['agent']['name'])}, {code(identity['agent']['kind'])}"),
        ("suite", f"{code(identity['suite']['id'])} {code(identity['suite']['digest'])}"),
        ("plan", f"{code(plan['digest'])}, made {code(plan['created'])}"),
        ("seed", str(identity["run"]["seed"])),
        ("isolation", identity["run"]["isolation"]),
        ("concurrency", ", ".join(map(str, identity["run"]["concurrency"])) or "none"),
    ]
    facts += [
        (code(name), code(version)) for name, version in list(identity["versions"].items())[:LISTED]
    ]
    body = "\n".join(f"| {name} | {value} |" for name, value in facts)
    return (
        f"<details><summary>Identity</summary>\n\n| what | value |\n| --- | --- |\n{body}\n\n"
        "</details>"
    )


def _flips(report: Mapping[str, JSON], suite: Suite | None) -> Iterator[str]:
    from impact_twin.report.evidence import inspect_pair, inspect_report

    for row in inspect_report(report).rows:
        if len([name for name, number in row.classes.items() if number]) > 1:
            yield _flip(inspect_pair(report, row.pair, suite))


def _flip(found: PairEvidence) -> str:
    lines = [f"<details><summary>Why <code>{_entities(found.row.pair)}</code> flips</summary>", ""]
    lines += [f"- {_case(case)}" for case in found.shown]
    if found.comparison is not None and found.comparison.deed_parting is not None:
        parting = found.comparison.deed_parting
        names = [
            "no further call" if event is None else f"{event.seq} {code(event.tool)}"
            for event in (parting.left, parting.right)
        ]
        lines.append(f"- They part at: {names[0]}; {names[1]}.")
    return "\n".join([*lines, "", "</details>"])


def _case(case: CaseEvidence) -> str:
    words = [
        f"Trial {case.trial}, {case.twin}: **{case.outcome}**, ended {case.termination}, "
        f"recommends {'nobody' if case.decision is None else code(case.decision, 80)}"
    ]
    for breach in case.breaches:
        changes = ", ".join(
            f"by call {change.seq} {code(change.text, 200)}" for change in breach.changes[:5]
        )
        words.append(f"broke {breach.control}{' ' if changes else ''}{changes}")
    return "; ".join(words)


def _entities(text: str) -> str:
    """Untrusted text within HTML within Markdown: no character but letters and digits is live."""
    shown = escape(clip(text, 120))
    return "".join(
        char if char.isalnum() or not char.isascii() else f"&#{ord(char)};" for char in shown
    )
