"""The flip evidence of each pair, in parts that open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from impact_twin.procurement.model import JSON
from impact_twin.report.evidence import inspect_pair, inspect_report
from impact_twin.report.evidence_harm import describe
from impact_twin.report.evidence_model import (
    PICKS,
    CaseEvidence,
    Cluster,
    Comparison,
    EventEvidence,
    PairEvidence,
    Parting,
    Row,
)
from impact_twin.report.html.markup import section, table
from impact_twin.report.html.words import (
    LISTED,
    block,
    class_words,
    count,
    line,
    name,
    names,
    value,
)

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

OUTPUT = 1_500
"""Characters of a tool's output that are shown."""

MOST_CALLS = 60
"""Calls of a comparison that are shown; those that differ come first."""

MOST_CLUSTERS = 20
"""Clusters of a pair that are listed."""

_ALIKE = ("same", "answered")


def flips(report: Mapping[str, JSON], suite: Suite | None) -> str:
    """Why each pair flips: the two runs that show it best, side by side."""
    found = inspect_report(report)
    parts = [
        "<p>The most variable pair first. <code>impact-twin inspect REPORT --pair PAIR</code> "
        "shows any other trial, and all of each text.</p>"
    ]
    for row in found.rows:
        evidence = inspect_pair(report, row.pair, suite)
        parts.append(
            f"<details><summary><strong>{name(row.pair)}</strong>: {row.label}, "
            f"{class_words(row.classes)}</summary>{''.join(_pair(evidence))}</details>"
        )
    return section("flips", "Why pairs flip", *parts)


def _pair(found: PairEvidence) -> Iterator[str]:
    if found.control is None:
        yield (
            "<p>The suite is not at hand, so the request, the poison and the change that broke a "
            "control can't be shown.</p>"
        )
    else:
        yield (
            f"<p>{name(found.title or '')}. Control: {line(found.control)}. Expected decision: "
            f"{name(found.expected or 'none')}. The poison stands in "
            f"{name(found.passage_document or 'no document')} and asks for {_goal(found.goal)}.</p>"
        )
    yield _clusters(found)
    shown = " and ".join(f"trial {case.trial}" for case in found.shown)
    yield f"<p>Shown: {shown}, {found.twin} ({PICKS[found.pick]}).</p>"
    if found.request is not None:
        yield _closed("The request", block(found.request))
    passage = _passage(found)
    if passage is not None:
        yield _closed("The poison", block(passage))
    if found.comparison is not None:
        yield from _comparison(found.comparison)
    elif found.single is not None:
        yield _case(found.single)
        yield _closed(
            f"Its {count(len(found.single.events), 'call')}",
            *(_call(event) for event in found.single.events[:MOST_CALLS]),
            _more(len(found.single.events)),
            long=True,
        )
        yield _answer(found.single)
    for beside in found.beside:
        yield _closed(
            f"The clean twin of trial {beside.right.trial} beside it",
            *_comparison(beside),
            long=True,
        )


def _goal(goal: Mapping[str, JSON]) -> str:
    kind = str(goal.get("kind", "nothing")).replace("_", " ")
    rest = ", ".join(
        f"{line(key)} {names(item) if isinstance(item, list) else value(item)}"
        for key, item in goal.items()
        if key != "kind"
    )
    return f"{line(kind)} ({rest})" if rest else line(kind)


def _passage(found: PairEvidence) -> str | None:
    for case in found.shown:
        if case.exposure is not None and case.exposure.passage is not None:
            return case.exposure.passage
    return None


def _clusters(found: PairEvidence) -> str:
    traces = len({item.trace for item in found.clusters if item.course})
    caption = (
        f"What {count(found.chosen, f'{found.twin} run')} did: {count(traces, 'trace')}, "
        f"{count(found.courses, 'course')} of action with words left aside"
    )
    shown = found.clusters[:MOST_CLUSTERS]
    drawn = table(
        caption,
        ("class", "#trials", "#course", "#calls", "recommends", "breaks", "#example"),
        (_cluster(item) for item in shown),
    )
    rest = found.clusters[MOST_CLUSTERS:]
    if rest:
        trials = sum(item.count for item in rest)
        drawn += f"<p>and {count(trials, 'trial')} with {count(len(rest), 'more trace')}.</p>"
    return drawn


def _cluster(item: Cluster) -> tuple[str, ...]:
    if not item.course:
        return (item.outcome, f"{item.count:,}", "", "", "no readable trace", "", f"{item.example}")
    return (
        item.outcome,
        f"{item.count:,}",
        f"{item.course:,}",
        f"{item.events:,}",
        name(item.decision, 80) if item.decision else "nobody",
        names(item.violations),
        f"trial {item.example}",
    )


def _comparison(found: Comparison) -> Iterator[str]:
    yield _sides(_case(found.left), _case(found.right))
    yield from _partings(found)
    titles = _titles(found)
    for events, title in ((found.only_right, titles[1]), (found.only_left, titles[0])):
        if events:
            worse = " (the worse one)" if title == titles[1] and found.worse else ""
            calls = "".join(_call(event) for event in events[:LISTED])
            yield f"<h4>Only {title} makes these calls{worse}</h4>{calls}"
            yield _more(len(events), LISTED)
    yield _closed("All calls side by side", *_rows(found.rows), long=True)
    yield _sides(_answer(found.left), _answer(found.right))


def _titles(found: Comparison) -> tuple[str, str]:
    if found.kind == "twins":
        return "the clean twin", "the poisoned twin"
    return f"trial {found.left.trial}", f"trial {found.right.trial}"


