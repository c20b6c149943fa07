"""A foreign report for a terminal: figures and pairs. Text from files is escaped here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.foreign_figures import outcome_of
from impact_twin.report.strips import clip, draw_interval, wrap
from impact_twin.text import escape

_LABEL = 26
_STRIP = 40
_NARROWEST = 12
_LONGEST = 2_000
_MARKS = {"resisted": "●o", "harmed": "✗X", "failed": "◇d", "error": "??"}


def render_foreign(report: Mapping[str, JSON], *, width: int = 80, ascii: bool = False) -> str:
    """Return a foreign report as text, ending with a newline.

    Args:
        report: A foreign report.
        width: Columns to keep to, >= 40.
        ascii: Draw with ASCII only.
    """
    return "\n".join(line.rstrip() for line in _lines(report, width, ascii)) + "\n"


def head_lines(report: Mapping[str, JSON], width: int) -> Iterator[str]:
    """Yield what it is, where it comes from, and what it is worth."""
    identity, origin = report["identity"], report["origin"]
    n = report["summary"]["n"]
    yield from paragraph(
        f"{identity['agent']}: {origin['format']} v{origin['format_version']} of {origin['tool']}, "
        f"imported; {identity['suite']}, {report['trials']} trials of {len(report['pairs'])} "
        f"pairs, n {n}, {identity['isolation']}",
        width,
    )
    bundle = origin["bundle"]
    if bundle is not None:
        yield from paragraph(
            f"Its bundle claims: by {bundle['submitter']}, {bundle['source']}, "
            f"{bundle['created']}, {origin['tool']} {bundle['package_version']}, "
            f"{bundle['attestation']}.",
            width,
        )
    yield from paragraph(report["statement"], width, "! ")
    for note in report["notes"]:
        yield from paragraph(note, width, "! ")


def paragraph(text: str, width: int, mark: str = "") -> Iterator[str]:
    """Yield untrusted text as lines, escaped, clipped where it is very long."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"
    for line in wrap(escape(shown), width - len(mark)):
        yield f"{mark}{line}"
        mark = " " * len(mark)


def mark_of(row: Mapping[str, JSON], ascii_only: bool) -> str:
    """Return the mark of a pair-trial."""
    if row["attack_resisted"]:
        kind = "resisted"
    elif row["poisoned"]["side_effects"]:
        kind = "harmed"
    elif row["clean"]["error"] is not None or row["poisoned"]["error"] is not None:
        kind = "error"
    else:
        kind = "failed"
    return _MARKS[kind][ascii_only]


def legend(ascii_only: bool) -> str:
    """Return what the marks mean."""
    words = {
        "resisted": "claimed resisted",
        "harmed": "not, with a side effect",
        "failed": "not, without one",
        "error": "not, a case ended in an error",
    }
    return ", ".join(f"{_MARKS[kind][ascii_only]} {text}" for kind, text in words.items())


def pair_lines(
    report: Mapping[str, JSON], item: Mapping[str, JSON], width: int, ascii_only: bool
) -> Iterator[str]:
    """Yield a pair's trials in order, its label, and how often each outcome was claimed."""
    rows = [row for row in report["pair_trials"] if row["pair"] == item["pair"]]
    yield from paragraph(f"{item['pair']}: {label_of(item)}", width)
    marks = "".join(mark_of(row, ascii_only) for row in rows)
    room = min(_STRIP, width - 2)
    # Long runs are cut, not compressed; the counts below hold all of them.
    more = "" if len(marks) <= room else f" (the first {room} of {len(marks)})"
    yield from paragraph(marks[:room] + more, width, "  ")
    for label, count in sorted(item["outcomes"].items(), key=lambda pair: -pair[1]):
        yield from paragraph(f"{count} {label}", width, "  ")
    traces = item["distinct_traces"]
    disagree = item["disagreement"]
    words = f"distinct traces: clean {traces['clean']}, poisoned {traces['poisoned']}"
    if disagree is not None:
        words += f"; two runs disagree with probability {disagree:.3f}"
    yield from paragraph(words, width, "  ")


def label_of(item: Mapping[str, JSON]) -> str:
    """Return a pair's label, a stable one with what it can't exclude."""
    bound = item["other_outcome_up_to"]
    if bound is None:
        return str(item["label"])
    return f"{item['label']} (any other outcome up to {100 * bound:.1f} %, all pairs together)"


def case_words(case: Mapping[str, JSON]) -> str:
    """Return what a case claims, in one line."""
    words = ["mission completed" if case["mission_completed"] else "mission not completed"]
    words.append(f"recommends {case['decision'] or 'nobody'} (expected {case['expected']})")
    words += [f"side effect {name}" for name in case["side_effects"]]
    if case["error"] is not None:
        words.append(f"error {case['error']}")
    return ", ".join(words)


def outcome_words(row: Mapping[str, JSON]) -> str:
    """Return that tool's label of a pair-trial, with what contradicts it."""
    doubts = f" (contradicted: {', '.join(row['doubts'])})" if row["doubts"] else ""
    return f"{outcome_of(row)}{doubts}"


def _lines(report: Mapping[str, JSON], width: int, ascii_only: bool) -> Iterator[str]:
    yield from head_lines(report, width)
    yield ""
    yield f"{100 * report['confidence']:g} % Wilson intervals"
    summary = report["summary"]
    for name, rate in summary["rates"].items():
        yield from _rate(name, rate, width, ascii_only)
    yield ""
    for item in summary["pairs"]:
        yield from pair_lines(report, item, width, ascii_only)
    yield ""
    yield from paragraph(legend(ascii_only), width)
    usage = summary["usage"]
    if usage["total_tokens"] is not None:
        yield from paragraph(
            f"Usage, as {usage['reported_cases']} of {usage['total_cases']} cases claim: "
            f"{usage['total_tokens']} tokens",
            width,
        )


def _rate(name: str, rate: Mapping[str, JSON], width: int, ascii_only: bool) -> Iterator[str]:
    lo, hi = rate["wilson"]
    figures = f"{100 * lo:.1f}-{100 * hi:.1f} % {rate['count']}/{rate['n']}"
    label = clip(name.replace("_", " "), _LABEL - 1, ascii_only)
    room = width - _LABEL - len(figures) - 1
    if room < _NARROWEST:
        yield from paragraph(f"{label}: {figures}", width)
    else:
        drawn = draw_interval(rate["wilson"], rate["rate"], min(room, 32), ascii_only)
        yield f"{label:<{_LABEL}}{drawn} {figures}"
    if rate["errors"]:
        low, high = rate["wilson_errors_unknown"]
        yield from paragraph(
            f"{100 * low:.1f}-{100 * high:.1f} % with errors as unknown "
            f"({rate['errors']} of {rate['n']})",
            width,
            "    ",
        )
