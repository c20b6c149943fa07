"""docs/exports.md names every column and what fails a pair."""

import re
from pathlib import Path

from impact_twin.report.csv_table import CASE_COLUMNS, PAIR_COLUMNS
from impact_twin.report.html import charts
from impact_twin.report.junit import HARM
from impact_twin.report.markdown import LIMIT

TEXT = (Path(__file__).parents[3] / "docs" / "exports.md").read_text(encoding="utf-8")


def test_the_columns_are_documented():
    table = TEXT.split("## CSV", 1)[1].split("## SARIF", 1)[0]
    heads = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for head in heads for name in re.findall(r"`(\w+)`", head)]
    assert sorted(named) == sorted({*PAIR_COLUMNS, *CASE_COLUMNS})


def test_the_figures_are_those_of_the_code():
    assert f"{LIMIT:,} bytes" in TEXT
    assert f"up to {charts.MOST_TILES:,} trials" in TEXT
    for name in HARM:
        assert f"`{name}`" in TEXT