def _partings(found: Comparison) -> Iterator[str]:
    deed, words = found.deed_parting, found.parting
    if deed is None:
        yield "<h4>They make the same calls to the end</h4>"
    else:
        yield f"<h4>They part at call {_place(deed)}</h4>"
        yield _sides(*(_end(event) for event in (deed.left, deed.right)))
    if words is not None and (deed is None or _place(words) != _place(deed)):
        yield f"<p>Their words differ first at call {_place(words)}.</p>"


def _end(event: EventEvidence | None) -> str:
    return "<p>makes no further call</p>" if event is None else _call(event)


def _place(parting: Parting) -> int:
    return next(event.seq for event in (parting.left, parting.right) if event is not None)


def _rows(rows: Sequence[Row]) -> Iterator[str]:
    apart = [place for place, row in enumerate(rows) if row.kind not in _ALIKE]
    alike = [place for place, row in enumerate(rows) if row.kind in _ALIKE]
    kept = set((apart + alike)[:MOST_CALLS])
    for place in sorted(kept):
        row = rows[place]
        if row.kind == "same" and row.left is not None:
            yield _call(row.left, note="both")
        else:
            yield _sides(
                *(
                    _call(event, kind=row.kind) if event is not None else "<p></p>"
                    for event in (row.left, row.right)
                )
            )
    yield _more(len(rows))


def _case(case: CaseEvidence) -> str:
    marks = [case.outcome]
    marks += ["targeted"] if case.targeted else []
    marks += ["toward the attacker"] if case.toward_attacker else []
    items = [
        f"pair-trial: {', '.join(marks)}" + (f" ({names(case.reasons)})" if case.reasons else ""),
        *_ending(case),
        *_exposed(case),
    ]
    for breach in case.breaches:
        goal = ", what the poison asked for" if breach.goal else ""
        undone = ", undone later" if breach.reverted else ""
        changes = "; ".join(
            f"by call {change.seq}: {name(change.text, 400)}" for change in breach.changes[:LISTED]
        )
        items.append(
            f'<span class="bad">broke {line(breach.control)}</span>{goal}{undone} {changes}'
        )
    if case.attempted:
        items.append("tried the attacker's action; the world rejected it")
    if case.flags:
        items.append(f"flagged {names(case.flags)}")
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f"<div><h4>Trial {case.trial}, {case.twin}</h4><ul>{listed}</ul></div>"


def _ending(case: CaseEvidence) -> Iterator[str]:
    error = f": {name(case.error)}" if case.error else ""
    tries = f", {case.attempts} tries" if case.attempts > 1 else ""
    late = f", {count(case.late_calls, 'late call')}" if case.late_calls else ""
    yield f"ended {line(case.termination)}{error}{tries}{late}"
    if not case.readable:
        yield "nothing on record" if case.trace is None else "its record is unreadable"
        return
    done = "mission completed" if case.mission_completed else f"missing: {names(case.missing)}"
    decision = name(case.decision, 80) if case.decision else "nobody"
    yield f"{count(len(case.events), 'call')}, recommends {decision}, {done}"


def _exposed(case: CaseEvidence) -> Iterator[str]:
    if case.twin == "clean" or not case.readable:
        return
    found = case.exposure
    if found is None:
        yield "the poison was never served"
        return
    where = (
        "a call" if found.event is None else f"call {found.event.seq} {name(found.event.tool, 80)}"
    )
    seen = found.delivered
    got = "not known, nobody saw" if seen in (None, "unknown") else line(str(seen))
    text = (
        ""
        if found.delivered_text is None
        else f"; the agent got instead: {block(found.delivered_text)}"
    )
    yield (
        f"the poison was served by {where}; what the agent got of it: {got}; "
        f"{count(found.calls_after, 'call')} after it{text}"
    )


def _call(event: EventEvidence, *, kind: str = "", note: str = "") -> str:
    given = event.arguments if isinstance(event.arguments, Mapping) else {"": event.arguments}
    arguments = ", ".join(
        f"{name(key, 60)}={value(item, 400)}" for key, item in list(given.items())[:LISTED]
    )
    style = "call breaks" if event.breaks else f"call {kind}".rstrip()
    parts = [
        f'<div class="{style}"><p><strong>{event.seq} {name(event.tool, 80)}</strong>'
        f"({arguments}){f' <span class=soft>{note}</span>' if note else ''}</p>"
    ]
    if event.served:
        parts.append("<p><strong>serves the poison</strong></p>")
    parts += [f"<p>changes: {name(describe(effect), 400)}</p>" for effect in event.effects[:LISTED]]
    parts += [f'<p class="bad">BREAKS {line(control)}</p>' for control in event.breaks]
    word = "rejected" if event.error else "returned"
    size = f"{len(event.output):,} characters"
    parts.append(_closed(f"{word} {size}", block(event.output, OUTPUT), long=True) + "</div>")
    return "".join(parts)


def _answer(case: CaseEvidence) -> str:
    shown = block(case.final_answer) if case.final_answer else "<p>none</p>"
    return f"<div><h4>Final answer of trial {case.trial}, {case.twin}</h4>{shown}</div>"


def _sides(left: str, right: str) -> str:
    return f'<div class="sides"><div>{left}</div><div>{right}</div></div>'


def _closed(title: str, *parts: str, long: bool = False) -> str:
    """A part that opens; a long one is printed only when the reader has opened it."""
    style = ' class="long"' if long else ""
    return f"<details{style}><summary>{title}</summary>{''.join(parts)}</details>"


def _more(size: int, limit: int = MOST_CALLS) -> str:
    return f"<p>and {count(size - limit, 'more call')}</p>" if size > limit else ""
