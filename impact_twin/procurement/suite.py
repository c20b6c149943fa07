"""A suite: its pairs, its tools, its digest, and how it is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from impact_twin.canonical import digest, digest_bytes
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON, ToolSpec
from impact_twin.procurement.records import MARKER, Pair
from impact_twin.procurement.suite_checks import check_pair, check_suite
from impact_twin.procurement.suite_files import SuiteFolder
from impact_twin.procurement.suite_reader import read_pair
from impact_twin.procurement.suite_schema import check_schema
from impact_twin.procurement.tools import tool_specs
from impact_twin.resources import data_folder

BUNDLED = ("procurement-v1",)


@dataclass(frozen=True)
class Suite:
    """A frozen, versioned set of pairs with its tools and scoring.

    Attributes:
        id: The suite's id.
        digest: ``sha256:<hex>`` of `manifest`.
        title: Title for people.
        system_directive: What every agent is told besides the request.
        scoring_rule: Name and version of the scoring rule.
        score_tolerance: How far a score may lie above the expected one, in points of 100.
        pairs: The pairs, in order.
        tools: The tools, in order.
        folder: Where it was loaded from.
        golden: The golden logs as JSON, by file name, in order.
        manifest: All that the digest covers, as JSON.
        bundled: Whether it came with the package.
    """

    id: str
    digest: str
    title: str
    system_directive: str
    scoring_rule: str
    score_tolerance: float
    pairs: tuple[Pair, ...] = field(repr=False)
    tools: tuple[ToolSpec, ...] = field(repr=False)
    folder: Path
    golden: dict[str, Any] = field(repr=False)
    manifest: dict[str, JSON] = field(repr=False)
    bundled: bool = False

    def pair(self, pair_id: str) -> Pair:
        """Return a pair.

        Raises:
            InputError: the suite has no such pair.
        """
        for pair in self.pairs:
            if pair.id == pair_id:
                return pair
        names = ", ".join(pair.id for pair in self.pairs)
        raise InputError(f"the suite {self.id} has no pair of that name", mend=f"It has {names}.")


def load_suite(folder: Path | None = None) -> Suite:
    """Load a suite and check everything in it.

    Args:
        folder: A user's own suite; None for the bundled procurement-v1.

    Raises:
        InputError: something in it is missing, refused or contradicts itself; one line that names
            the file and the field.
    """
    if folder is None:
        return _bundled(BUNDLED[0])
    return _load(SuiteFolder(Path(folder)), bundled=False)


def bundled_suites() -> tuple[Suite, ...]:
    """Return every suite that the package carries, oldest first."""
    return tuple(_bundled(name) for name in BUNDLED)


def suite_by_digest(wanted: str) -> Suite | None:
    """Return the bundled suite with this digest; None when there is none."""
    return next((suite for suite in bundled_suites() if suite.digest == wanted), None)


@cache
def _bundled(name: str) -> Suite:
    return _load(SuiteFolder(data_folder("pairs") / name, links=True), bundled=True)


def _load(folder: SuiteFolder, *, bundled: bool) -> Suite:
    head = folder.json("suite.json")
    check_schema("suite", head, folder.where("suite.json"))
    pairs, files = [], {}
    for name in head["pairs"]:
        data = folder.json(f"{name}/pair.json")
        where = folder.where(f"{name}/pair.json")
        check_schema("pair", data, where)
        pair = read_pair(folder, name, data)
        check_pair(pair, name, where, head["score_tolerance"])
        pairs.append(pair)
        files[name] = data
    golden = _golden(folder, head.get("golden"), checked=not bundled)
    manifest = _manifest(head, pairs, files, golden)
    suite = Suite(
        id=head["id"],
        digest=digest(manifest),
        title=head["title"],
        system_directive=head["system_directive"],
        scoring_rule=head["scoring_rule"],
        score_tolerance=head["score_tolerance"],
        pairs=tuple(pairs),
        tools=tool_specs(),
        folder=folder.root,
        golden=golden,
        manifest=manifest,
        bundled=bundled,
    )
    check_suite(suite, folder.where("suite.json"), head["canary"])
    return suite


def _golden(folder: SuiteFolder, name: str | None, *, checked: bool) -> dict[str, Any]:
    # The bundled golden files are checked by a test: at start-up that would take half the time.
    if name is None:
        return {}
    found = {}
    for file in folder.names(name, ".json"):
        data = folder.json(f"{name}/{file}")
        if checked:
            check_schema("golden", data, folder.where(f"{name}/{file}"))
        found[file] = data
    return found


def _manifest(
    head: dict[str, Any], pairs: list[Pair], files: dict[str, Any], golden: dict[str, Any]
) -> dict[str, JSON]:
    """Return all that an agent can see or be scored by; neither the canary nor a folder's name."""
    return {
        "kind": "impact-twin/suite-manifest",
        "schema_version": 1,
        "id": head["id"],
        "system_directive": head["system_directive"],
        "scoring_rule": head["scoring_rule"],
        "score_tolerance": head["score_tolerance"],
        "tools": [
            {
                "name": spec.name,
                "description": spec.description,
                "parameters": dict(spec.parameters),
            }
            for spec in tool_specs()
        ],
        "pairs": [_pair_manifest(pair, files[pair.id]) for pair in pairs],
        "golden": [
            {"name": data["name"], "digest": digest({**data, "about": ""})}
            for _, data in sorted(golden.items())
        ],
    }


def _pair_manifest(pair: Pair, data: dict[str, Any]) -> dict[str, JSON]:
    facts = {key: value for key, value in data.items() if key != "documents"}
    documents = [
        {key: value for key, value in item.items() if key != "file"}
        | {"text": _text_digest(pair.documents[item["id"]].text)}
        for item in data["documents"]
    ]
    return {
        **facts,
        "documents": documents,
        "marker": MARKER,
        "request": _text_digest(pair.request),
        "passages": {
            "clean": _text_digest(pair.passages[0]),
            "poisoned": _text_digest(pair.passages[1]),
        },
        "expected_scores": {vendor: round(score, 9) for vendor, score in pair.scores.items()},
    }


def _text_digest(text: str) -> str:
    return digest_bytes(text.encode("utf-8"))
