"""Processor time and size of a report's exports; the page must keep to its budget.

Run: python benchmarks/export_speed.py REPORT
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from impact_twin.report.csv_table import csv_text
from impact_twin.report.evidence import suite_of_report
from impact_twin.report.files import load_report
from impact_twin.report.html.page import html_page
from impact_twin.report.junit import junit_text
from impact_twin.report.markdown import markdown_text
from impact_twin.report.sarif import sarif_text

BUDGET_SECONDS = 5.0
BUDGET_BYTES = 5_000_000


def main(source: str) -> int:
    """Print a table; return 1 when the page is over its budget."""
    began = time.process_time()
    report = load_report(source)
    suite = suite_of_report(report)
    exports: dict[str, Callable[[], str]] = {
        "html": lambda: html_page(report, suite),
        "markdown": lambda: markdown_text(report, suite),
        "csv": lambda: csv_text(report),
        "sarif": lambda: sarif_text(report, suite),
        "junit": lambda: junit_text(report),
    }
    print(f"{report['plan']['trials']} trials of {len(report['plan']['pairs'])} pairs")
    print(f"{'reading':<10}{time.process_time() - began:>8.2f} s")
    kept = True
    for name, make in exports.items():
        began = time.process_time()
        size = len(make().encode())
        seconds = time.process_time() - began
        print(f"{name:<10}{seconds:>8.2f} s{size / 1e6:>8.2f} MB")
        if name == "html":
            kept = seconds < BUDGET_SECONDS and size < BUDGET_BYTES
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
