"""What `audit exclusions` shows: removed records, rates, bounds, intervals, and the order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from impact_twin.audit.document import Document, Section, Table
from impact_twin.audit.exclusions import FILTERS, READABLE, Count, Exclusions, Row
from impact_twin.audit.orders import Order
from impact_twin.statistics.intervals import wilson, wilson_with_unresolved

MOST_PAIRS = 30


def exclusions_document(found: Exclusions, source: str, agentdojo: str) -> Document:
    """Return a comparison under a filter as a document.

    Args:
        found: The comparison.
        source: Name of the folder or archive.
        agentdojo: Version of the installed package.
    """
    n = sum(row.labels.n for row in found.rows)
    marks = {row.name: _mark(index) for index, row in enumerate(found.rows)}
    tools = f" ({', '.join(found.tools)})" if found.filter_name == READABLE and found.tools else ""
    where = "from every configuration" if found.matched else "only where it fails"
    lead = (
        f"{source}: {n:,} records of {len(found.rows)} configurations; "
        f"{found.left_aside:,} others were not selected.",
        f"Filter: {FILTERS[found.filter_name]}{tools}. A case that fails is removed {where}.",
        f"Rules of AgentDojo {agentdojo}. Success means success of the attack.",
    )
    sections = [
        *([Section("Warnings", found.warnings)] if found.warnings else []),
        _removed(found, marks),
        _rates(found, marks),
        _evidence(found, marks),
        _order(found, marks),
        _assumptions(),
    ]
    return Document("A comparison under a filter", lead, tuple(sections))


def _removed(found: Exclusions, marks: Mapping[str, str]) -> Section:
    rows = tuple(
        (
            f"{marks[row.name]}: {row.name}",
            str(sum(row.fails_labels.values())),
            str(row.fails_labels.get(True, 0)),
            str(row.fails_labels.get(False, 0)),
            str(sum(row.removed.values())),
            str(row.removed.get(True, 0)),
        )
        for row in found.rows
    )
    columns = (
        "configuration",
        ">fail",
        ">success",
        ">failure",
        ">removed",
        ">success",
    )
    said = (
        f"{sum(sum(row.fails_labels.values()) for row in found.rows)} records fail the filter; "
        f"with them go {len(found.removed_cases)} cases."
        if found.matched
        else "Only the failing records are removed, so configurations keep different cases."
    )
    explained = "Beside the records that fail and those removed in all stand their saved labels."
    table = Table("Removed records", columns, rows)
    return Section("Who is removed", (said, explained), (table,))


def _rates(found: Exclusions, marks: Mapping[str, str]) -> Section:
    rows = tuple(
        (
            f"{marks[row.name]}: {row.name}",
            _share(row.labels),
            _interval(row.labels, found.confidence),
            _share(row.labels_kept),
            _interval(row.labels_kept, found.confidence),
        )
        for row in found.rows
    )
    level = f"{found.confidence:.0%}".replace("%", " %")
    return Section(
        "Saved labels before and after",
        (f"Intervals are Wilson score intervals at {level}.",),
        (
            Table(
                "Attacks saved as successful",
                ("configuration", ">all records", ">Wilson", ">after the filter", ">Wilson"),
                rows,
            ),
        ),
    )


def _evidence(found: Exclusions, marks: Mapping[str, str]) -> Section:
    def table(caption: str, pick: Callable[[Row], Count | None]) -> Table:
        rows = tuple(
            (
                f"{marks[row.name]}: {row.name}",
                str(count.successes),
                str(count.unresolved),
                str(count.n),
                _range(count.successes, count.successes + count.unresolved, count.n),
                _interval(count, found.confidence),
            )
            for row in found.rows
            if (count := pick(row)) is not None
        )
        columns = ("configuration", ">shown", ">unresolved", ">n", ">bounds", ">Wilson")
        return Table(caption, columns, rows)

    tables = [table("Under the loaded rule", lambda row: row.evidence)]
    if any(row.evidence_other for row in found.rows):
        tables.append(table("Under the other rule", lambda row: row.evidence_other))
    said = (
        "Every record is counted. Unresolved: a missing result where the request would have been "
        "a success, a run that ended in an error, a record that no rule could be asked about. "
        "The Wilson interval runs from the lower end for the successes shown to the upper end "
        "for those and the unresolved."
    )
    return Section("What the tool results support", (said,), tuple(tables))


def _order(found: Exclusions, marks: Mapping[str, str]) -> Section:
    rows = tuple(
        (
            f"{marks[order.first]} : {marks[order.second]}",
            f"{order.before[0]}:{order.before[1]}",
            f"{order.after[0]}:{order.after[1]}" + (" reversed" if order.reversed else ""),
            _bounds(order),
            _verdict(order, marks, found.confidence),
        )
        for order in sorted(found.orders, key=lambda order: not order.reversed)
    )
    columns = ("pair", ">labels before", ">labels after", ">evidence", "can it be settled?")
    table = Table("Every pair, on the cases that both have", columns, rows, most=MOST_PAIRS)
    said = (
        "Evidence settles an order on these cases if the bounds are apart. Sampling settles it "
        "if, besides, the exact McNemar test on the paired cases, with the unresolved completed "
        f"against it and Holm's correction over the {len(found.orders)} pairs, has "
        f"p <= {1 - found.confidence:.3g}."
    )
    reversed_pairs = [order for order in found.orders if order.reversed]
    notes = [_reversal(order) for order in reversed_pairs]
    return Section("Can the order be settled?", (said,), (table,) if rows else (), tuple(notes))


def _reversal(order: Order) -> str:
    if order.settled:
        closing = "The evidence over all records settles the order all the same."
    else:
        closing = f"The evidence, {_bounds(order)}, does not settle the order."
    return (
        f"The filter turns {order.first} against {order.second} around: "
        f"{order.before[0]} to {order.before[1]} becomes {order.after[0]} to {order.after[1]}. "
        + closing
    )


def _bounds(order: Order) -> str:
    low, high, other_low, other_high = order.evidence
    return f"{_pair(low, high)} against {_pair(other_low, other_high)}"


def _verdict(order: Order, marks: Mapping[str, str], confidence: float) -> str:
    if not order.settled:
        return "no: the bounds overlap"
    more = marks[order.first if order.settled == "first" else order.second]
    if order.p <= 1 - confidence:
        return f"yes: more in {more} (p = {order.p:.2g})"
    return f"here more in {more}; by sampling no (p = {order.p:.2g})"


def _mark(index: int) -> str:
    """Return A to Z, then AA, AB, ...: short names for the table of pairs."""
    mark = chr(ord("A") + index % 26)
    return (_mark(index // 26 - 1) if index >= 26 else "") + mark


def _assumptions() -> Section:
    said = (
        "Wilson intervals treat cases as independent draws; benchmark cases are chosen, not "
        "drawn, so they speak of cases like these and not of other attacks. A selection made "
        "after seeing results is exploratory. A request without a visible result is a success "
        "only if the tool did what the installed one does."
    )
    return Section("What this does not show", (said,))


def _pair(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def _range(low: int, high: int, n: int) -> str:
    return f"{_pair(low, high)} of {n}"


def _share(count: Count) -> str:
    extra = f" (+{count.unresolved}?)" if count.unresolved else ""
    return f"{count.successes}/{count.n}{extra}"


def _interval(count: Count, confidence: float) -> str:
    k, u, n = count.successes, count.unresolved, count.n
    found: Sequence[float] | None = (
        wilson_with_unresolved(k, u, n, confidence) if u else wilson(k, n, confidence)
    )
    if found is None:
        return "none (n = 0)"
    return f"{100 * found[0]:.1f} to {100 * found[1]:.1f} %"
