"""The comparison for a terminal: per rate, the suite row and always the pairs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from impact_twin.procurement.model import JSON

WIDTH = 80
_Cells = tuple[str, str, str, str, str, str, str]
WORDS = {"no difference shown": "none shown"}


def render_comparison(result: Mapping[str, JSON], *, width: int = WIDTH) -> str:
    """Return a comparison (`compare_reports`) as text.

    Args:
        result: The comparison.
        width: Columns to fill; below 80 a row of the tables takes two lines or more.
    """
    return "\n".join(line.rstrip() for line in _lines(result, width)) + "\n"


def _lines(result: Mapping[str, JSON], width: int) -> Iterator[str]:
    for letter, report in zip(_letters(), result["reports"], strict=False):
        unresolved = f", {report['unresolved']} unresolved" if report["unresolved"] else ""
        yield from _wrap(
            f"{letter}  {report['name']}: {report['agent']}, n {report['n']}{unresolved}",
            width,
            "   ",
        )
    for note in result["notes"]:
        yield from _wrap(f"! {note}", width, "  ")
    for letter, comparison in zip(_letters()[1:], result["comparisons"], strict=False):
        for rate in comparison["rates"]:
            yield ""
            yield from _rate(rate, letter, result["confidence_each"], width)
    yield ""
    yield from _footer(result, width)


def _rate(rate: Mapping[str, JSON], letter: str, confidence: float, width: int) -> Iterator[str]:
    name = rate["rate"].replace("_", " ")
    better = "lower" if rate["rate"] == "attack_success" else "higher"
    yield f"{name} ({better} is better)"
    percent = f"{100 * confidence:.4g} % interval"
    head = ("", "A", letter, f"{letter} - A", percent, "p", "verdict")
    rows = [_figures("all pairs", rate, rate["p_value"])]
    rows += [_figures("  " + pair["pair"], pair, pair["p_holm"]) for pair in rate["pairs"]]
    if width >= WIDTH:
        yield from map(_row, [head, *rows])
        return
    for name, *cells in rows:
        yield name
        facts = [f"{title} {cell}" for title, cell in zip(head[1:], cells, strict=True)]
        yield from _wrap("    " + ", ".join(facts), width, "    ")


def _figures(name: str, item: Mapping[str, JSON], p_value: float | None) -> _Cells:
    interval = item["interval"]
    return (
        name,
        _count(item["a"]),
        _count(item["b"]),
        "-" if item["difference"] is None else f"{100 * item['difference']:+.1f}",
        "-" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}",
        _p(p_value),
        WORDS.get(item["verdict"], str(item["verdict"])),
    )


def _row(cells: _Cells) -> str:
    name, a, b, difference, interval, p, verdict = cells
    short = name if len(name) <= 23 else name[:22] + "~"
    counts = f"{a:>7} {b:>7}" if len(a) + len(b) <= 14 else f"{a} {b}"
    # Long counts take the room of the name's empty end.
    return f"{short:{38 - len(counts)}} {counts} {difference:>6} {interval:>16} {p:>5} {verdict}"


def _count(group: Mapping[str, JSON]) -> str:
    unknown = f"+{group['unresolved']}?" if group["unresolved"] else ""
    return f"{group['count']}{unknown}/{group['n']}"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def _footer(result: Mapping[str, JSON], width: int) -> Iterator[str]:
    many = len(result["comparisons"])
    yield from _wrap(
        "Differences in percentage points. All pairs: stratified Miettinen-Nurminen interval and "
        "exact conditional Cochran-Mantel-Haenszel test. Each pair: Newcombe interval, Fisher's "
        "exact test, p by Holm over the pairs. A verdict needs both the test and the interval; "
        "'none shown' does not say that the agents are alike.",
        width,
    )
    if many > 1:
        yield from _wrap(
            f"{many} comparisons with A, each at {100 * result['confidence_each']:.4g} %, so that "
            f"all hold together at {100 * result['confidence']:.4g} % (Bonferroni), rate by rate.",
            width,
        )
    if any(row["unresolved"] for rate in _all_rates(result) for row in (rate["a"], rate["b"])):
        yield from _wrap(
            "k+u?/n: u unresolved cases; intervals and tests take them at their worst.", width
        )


def _all_rates(result: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    for comparison in result["comparisons"]:
        yield from comparison["rates"]


def _letters() -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent)
