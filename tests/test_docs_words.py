"""The pages of docs/ hold no word that waits for something to be written in its place."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_waits_to_be_filled_in(page):
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"(?m)^[A-Z]{4,}$|: [A-Z]{4,}$|TODO|TBD|FIXME|XXX", text)
