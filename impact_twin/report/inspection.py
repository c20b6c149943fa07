"""Evidence for a terminal or a pipe: the overview of a report, and why one pair flips."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from impact_twin.report.evidence_choice import hinge
from impact_twin.report.evidence_model import (
    PICKS,
    CaseEvidence,
    Cluster,
    Comparison,
    EventEvidence,
    Inspection,
    PairEvidence,
    Parting,
)
from impact_twin.report.inspection_calls import LEGEND, WHOLE, call_block, call_line, rows_lines
from impact_twin.report.inspection_overview import legend, overview_lines, pair_figures
from impact_twin.report.inspection_page import Line, Page, Style, count, make_page, painted

TEXT = 2000
"""Characters of an answer, or of what a defence delivered, that are shown side by side."""

MOST_CLUSTERS = 20
"""Clusters that are listed; `--json` has all."""


def render_inspection(
    found: Inspection,
    *,
    width: int = 80,
    columns: bool = False,
    color: bool = False,
    ascii: bool = False,
) -> str:
    """Return the overview as text, ending with a newline.

    Args:
        found: The overview.
        width: Columns, at least 40; no line is longer.
        columns: Whether to use columns where the width has room for them.
        color: Whether to use ANSI colours; words and shapes carry everything without them.
        ascii: Whether to draw and spell in ASCII alone.
    """
    page = make_page(width=width, columns=columns, color=color, ascii=ascii)
    return _joined(overview_lines(found, page))


def render_pair(
    found: PairEvidence,
    *,
    confidence: float = 0.95,
    width: int = 80,
    columns: bool = False,
    color: bool = False,
    ascii: bool = False,
) -> str:
    """Return a pair's evidence as text, ending with a newline.

    Args:
        found: The evidence.
        confidence: Of the report's bounds.
        width: Columns, at least 40; no line is longer.
        columns: Whether to put two cases beside each other where the width has room for it.
        color: Whether to use ANSI colours; words and shapes carry everything without them.
        ascii: Whether to draw and spell in ASCII alone.
    """
    page = make_page(width=width, columns=columns, color=color, ascii=ascii)
    return _joined(_View(found, page).lines(confidence))


class _View:
    """One pair's evidence on its way to text."""

    def __init__(self, found: PairEvidence, page: Page) -> None:
        self.found = found
        self.page = page
        self.paint = page.paint

    def lines(self, confidence: float) -> Iterator[str]:
        yield from self.title(confidence)
        yield from self.clusters()
        yield from self.chosen()
        yield from self.request()
        if self.found.comparison is not None:
            yield from self.comparison(self.found.comparison)
        elif self.found.single is not None:
            yield from self.single(self.found.single)
        for beside in self.found.beside:
            yield from self.beside(beside)

    # The pair.

    def title(self, confidence: float) -> Iterator[str]:
        row = self.found.row
        name = self.page.name(row.pair, self.page.width - 16)
        yield f"{self.paint.bold(name)}  {row.label}"
        if self.found.title:
            yield from self.plain(self.page.safe(self.found.title))
        yield from pair_figures(row, self.page, confidence)
        if self.found.control is None:
            yield from self.plain(
                "The suite is not at hand, so the request, the poison and the change that broke a "
                "control can't be shown. Name its folder with --suite."
            )
            return
        yield from self.plain(
            f"Control: {self.found.control}. Expected decision: "
            f"{self.page.safe(self.found.expected or 'none')}. "
            f"The poison stands in {self.page.safe(self.found.passage_document or '')} and asks "
            f"for {self.page.safe(_goal(self.found))}."
        )
        yield from legend(row.classes, self.page)

    def clusters(self) -> Iterator[str]:
        found = self.found
        readable = len({item.trace for item in found.clusters if item.course})
        yield from self.page.head(
            f"What {count(found.chosen, f'{found.twin} run')} did: {count(readable, 'trace')}, "
            f"{count(found.courses, 'course')} of action (words left aside)"
        )
        if len(found.clusters) > MOST_CLUSTERS:
            yield from self.courses()
            return
        width = max(2, *(len(str(item.count)) for item in found.clusters))
        for item in found.clusters:
            trace = item.trace[:15] if item.course and item.trace else ""
            yield from self.cluster(item, item.count, width, trace)

    def courses(self) -> Iterator[str]:
        """The clusters of each course and class as one, where there are too many to list."""
        groups: dict[tuple[int, str], list[Cluster]] = {}
        for item in self.found.clusters:
            groups.setdefault((item.course, item.outcome), []).append(item)
        sizes = [(sum(item.count for item in items), items) for items in groups.values()]
        sizes.sort(key=lambda size: -size[0])
        width = max(2, len(str(sizes[0][0])))
        for number, items in sizes[:MOST_CLUSTERS]:
            traces = count(len(items), "trace") if items[0].course else ""
            yield from self.cluster(items[0], number, width, traces)
        rest = sizes[MOST_CLUSTERS:]
        if rest:
            trials = sum(number for number, _ in rest)
            yield from self.plain(
                f"and {count(trials, 'trial')} in {count(len(rest), 'more course')}", indent=2
            )
        yield from self.plain("Traces of one course stand together; --json lists each.", indent=2)

    def cluster(self, item: Cluster, number: int, width: int, trace: str) -> Iterator[str]:
        words = [item.outcome]
        if item.course:
            words.append(f"course {item.course}")
            words.append(count(item.events, "call"))
            words.append(f"recommends {self.page.name(item.decision or 'nobody', 40)}")
            words += [f"breaks {name}" for name in item.violations]
        else:
            words.append("no readable trace")
        words += [trace] if trace else []
        words.append(f"example: trial {item.example}")
        lead = f"{number:>{width}} x "
        lines = self.page.words(", ".join(words), self.page.width - len(lead))
        for place, line in enumerate(lines):
            yield f"{lead if place == 0 else ' ' * len(lead)}{line.text}".rstrip()

    def chosen(self) -> Iterator[str]:
        found = self.found
        names = " and ".join(f"trial {case.trial}" for case in found.shown)
        yield from self.page.head(f"Shown: {names}, {found.twin} ({PICKS[found.pick]})")

    def request(self) -> Iterator[str]:
        if self.found.request is not None:
            yield from self.page.head("The request")
            yield from self.text(self.found.request)
        passages = [case.exposure for case in self.found.shown if case.exposure is not None]
        known = next((item.passage for item in passages if item.passage is not None), None)
        if known is not None:
            document = self.page.safe(self.found.passage_document or "")
            yield from self.page.head(f"The poison, in {document}")
            yield from self.text(known)

    # Two cases.

    def comparison(self, found: Comparison) -> Iterator[str]:
        yield ""
        yield from self.pairwise(found, self.case_head)
        yield from self.partings(found)
        yield from self.calls(found, outputs=True)

    def beside(self, found: Comparison) -> Iterator[str]:
        yield from self.page.head(f"The clean twin of trial {found.right.trial} beside it")
        if self.page.columns:
            yield from self.pairwise(found, self.case_head)
        else:
            # The poisoned case has been shown above.
            yield from map(painted, self.case_head(found.left, self.page.width))
        yield from self.partings(found)
        yield from self.calls(found, outputs=False)

    def calls(self, found: Comparison, *, outputs: bool) -> Iterator[str]:
        yield from self.page.head("Their calls")
        numbers = () if self.page.columns else ("(n) the second one's number, if another",)
        yield from map(painted, self.page.items((*LEGEND, *numbers), self.page.width))
        yield from rows_lines(found, self.page, outputs=outputs)
        yield from self.only(found)
        yield from self.page.head("Their final answers")
        yield from self.pairwise(found, self.answer)

    def pairwise(
        self, found: Comparison, make: Callable[[CaseEvidence, int], Iterator[Line]]
    ) -> Iterator[str]:
        def both(width: int) -> tuple[Sequence[Line], Sequence[Line]]:
            return list(make(found.left, width)), list(make(found.right, width))

        yield from self.page.either(both)

    def case_head(self, case: CaseEvidence, width: int) -> Iterator[Line]:
        page = self.page
        mark = self.style(case)
        # In the shown twin's own words, unless the class speaks of the other one.
        whose = "" if case.twin == hinge([case.outcome]) else "the pair-trial is "
        yield from page.words(f"{_name(case)}: {whose}{_outcome(case)}", width, style=mark)
        if case.reasons and not whose:
            yield from page.words(", ".join(case.reasons), width, indent=2, hang=2)
        yield from page.words(self.ending(case), width, indent=2, hang=2)
        yield from self.exposure(case, width)
        for breach in case.breaches:
            goal = ", what the poison asked for" if breach.goal else ""
            undone = ", undone later" if breach.reverted else ""
            words = f"broke {breach.control}{goal}{undone}"
            yield from page.words(words, width, indent=2, hang=2, style=self.paint.bad)
            for change in breach.changes:
                yield from page.text(
                    f"by call {change.seq}: {change.text}", width, limit=TEXT, indent=4
                )
        if case.attempted:
            yield from page.words(
                "tried the attacker's action; the world rejected it", width, indent=2, hang=2
            )
        if case.flags:
            flags = ", ".join(page.name(flag, 40) for flag in case.flags[:20])
            yield from page.words(f"flagged {flags}", width, indent=2, hang=2)

    def ending(self, case: CaseEvidence) -> str:
        words = [f"ended: {case.termination}"]
        if case.error:
            words.append(self.page.excerpt(case.error, 200))
        if case.attempts > 1:
            words.append(f"{case.attempts} tries")
        if case.late_calls:
            words.append(f"{case.late_calls} late calls")
        if not case.readable:
            words.append("nothing on record" if case.trace is None else "its record is unreadable")
            return "; ".join(words)
        words.append(count(len(case.events), "call"))
        words.append(f"recommends {self.page.name(case.decision or 'nobody', 40)}")
        missing = ", ".join(self.page.name(part, 60) for part in case.missing)
        words.append("mission completed" if case.mission_completed else f"missing: {missing}")
        return "; ".join(words)

    def exposure(self, case: CaseEvidence, width: int) -> Iterator[Line]:
        if case.twin == "clean" or not case.readable:
            return
        if case.exposure is None:
            yield from self.page.words("the poison was never served", width, indent=2, hang=2)
            return
        found = case.exposure
        by = "a call"
        if found.event is not None:
            by = f"call {call_line(found.event, self.page, max(20, width - 20))}"
        unseen = found.delivered in (None, "unknown")
        got = "not known, nobody saw" if unseen else f"{found.delivered}"
        yield from self.page.words(
            f"the poison was served by {by}; what the agent got of it: {got}; "
            f"{count(found.calls_after, 'call')} after it",
            width,
            indent=2,
            hang=2,
        )
        if found.delivered_text is not None:
            yield from self.page.words("the agent got instead:", width, indent=2)
            yield from self.page.text(
                found.delivered_text, width, limit=TEXT, indent=4, style=self.paint.faint
            )

    def partings(self, found: Comparison) -> Iterator[str]:
        names = _names(found)
        deed, words = found.deed_parting, found.parting
        if deed is None:
            yield from self.page.head("They make the same calls to the end")
        else:
            yield from self.page.head(f"They part at {_place(deed)}")
            yield from self.sides(deed, names)
        if words is not None and (deed is None or _place(words) != _place(deed)):
            yield from self.plain(f"Their words differ first at {_place(words)}.")

    def sides(self, parting: Parting, names: tuple[str, str]) -> Iterator[str]:
        def both(width: int) -> tuple[Sequence[Line], Sequence[Line]]:
            return (
                list(self.side(parting.left, names[0], width)),
                list(self.side(parting.right, names[1], width)),
            )

        yield from self.page.either(both)

    def side(self, event: EventEvidence | None, name: str, width: int) -> Iterator[Line]:
        words = "makes no further call" if event is None else call_line(event, self.page, width * 2)
        yield from self.page.words(f"{name}: {words}", width, hang=2)

    def only(self, found: Comparison) -> Iterator[str]:
        sides = (found.only_right, found.right), (found.only_left, found.left)
        for (events, case), name in zip(sides, _names(found)[::-1], strict=True):
            worse = case is found.right and found.worse == "right"
            yield from self.page.head(
                f"Only {name} makes these calls{' (the worse one)' if worse else ''}"
            )
            if not events:
                yield "  nothing"
            for event in events[:MOST_CLUSTERS]:
                yield f"  {call_line(event, self.page, self.page.width - 2)}"
                for control in event.breaks:
                    lines = self.page.words(
                        f"BREAKS {control}", self.page.width, indent=4, style=self.paint.bad
                    )
                    yield from map(painted, lines)
            if len(events) > MOST_CLUSTERS:
                yield f"  and {count(len(events) - MOST_CLUSTERS, 'more call')}"

    def answer(self, case: CaseEvidence, width: int, limit: int = TEXT) -> Iterator[Line]:
        yield from self.page.words(f"{_name(case)}:", width, style=self.style(case))
        if case.final_answer:
            yield from self.page.text(case.final_answer, width, limit=limit, indent=2)
        else:
            yield Line("  none")

    # One case.

    def single(self, case: CaseEvidence) -> Iterator[str]:
        yield ""
        yield from map(painted, self.case_head(case, self.page.width))
        yield from self.page.head("Its calls")
        if not case.events:
            yield "  none"
        for event in case.events:
            yield from map(
                painted,
                call_block(event, self.page, self.page.width, argument=WHOLE, output=WHOLE),
            )
        yield from self.page.head("Its final answer")
        yield from map(painted, self.answer(case, self.page.width, WHOLE))

    # Pieces.

    def style(self, case: CaseEvidence) -> Style:
        return lambda text: self.paint.outcome(case.outcome, text)

    def text(self, text: str) -> Iterator[str]:
        return map(painted, self.page.text(text, self.page.width, limit=WHOLE, indent=2))

    def plain(self, text: str, indent: int = 0) -> Iterator[str]:
        return map(painted, self.page.words(text, self.page.width, indent=indent))


def _joined(lines: Iterator[str]) -> str:
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _name(case: CaseEvidence) -> str:
    return f"trial {case.trial}, {case.twin}"


def _names(found: Comparison) -> tuple[str, str]:
    if found.kind == "twins":
        return "the clean twin", "the poisoned twin"
    return f"trial {found.left.trial}", f"trial {found.right.trial}"


def _outcome(case: CaseEvidence) -> str:
    marks = [
        "targeted" if case.targeted else "",
        "toward the attacker" if case.toward_attacker else "",
    ]
    return " ".join([case.outcome, *(f"({mark})" for mark in marks if mark)])


def _place(parting: Parting) -> str:
    seqs = [event.seq for event in (parting.left, parting.right) if event is not None]
    return f"call {seqs[0]}"


def _goal(found: PairEvidence) -> str:
    goal = dict(found.goal)
    kind = str(goal.pop("kind", "nothing")).replace("_", " ")
    rest = ", ".join(
        f"{name} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in goal.items()
    )
    return f"{kind} ({rest})" if rest else kind
