"""docs/report.md names every field, reason and warning that the schemas know."""

import json
import re
from pathlib import Path

import pytest

from impact_twin.report.schema import FILES
from impact_twin.report.warnings import CODES
from impact_twin.resources import data_folder

DOCS = Path(__file__).parents[2] / "docs"


def fields(schema):
    if isinstance(schema, list):
        for item in schema:
            yield from fields(item)
    elif isinstance(schema, dict):
        for key, item in schema.items():
            if key == "properties":
                yield from item
            yield from fields(item)


@pytest.fixture(scope="module")
def words():
    text = (DOCS / "report.md").read_text(encoding="utf-8")
    return set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]+)`", text))))


@pytest.mark.parametrize("name", FILES)
def test_every_field_is_documented(words, name):
    schema = json.loads((data_folder("schemas") / "1" / name).read_text(encoding="utf-8"))
    assert set(fields(schema)) - words == set()


def test_every_warning_is_documented(words):
    assert set(CODES) <= words
