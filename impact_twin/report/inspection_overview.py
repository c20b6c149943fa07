"""The overview of a report's pairs: which vary, which are stable, and what that may hide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from impact_twin.report.evidence_model import Inspection, PairRow
from impact_twin.report.inspection_page import Page, count, painted
from impact_twin.report.strips import cells, clip, make_strip, shapes, wrap
from impact_twin.report.warnings import NO_RESULT
from impact_twin.statistics.stability import STABLE, STABLE_MINIMUM, UNDETERMINED, VARIABLE
from impact_twin.statistics.table import OUTCOME_CLASSES

_SECTIONS = {
    VARIABLE: "Variable: more than one outcome class occurred (most variable first)",
    STABLE: "Stable: one outcome class only, and what that can't exclude",
    UNDETERMINED: f"Undetermined: fewer than {STABLE_MINIMUM} trials, or some are unresolved",
}
_NAME = 24
_LEAST_CLASSES = 20
_WIDEST_STRIP = 40
_FIGURES = 39


def overview_lines(found: Inspection, page: Page) -> Iterator[str]:
    """Yield the overview, line by line."""
    agent = page.name(found.agent, page.width - 12)
    yield f"{page.paint.bold('ImpactTwin')}  {page.paint.bold(agent)}"
    facts = f"{page.name(found.suite, 40)}, {count(found.trials, 'trial')} of each pair"
    yield from wrap(facts, page.width)
    for item in found.warnings:
        grave = item["code"] in NO_RESULT
        words = page.safe(f"NO RESULT. {item['text']}" if grave else item["text"])
        style = page.paint.bad if grave else page.paint.doubt
        for line in page.words(f"! {words}", page.width, hang=2, style=style):
            yield painted(line)
    for label, title in _SECTIONS.items():
        rows = [row for row in found.rows if row.label == label]
        if rows:
            yield from page.head(title)
            yield from (_table if page.columns else _list)(rows, page, found.confidence)
    if not found.rows:
        yield ""
        yield "No pair has a trial of that class."
    yield from _foot(found, page)


def pair_figures(row: PairRow, page: Page, confidence: float) -> Iterator[str]:
    """Yield a pair's strip, classes and figures as lines."""
    yield "  " + page.strip(make_strip(row.outcomes, page.width - 2).classes)
    if row.n > page.width - 2:
        per_mark = make_strip(row.outcomes, page.width - 2).per_mark
        yield from _plain(f"One mark: {per_mark} trials, the worst of them.", page)
    yield from _plain(_classes(row.classes), page)
    if row.label == STABLE:
        yield from _plain(_bound(row, confidence), page)
    elif row.disagreement_bounds is not None:
        yield from _plain(f"Two runs disagree with probability {_disagreement(row)}.", page)
    yield from _plain(
        f"Distinct decisions: {_twins(row.distinct_decisions)}. "
        f"Distinct traces: {_twins(row.distinct_traces)}.",
        page,
    )


def legend(outcomes: Mapping[str, int], page: Page) -> Iterator[str]:
    """Yield what the marks mean, of the classes that occurred."""
    known = shapes(page.ascii)
    line = ""
    for name in OUTCOME_CLASSES:
        if outcomes.get(name):
            item = f"{known[name]} {name}"
            if line and cells(line) + len(item) + 2 > page.width:
                yield line
                line = ""
            line += f"  {item}" if line else item
    yield line


def _list(rows: list[PairRow], page: Page, confidence: float) -> Iterator[str]:
    for row in rows:
        yield page.paint.bold(page.name(row.pair, page.width))
        yield from pair_figures(row, page, confidence)


def _table(rows: list[PairRow], page: Page, confidence: float) -> Iterator[str]:
    strip = min(max(14, *(row.n for row in rows)), _WIDEST_STRIP)
    strip = min(strip, page.width - _NAME - 1 - _FIGURES - _LEAST_CLASSES)
    room = page.width - _NAME - strip - 1 - _FIGURES - 1
    shown = any(row.label != STABLE for row in rows)
    yield page.paint.faint(
        f"{'pair':<{_NAME}}{'trials':<{strip}} {'classes':<{room}} "
        f"{'disagreement' if shown else '':<13}{'decisions c/p':<15}{'traces c/p':<11}".rstrip()
    )
    for row in rows:
        marks = make_strip(row.outcomes, strip)
        classes = wrap(_classes(row.classes), room)
        if row.label == STABLE:
            classes += wrap(_bound(row, confidence), room)
        name = page.name(row.pair, _NAME - 2)
        head = page.paint.bold(name) + " " * (_NAME - cells(name))
        drawn = page.strip(marks.classes) + " " * (strip - len(marks.classes))
        number = "" if row.label == STABLE else _disagreement(row)
        decisions = f"{row.distinct_decisions['clean']} / {row.distinct_decisions['poisoned']}"
        traces = f"{row.distinct_traces['clean']} / {row.distinct_traces['poisoned']}"
        figures = f"{number:<13}{decisions:<15}{traces}".rstrip()
        yield f"{head}{drawn} {classes[0]:<{room}} {figures}"
        for line in classes[1:]:
            yield " " * (_NAME + strip + 1) + line
        if marks.per_mark > 1:
            note = f"One mark: {marks.per_mark} trials, the worst of them."
            yield " " * _NAME + clip(note, page.width - _NAME, page.ascii)


def _foot(found: Inspection, page: Page) -> Iterator[str]:
    yield ""
    counts: dict[str, int] = {}
    for row in found.rows:
        for name, number in row.classes.items():
            counts[name] = counts.get(name, 0) + number
    if any(counts.values()):
        yield from legend(counts, page)
    if page.columns:
        yield from _plain("c/p: clean runs / poisoned runs.", page, indent=0)
    if found.rows:
        pair = page.name(found.rows[0].pair, 60)
        yield from _plain(f"See why a pair flips: --pair {pair}", page, indent=0)


def _classes(classes: Mapping[str, int]) -> str:
    found = [(number, name) for name, number in classes.items() if number]
    found.sort(key=lambda item: (-item[0], OUTCOME_CLASSES.index(item[1])))
    return ", ".join(f"{number} {name}" for number, name in found)


def _disagreement(row: PairRow) -> str:
    bounds = row.disagreement_bounds
    if bounds is None:
        return "none"
    if bounds[0] != bounds[1]:
        return f"{bounds[0]:.2f}-{bounds[1]:.2f}"
    return f"{bounds[0]:.2f}"


def _bound(row: PairRow, confidence: float) -> str:
    if row.stability is None:
        return "Repeats add no information: what it may hide has no bound."
    return (
        f"Any other outcome up to {_percent(row.stability['per_pair'])} "
        f"({100 * confidence:g} % confidence); for all {row.stability['pairs']} pairs jointly "
        f"{_percent(row.stability['joint'])}."
    )


def _percent(share: float) -> str:
    """A share in per cent; a small one is never shown as none."""
    return f"{100 * share:.1f} %" if share >= 0.001 else f"{100 * share:.2g} %"


def _twins(numbers: Mapping[str, int]) -> str:
    return f"{numbers['clean']} clean, {numbers['poisoned']} poisoned"


def _plain(text: str, page: Page, indent: int = 2) -> Iterator[str]:
    return map(painted, page.words(text, page.width, indent=indent))
