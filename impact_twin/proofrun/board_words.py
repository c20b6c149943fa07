"""The words that every form of the board shares. Names in them are as the files have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from impact_twin.proofrun.board import HOW, Board, RepositoryRuns, Row, SuiteBoard
from impact_twin.proofrun.board_entry import Facts
from impact_twin.proofrun.eligibility import CONFIDENCE
from impact_twin.proofrun.tiers import UNKNOWABLE

TITLE = "ImpactTwin board"
NOTHING = "There is no bundle that verifies."
NOBODY = "Nothing here may be ranked."
LIMITS = (HOW, f"What no board can know. {' '.join(UNKNOWABLE)}")
LABELS = ("stable", "variable", "undetermined")


def suite_line(board: SuiteBoard) -> str:
    """Which suite, and how many submissions."""
    return (
        f"{board.suite}: {len(board.rows)} ranked, {len(board.unranked)} verified but not ranked. "
        f"Suite digest {board.digest}"
    )


def labels(facts: Facts) -> str:
    """How many pairs have which label."""
    return ", ".join(f"{facts.labels[name]} {name}" for name in LABELS if facts.labels.get(name))


def size(facts: Facts) -> str:
    """How much was run."""
    return f"{facts.trials} trials, n {facts.n}"


def alike(row: Row, rows: Sequence[Row]) -> str:
    """Which rows it can't be told apart from; rows are named by file, since ranks may be shared."""
    if row.alike is None:
        return "not compared"
    if not row.alike:
        return "told apart from every other row" if len(rows) > 1 else "no other row"
    names = [f"{rows[place - 1].rank} ({rows[place - 1].entry.name})" for place in row.alike]
    return f"can't be told apart from {', '.join(names)}"


def multiplicity(board: SuiteBoard) -> str:
    """How rows were told apart."""
    if not board.comparisons:
        return "There are no two rows to compare."
    return (
        f"Rows are told apart by secure utility over all pairs (stratified Miettinen-Nurminen "
        f"interval and exact conditional test, both): {board.comparisons} comparisons, each at "
        f"{100 * board.confidence_each:.6g} %, so that all hold together at {100 * CONFIDENCE:g} % "
        "(Bonferroni). Not told apart doesn't mean alike."
    )


def repository(found: RepositoryRuns) -> str:
    """What is seen of a repository's runs."""
    how = "certified" if found.certified else "claimed"
    number = (
        "no run number is claimed"
        if found.run_number is None
        else f"the highest run number claimed is {found.run_number}, so at least as many were "
        "started"
    )
    bundles = "1 bundle" if found.bundles == 1 else f"{found.bundles} bundles"
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    return f"{found.name} ({how}): {bundles} of {runs} here; {number}"


def reasons(texts: Sequence[str]) -> str:
    """Several sentences as one line."""
    return " ".join(texts)


def board_json(board: Board) -> dict[str, object]:
    """Return the board as JSON; texts are as the files have them."""
    return {
        "kind": "impact-twin/board",
        "schema_version": 1,
        "ranked_by": "the lower end of the Wilson interval of secure_utility",
        "confidence": CONFIDENCE,
        "notes": list(board.notes),
        "boards": [_suite_json(found) for found in board.boards],
        "refused": [
            {"file": entry.name, "bundle": entry.digest or None, "problem": entry.problem}
            for entry in board.refused
        ],
        "repositories": [
            {
                "repository": found.name,
                "certified": found.certified,
                "bundles": found.bundles,
                "runs": found.runs,
                "run_number": found.run_number,
            }
            for found in board.repositories
        ],
    }


def _suite_json(board: SuiteBoard) -> dict[str, object]:
    return {
        "suite": {"id": board.suite, "digest": board.digest},
        "comparisons": board.comparisons,
        "confidence_each": board.confidence_each,
        "notes": list(board.notes),
        "rows": [
            {
                "rank": row.rank,
                **_facts_json(row.entry.name, row.facts),
                "not_told_apart_from": None
                if row.alike is None
                else [board.rows[place - 1].entry.name for place in row.alike],
            }
            for row in board.rows
        ],
        "not_ranked": [
            {
                **_facts_json(item.entry.name, item.facts),
                "reasons": [{"code": why.code, "text": why.text} for why in item.reasons],
            }
            for item in board.unranked
        ],
    }


def _facts_json(name: str, facts: Facts) -> dict[str, object]:
    rates: Mapping[str, Mapping[str, object]] = facts.rates
    return {
        "file": name,
        "bundle": facts.bundle_digest,
        "report": facts.report_digest,
        "plan": facts.plan_digest,
        "submitter": facts.submitter,
        "source": facts.source,
        "agent": facts.agent,
        "tier": facts.tier,
        "missing": list(facts.missing),
        "trials": facts.trials,
        "n": facts.n,
        "classes": dict(facts.classes),
        "labels": {label: facts.labels.get(label, 0) for label in LABELS},
        "rates": {rate: dict(found) for rate, found in rates.items()},
        "run": None
        if facts.run is None
        else {
            "repository": facts.run.repository,
            "certified": facts.run.certified,
            "run_id": facts.run.run_id or None,
            "run_number": facts.run.run_number,
        },
    }
