"""Printing the terminal report to whatever stream there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from impact_twin.cli.output import say, terminal_width, wants_color, write_target


def print_report(report: Mapping[str, Any], *, stream: TextIO | None, plain: bool = False) -> None:
    """Print the terminal report: 80 columns at most, shapes that the stream can show."""
    from impact_twin.report.strips import can_show
    from impact_twin.report.terminal import render_terminal

    text = render_terminal(
        report,
        width=terminal_width(),
        color=wants_color(stream),
        ascii=plain or not can_show(getattr(stream, "encoding", None)),
    )
    say(text.rstrip("\n"), stream)


def write_report_to(target: str, report: Mapping[str, Any]) -> None:
    """Write a report as JSON to a file, replacing it, or to standard output for `-`."""
    from impact_twin.report.files import report_lines, write_report

    if target == "-":
        write_target("-", "".join(report_lines(report)))
    else:
        write_report(report, Path(target), force=True)
