"""Charts as inline SVG: intervals on an axis, trials as tiles, classes as stacked bars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.report.html.style import LOOKS
from impact_twin.report.html.words import ends, estimate, line
from impact_twin.report.strips import make_strip
from impact_twin.statistics.table import OUTCOME_CLASSES

MOST_TILES = 1_000
"""Tiles of a pair at most; beyond it a tile stands for several trials."""

ALL_TILES = 10_000
"""Tiles of all pairs together, as far as a line of each allows."""

PER_LINE = 50
_TILE = 16
_GAP = 10
_LABEL = 56
_MINIMUM_SHARE = 0.06


def symbols() -> str:
    """The tile of every class, defined once and used by all charts."""
    parts = ['<svg class="hidden" aria-hidden="true" focusable="false"><defs>']
    for name, look in LOOKS.items():
        parts.append(
            f'<symbol id="c-{name}" viewBox="0 0 16 16"><rect width="16" height="16" '
            f'fill="{look.tile}"/>{look.shape.format(look.mark)}</symbol>'
        )
    return "".join([*parts, "</defs></svg>"])


def legend(classes: Mapping[str, int]) -> str:
    """The classes that occurred, each with its tile."""
    items = "".join(
        f'<li><svg width="16" height="16" aria-hidden="true"><use href="#c-{name}" width="16" '
        f'height="16"/></svg>{name}</li>'
        for name in OUTCOME_CLASSES
        if classes[name]
    )
    return f'<ul class="key" aria-label="Outcome classes">{items}</ul>'


def axis() -> str:
    """The head of a column of intervals: a scale from 0 to 100 %."""
    marks = "".join(
        f'<text x="{at}%" y="12" text-anchor="{anchor}">{at}</text>'
        for at, anchor in ((0, "start"), (50, "middle"), (100, "end"))
    )
    return f'<svg height="16" aria-hidden="true">{marks}</svg>'


def interval(rate: Mapping[str, JSON], kind: str, title: str, *, mark: bool = True) -> str:
    """One rate on the axis: its interval, and its estimate or what it may be.

    Args:
        rate: A rate of the summary.
        kind: Which of its intervals.
        title: What it is, safe in HTML.
        mark: Whether to draw the estimate.
    """
    grid = "".join(
        f'<line class="grid" x1="{at}%" x2="{at}%" y1="0" y2="24"/>' for at in (0, 25, 50, 75, 100)
    )
    parts = [grid, '<line class="grid" x1="0" x2="100%" y1="12" y2="12"/>']
    if rate[kind] is not None:
        lo, hi = rate[kind]
        parts.append(_span("bar", lo, hi, 12))
    known = rate["bounds"] is not None and rate["rate"] is not None
    if mark and known:
        if rate["unresolved"]:
            parts.append(_span("bounds", rate["bounds"][0], rate["bounds"][1], 19))
        else:
            parts.append(f'<circle class="dot" cx="{_at(rate["rate"])}" cy="12" r="5"/>')
    words = f"{title}: {estimate(rate)}, interval {ends(rate[kind])}"
    return f'<svg height="24" role="img"><title>{words}</title>{"".join(parts)}</svg>'


def bar(classes: Mapping[str, int], title: str) -> str:
    """How often each class occurred, as one stacked bar.

    Args:
        classes: Counts.
        title: Whose, safe in HTML.
    """
    total = sum(classes.values())
    parts, left = [], 0
    for name in OUTCOME_CLASSES:
        size = classes[name]
        if not size:
            continue
        share = size / total
        look = LOOKS[name]
        parts.append(
            f'<rect x="{_at(left / total)}" width="{_at(share)}" height="24" fill="{look.tile}">'
            f"<title>{name}: {size:,} of {total:,}</title></rect>"
            f'<rect class="edge" x="{_at(left / total)}" width="{_at(share)}" height="24"/>'
        )
        if share >= _MINIMUM_SHARE:
            # A nested svg can stand at a share of the width, and its mark be moved back by half.
            parts.append(
                f'<svg x="{_at((left + size / 2) / total)}" width="16" height="24">'
                f'<use href="#c-{name}" x="-8" y="4" width="16" height="16"/></svg>'
            )
        left += size
    words = ", ".join(f"{classes[name]:,} {name}" for name in OUTCOME_CLASSES if classes[name])
    title = f"{title}: {words or 'none'}"
    return f'<svg height="24" role="img"><title>{title}</title>{"".join(parts)}</svg>'


def heatmap(rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Pairs by trials, one tile a trial, in lines of `PER_LINE`.

    Args:
        rows: Pair and its outcomes in order of trials.
    """
    per_line = min(PER_LINE, max([1, *(len(outcomes) for _, outcomes in rows)]))
    width = _LABEL + per_line * _TILE + per_line // 10 * 4
    parts: list[str] = []
    top = 0
    for pair, outcomes in rows:
        top += 18
        parts.append(f'<text x="0" y="{top - 4}">{line(pair, 80)}</text>')
        strip = make_strip(outcomes, tiles(len(rows)))
        for at in range(0, len(strip.classes), per_line):
            parts.append(
                f'<text x="{_LABEL - 6}" y="{top + 12}" text-anchor="end">'
                f"{at * strip.per_mark + 1}</text>"
            )
            parts += _tiles(
                strip.classes[at : at + per_line], at, strip.per_mark, len(outcomes), top
            )
            top += _TILE + 1
        top += _GAP
    title = f"Outcome class of every trial of {len(rows)} pairs"
    desc = "A tile's shape and colour give the class. The same stands below as text."
    return (
        f'<svg width="{width}" height="{top}" viewBox="0 0 {width} {top}" role="img" '
        f'aria-labelledby="heat-t heat-d"><title id="heat-t">{title}</title>'
        f'<desc id="heat-d">{desc}</desc>{"".join(parts)}</svg>'
    )


def tiles(pairs: int) -> int:
    """How many tiles each of so many pairs gets at most.

    >>> tiles(5), tiles(100)
    (1000, 100)
    """
    return min(MOST_TILES, max(PER_LINE, ALL_TILES // max(1, pairs)))


def per_tile(trials: int, pairs: int) -> int:
    """How many trials a tile of the heatmap stands for."""
    return max(1, math.ceil(trials / tiles(pairs)))


def _tiles(
    classes: Sequence[str], first: int, per_mark: int, total: int, top: int
) -> Iterator[str]:
    for place, name in enumerate(classes):
        at = (first + place) * per_mark + 1
        last = min(total, at + per_mark - 1)
        trials = f"Trial {at}" if last == at else f"Trials {at} to {last}, the worst"
        x = _LABEL + place * _TILE + place // 10 * 4
        yield (
            f'<use href="#c-{name}" x="{x}" y="{top}" width="15" height="15">'
            f"<title>{trials}: {name}</title></use>"
        )


def _span(style: str, lo: float, hi: float, y: int) -> str:
    return f'<line class="{style}" x1="{_at(lo)}" x2="{_at(hi)}" y1="{y}" y2="{y}"/>'


def _at(share: float) -> str:
    return f"{100 * share:.4g}%"
