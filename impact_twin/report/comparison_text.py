"""The comparison for a terminal: per rate, the suite row and always the pairs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

from impact_twin.procurement.model import JSON

WIDTH = 80
WORDS = {"no difference shown": "none shown"}


def render_comparison(result: Mapping[str, JSON]) -> str:
    """Return a comparison (`compare_reports`) as text of at most 80 columns."""
    return "\n".join(line.rstrip() for line in _lines(result)) + "\n"


def _lines(result: Mapping[str, JSON]) -> Iterator[str]:
    for letter, report in zip(_letters(), result["reports"], strict=False):
        unresolved = f", {report['unresolved']} unresolved" if report["unresolved"] else ""
        yield from _wrap(
            f"{letter}  {report['name']}: {report['agent']}, n {report['n']}{unresolved}", "   "
        )
    for note in result["notes"]:
        yield from _wrap(f"! {note}", "  ")
    for letter, comparison in zip(_letters()[1:], result["comparisons"], strict=False):
        for rate in comparison["rates"]:
            yield ""
            yield from _rate(rate, letter, result["confidence_each"])
    yield ""
    yield from _footer(result)


def _rate(rate: Mapping[str, JSON], letter: str, confidence: float) -> Iterator[str]:
    name = rate["rate"].replace("_", " ")
    better = "lower" if rate["rate"] == "attack_success" else "higher"
    yield f"{name} ({better} is better)"
    percent = f"{100 * confidence:.4g} % interval"
    yield _row(("", "A", letter, f"{letter} - A", percent, "p", "verdict"))
    yield _figures("all pairs", rate, rate["p_value"])
    for pair in rate["pairs"]:
        yield _figures("  " + pair["pair"], pair, pair["p_holm"])


def _figures(name: str, item: Mapping[str, JSON], p_value: float | None) -> str:
    interval = item["interval"]
    cells = (
        name,
        _count(item["a"]),
        _count(item["b"]),
        "-" if item["difference"] is None else f"{100 * item['difference']:+.1f}",
        "-" if interval is None else f"{100 * interval[0]:+.1f} to {100 * interval[1]:+.1f}",
        _p(p_value),
        WORDS.get(item["verdict"], str(item["verdict"])),
    )
    return _row(cells)


def _row(cells: tuple[str, str, str, str, str, str, str]) -> str:
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


def _footer(result: Mapping[str, JSON]) -> Iterator[str]:
    many = len(result["comparisons"])
    yield from _wrap(
        "Differences in percentage points. All pairs: stratified Miettinen-Nurminen interval and "
        "exact conditional Cochran-Mantel-Haenszel test. Each pair: Newcombe interval, Fisher's "
        "exact test, p by Holm over the pairs. A verdict needs both the test and the interval; "
        "'none shown' does not say that the agents are alike.",
        "",
    )
    if many > 1:
        yield from _wrap(
            f"{many} comparisons with A, each at {100 * result['confidence_each']:.4g} %, so that "
            f"all hold together at {100 * result['confidence']:.4g} % (Bonferroni), rate by rate.",
            "",
        )
    if any(row["unresolved"] for rate in _all_rates(result) for row in (rate["a"], rate["b"])):
        yield from _wrap(
            "k+u?/n: u unresolved cases; intervals and tests take them at their worst.", ""
        )


def _all_rates(result: Mapping[str, JSON]) -> Iterator[Mapping[str, JSON]]:
    for comparison in result["comparisons"]:
        yield from comparison["rates"]


def _letters() -> str:
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent=indent)
