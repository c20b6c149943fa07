"""The board: verified bundles side by side, ranked by what they can't have got by hiding."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.board_entry import Entry, Facts
from impact_twin.proofrun.eligibility import CONFIDENCE, Reason
from impact_twin.proofrun.tiers import TIERS

RANKED_BY = "secure_utility"
MOST_COMPARED = 60
"""Rows of one board that are compared with each other, the best first."""

HOW = (
    "Ranked by the lower end of the Wilson interval of secure utility. An unresolved case counts "
    "as not secure there, so hiding a case never helps. Figures speak of repeated executions of "
    "the suite's own pairs, not of other tasks."
)


@dataclass(frozen=True)
class Row:
    """One ranked submission.

    Attributes:
        rank: From 1; rows with the same lower bound share it.
        entry: The file.
        facts: What it holds.
        alike: Places (from 1, in order of rows) of the rows that it can't be told apart from; None
            when it was not compared.
    """

    rank: int
    entry: Entry
    facts: Facts
    alike: tuple[int, ...] | None


@dataclass(frozen=True)
class Unranked:
    """A submission that verifies and isn't ranked, with every reason."""

    entry: Entry
    facts: Facts
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class SuiteBoard:
    """The submissions on one suite; those on another are not comparable.

    Attributes:
        suite: The suite's id, as the reports name it.
        digest: Its digest.
        rows: The ranked ones, the best first.
        unranked: The others.
        comparisons: How many pairs of rows were compared.
        confidence_each: Confidence of each comparison, so that all hold together at `CONFIDENCE`.
        notes: What a reader should know of the rows, one sentence each; may hold text of theirs.
    """

    suite: str
    digest: str
    rows: tuple[Row, ...]
    unranked: tuple[Unranked, ...]
    comparisons: int
    confidence_each: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RepositoryRuns:
    """What is seen of the runs of one repository.

    Attributes:
        name: `owner/name`.
        certified: Whether a certificate names it for every one of them; otherwise some only claim.
        bundles: How many bundles here come from it.
        runs: How many different runs of it they name.
        run_number: The highest run number that they claim: at least as many runs were started.
    """

    name: str
    certified: bool
    bundles: int
    runs: int
    run_number: int | None


@dataclass(frozen=True)
class Board:
    """All boards of a folder.

    Attributes:
        boards: One for each suite, the one with the most rows first.
        refused: Files that can't be read, don't verify, or whose attestation does not hold.
        repositories: Where the bundles come from.
        notes: What concerns the whole board.
    """

    boards: tuple[SuiteBoard, ...]
    refused: tuple[Entry, ...]
    repositories: tuple[RepositoryRuns, ...]
    notes: tuple[str, ...]


def make_board(entries: Sequence[Entry], notes: Sequence[str] = ()) -> Board:
    """Rank entries.

    Args:
        entries: Files that were verified, in any order; it does not change the result.
        notes: What concerns the whole board.
    """
    entries = sorted(entries, key=lambda entry: entry.name)
    valid: dict[str, list[tuple[Entry, Facts]]] = defaultdict(list)
    for entry in entries:
        if entry.facts is not None:
            valid[entry.facts.suite_digest].append((entry, entry.facts))
    boards = [_suite_board(digest, found) for digest, found in sorted(valid.items())]
    return Board(
        boards=tuple(sorted(boards, key=lambda board: -len(board.rows))),
        refused=tuple(entry for entry in entries if entry.facts is None),
        repositories=tuple(_repositories([entry.facts for entry in entries if entry.facts])),
        notes=tuple(notes),
    )


def lower_bound(facts: Facts) -> float:
    """Return what a submission is ranked by; 0 when it has no interval."""
    interval = facts.rates[RANKED_BY]["wilson"]
    # Verifying lets a figure differ by its last unit, which must not decide a rank.
    return 0.0 if interval is None else round(float(interval[0]), 9)


def _suite_board(digest: str, found: Sequence[tuple[Entry, Facts]]) -> SuiteBoard:
    unranked = [Unranked(entry, facts, facts.reasons) for entry, facts in found if facts.reasons]
    kept, copies = _without_copies([item for item in found if not item[1].reasons])
    kept.sort(key=lambda item: (-lower_bound(item[1]), item[0].name))
    alike, comparisons, each = _alike([facts for _, facts in kept])
    bounds = [lower_bound(facts) for _, facts in kept]
    rows = [
        Row(bounds.index(bounds[place]) + 1, entry, facts, alike.get(place))
        for place, (entry, facts) in enumerate(kept)
    ]
    return SuiteBoard(
        suite=found[0][1].suite_id,
        digest=digest,
        rows=tuple(rows),
        unranked=(*unranked, *copies),
        comparisons=comparisons,
        confidence_each=each,
        notes=(*_notes(rows), *_claimed_twice(found)),
    )


