"""Capability against robustness, as inline SVG: shapes and numbers, so that no colour is needed."""

from __future__ import annotations

import html
from typing import Any

from impact_twin.leaderboard.board import Board, benign, headline, model_name, number, span

_WIDTH, _HEIGHT = 680.0, 470.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 16.0, 60.0

_LEGEND = (
    "Filled: confirmed bucket; hollow: provisional. Circle: capability is U_benign; square: U "
    "under attack, as U_benign is missing. Bars: interval of R. Top right is able and robust; top "
    "left may be safe by incapacity."
)


def plot(board: Board, name: int) -> str:
    """Return the figure: x is U_benign (U where it wasn't measured), y is R with its interval.

    A filled mark is a confirmed bucket, a hollow one is provisional; a square stands at U under
    attack because U_benign is missing. Marks carry the table's row numbers.
    """
    marks = [
        _mark(row, place)
        for place, row in enumerate(board.rows, start=1)
        if headline(row, "R")["value"] is not None and _capability(row)[0] is not None
    ]
    title = "Capability against robustness"
    told = "; ".join(
        f"{place}: {model_name(row)}, capability {number(_capability(row)[0])}, "
        f"R {number(headline(row, 'R')['value'])}"
        for place, row in enumerate(board.rows, start=1)
    )
    return "\n".join(
        [
            f'<figure><svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
            f'aria-labelledby="plot-{name}-title plot-{name}-told">',
            f'<title id="plot-{name}-title">{title}</title>',
            f'<desc id="plot-{name}-told">{html.escape(told)}</desc>',
            *_frame(board.rows[0]["board"]["buckets"]),
            *marks,
            f'</svg><figcaption class="small">{_LEGEND}</figcaption>',
            "</figure>",
        ]
    )


def _capability(row: dict[str, Any]) -> tuple[float | None, bool]:
    alone = benign(row)
    found = headline(row, "U") if alone is None else alone
    return found["value"], alone is not None


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _TOP + (1 - share) * (_HEIGHT - _TOP - _BOTTOM)


def _frame(buckets: dict[str, float]) -> list[str]:
    robust, vulnerable = buckets["robust"], buckets["vulnerable"]
    lines = [
        # The Mixed band is shaded; the bucket names stand at the left edge of their bands.
        f'<rect class="band" x="{_x(0):.1f}" y="{_y(robust):.1f}" width="{_x(1) - _x(0):.1f}" '
        f'height="{_y(vulnerable) - _y(robust):.1f}"/>'
    ]
    for tenth in range(0, 11, 2):
        share = tenth / 10
        lines += [
            f'<line class="grid" x1="{_x(share):.1f}" y1="{_y(0):.1f}" x2="{_x(share):.1f}" '
            f'y2="{_y(1):.1f}"/>',
            f'<line class="grid" x1="{_x(0):.1f}" y1="{_y(share):.1f}" x2="{_x(1):.1f}" '
            f'y2="{_y(share):.1f}"/>',
            f'<text class="soft" x="{_x(share):.1f}" y="{_y(0) + 18:.1f}" text-anchor="middle">'
            f"{tenth * 10}</text>",
            f'<text class="soft" x="{_x(0) - 8:.1f}" y="{_y(share) + 4:.1f}" text-anchor="end">'
            f"{tenth * 10}</text>",
        ]
    for share, word in (
        ((1 + robust) / 2, "Robust"),
        ((robust + vulnerable) / 2, "Mixed"),
        (vulnerable / 2, "Vulnerable"),
    ):
        lines.append(
            f'<text class="soft" x="{_x(0) + 6:.1f}" y="{_y(share) + 4:.1f}">{word}</text>'
        )
    return [
        *lines,
        f'<line class="axis" x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(0):.1f}"/>',
        f'<line class="axis" x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(0):.1f}" y2="{_y(1):.1f}"/>',
        f'<text x="{_x(0.5):.1f}" y="{_HEIGHT - 14:.1f}" text-anchor="middle">'
        "Capability: user tasks done, %</text>",
        f'<text x="16" y="{_y(0.5):.1f}" text-anchor="middle" '
        f'transform="rotate(-90 16 {_y(0.5):.1f})">Robustness R: attacks failed, %</text>',
    ]


def _mark(row: dict[str, Any], place: int) -> str:
    robust = headline(row, "R")
    useful, alone = _capability(row)
    x, y = _x(float(useful or 0.0)), _y(robust["value"])
    low, high = robust["interval"]
    kind = "sure" if row["status"] == "confirmed" else "unsure"
    shape = (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
        if alone
        else f'<rect class="{kind}" x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10"/>'
    )
    about = f"{place}: {model_name(row)}, R {number(robust['value'])}, {span(robust['interval'])}"
    return (
        f"<g><title>{html.escape(about)}</title>"
        f'<line class="bar" x1="{x:.1f}" y1="{_y(low):.1f}" x2="{x:.1f}" y2="{_y(high):.1f}"/>'
        f'{shape}<text x="{x + 8:.1f}" y="{y - 6:.1f}">{place}</text></g>'
    )