def _without_copies(
    found: Sequence[tuple[Entry, Facts]],
) -> tuple[list[tuple[Entry, Facts]], list[Unranked]]:
    """Keep one of each report: that of the strongest tier, then the first by name."""
    order = sorted(found, key=lambda item: (-TIERS.index(item[1].tier), item[0].name))
    kept: list[tuple[Entry, Facts]] = []
    copies: list[Unranked] = []
    bundles: dict[str, Entry] = {}
    reports: dict[str, Entry] = {}
    owners: dict[tuple[JSON, ...], str] = {}
    for entry, facts in order:
        same = bundles.setdefault(entry.digest, entry)
        if same is not entry:
            reason = Reason("same_bundle", f"It is the same bundle as {same.name}.")
        elif (same := reports.setdefault(facts.report_digest, entry)) is not entry:
            reason = Reason("same_report", f"It holds the same report as {same.name}.")
        elif (origin := _copied_from(facts, owners)) is not None:
            reason = Reason("same_runs", f"Half of its cases or more are those of {origin}.")
        else:
            kept.append((entry, facts))
            owners.update((start, entry.name) for start in facts.starts)
            continue
        copies.append(Unranked(entry, facts, (reason,)))
    return kept, copies


def _copied_from(facts: Facts, owners: Mapping[tuple[JSON, ...], str]) -> str | None:
    """Return the name of the entry that half of the cases are copied from; None without one."""
    shared = Counter(owners[start] for start in facts.starts if start in owners)
    for name, count in shared.most_common(1):
        if 2 * count >= len(facts.starts):
            return name
    return None


def _alike(rows: Sequence[Facts]) -> tuple[dict[int, tuple[int, ...]], int, float]:
    """Compare every two rows.

    Returns:
        For each compared row the places of those that it can't be told apart from, the number of
        comparisons, and the confidence of each (Bonferroni).
    """
    from impact_twin.statistics.compare import NO_DIFFERENCE_SHOWN, compare_counts

    places = range(min(len(rows), MOST_COMPARED))
    pairs = list(combinations(places, 2))
    each = 1 - (1 - CONFIDENCE) / max(1, len(pairs))
    alike: dict[int, list[int]] = {place: [] for place in places}
    for one, other in pairs:
        a, b = rows[one].pairs, rows[other].pairs
        columns = [(name, a[name], b[name]) for name in a if name in b]
        if compare_counts(columns, RANKED_BY, each).verdict == NO_DIFFERENCE_SHOWN:
            alike[one].append(other + 1)
            alike[other].append(one + 1)
    return {place: tuple(sorted(found)) for place, found in alike.items()}, len(pairs), each


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    if len(rows) > MOST_COMPARED:
        yield f"Only the first {MOST_COMPARED} rows were compared with each other."
    by_agent: dict[tuple[str, str], list[Row]] = defaultdict(list)
    by_plan: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_agent[row.facts.submitter.casefold(), row.facts.agent].append(row)
        by_plan[row.facts.plan_digest].append(row)
    for same in by_agent.values():
        if len(same) > 1:
            yield (
                f"{_listed(same)}: {len(same)} runs of the agent {same[0].facts.agent} by "
                f"{same[0].facts.submitter}. The best of several runs flatters the agent."
            )
    for same in by_plan.values():
        if len(same) > 1:
            yield (
                f"{_listed(same)} share one plan: the plan was run again, or one is made from the "
                "other."
            )


def _claimed_twice(found: Sequence[tuple[Entry, Facts]]) -> Iterator[str]:
    """Reports that several submitters send; the files don't tell whose they are."""
    by_report: dict[str, list[tuple[Entry, Facts]]] = defaultdict(list)
    for entry, facts in found:
        by_report[facts.report_digest].append((entry, facts))
    for same in by_report.values():
        submitters = {facts.submitter.casefold(): facts.submitter for _, facts in same}
        if len(submitters) > 1:
            yield (
                f"{', '.join(entry.name for entry, _ in same)} hold one report, sent by "
                f"{', '.join(submitters.values())}. The files don't tell whose run it was."
            )


def _listed(rows: Sequence[Row]) -> str:
    return ", ".join(row.entry.name for row in rows)


def _repositories(found: Sequence[Facts]) -> Iterator[RepositoryRuns]:
    # GitHub does not tell upper from lower case in names.
    by_name: Mapping[str, list[Facts]] = defaultdict(list)
    for facts in found:
        if facts.run is not None:
            by_name[facts.run.repository.casefold()].append(facts)
    for _, same in sorted(by_name.items()):
        runs = [facts.run for facts in same if facts.run is not None]
        numbers = [run.run_number for run in runs if run.run_number is not None]
        yield RepositoryRuns(
            name=runs[0].repository,
            certified=all(run.certified for run in runs),
            bundles=len({facts.bundle_digest for facts in same}),
            runs=len({run.run_id for run in runs if run.run_id}),
            run_number=max(numbers, default=None),
        )
