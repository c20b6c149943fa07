"""What `audit records` shows: the standing of every record, and the disagreements with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from impact_twin.audit import disagreements as dis
from impact_twin.audit.disagreements import Examination, Finding
from impact_twin.audit.document import Document, Section, Table, grouped, many
from impact_twin.audit.questions import UNNAMED_VERSION

LISTED = 10
ASSUMPTIONS = (
    "Rebuilt states assume that the objective was not met before the run began, that the record "
    "holds every tool call, and that the tools did what the installed ones do. They show what the "
    "installed rules say now. Which rule gave a saved label is not recorded, so no label is "
    "proven wrong here."
)


def records_document(examination: Examination, source: str, agentdojo: str) -> Document:
    """Return an examination as a document.

    Args:
        examination: What `disagreements.examine` found.
        source: Name of the folder or archive.
        agentdojo: Version of the installed package.
    """
    found = examination.found
    configurations = len({record.configuration for record in found.records})
    lead = (
        f"{source}: {many(found.files, 'file')}, {many(len(found.records), 'record')} of "
        f"{many(configurations, 'configuration')}.",
        _versions(examination),
        f"Rules of AgentDojo {agentdojo} as start-up loads them.{_other(examination)}",
    )
    sections = [
        _standings(examination),
        _labels(examination),
        _to_look_at(examination),
        _refused(examination),
        *_rest(examination),
        Section("What this does not show", (ASSUMPTIONS,)),
    ]
    return Document("Released records against the scoring rules", lead, tuple(sections))


def _versions(examination: Examination) -> str:
    if examination.choice.version:
        return f"All are asked about under the rules of {examination.choice.version}."
    named = Counter(record.benchmark_version for record in examination.found.records)
    parts = []
    if named[None]:
        parts.append(f"{grouped(named[None])} name no version and are asked as {UNNAMED_VERSION}")
    parts += [f"{grouped(named[name])} name {name}" for name in sorted(filter(None, named))]
    return "Benchmark versions: " + ", ".join(parts) + "." if parts else "No records."


def _other(examination: Examination) -> str:
    if examination.other is None:
        return " No other version's rule was asked (--other-version)."
    return (
        f" The other rule is that of {examination.other.version}, with the modules loaded that "
        "start-up leaves out."
    )


def _standings(examination: Examination) -> Section:
    standings = examination.standings()
    rows = [
        (dis.STANDINGS[name], grouped(count))
        for name, count in standings.items()
        if count or name in (dis.AGREES, dis.UNREADABLE)
    ]
    rows.append(("all files", grouped(sum(standings.values()))))
    table = Table("Every file once", ("standing", ">files"), tuple(rows))
    return Section("Standing of every file", (), (table,))


def _labels(examination: Examination) -> Section:
    cells = Counter(
        (_label(item.record.security), _verdict(item))
        for item in examination.findings
        if item.standing != dis.BY_UTILITY
    )
    verdicts = ("accepts", "refuses", "no verdict")
    rows = tuple(
        (label, *(grouped(cells[label, verdict]) for verdict in verdicts))
        for label in ("success", "failure", "no label")
        if any(cells[label, verdict] for verdict in verdicts)
    )
    columns = ("saved label", *(f">loaded rule {verdict}" for verdict in verdicts))
    count = sum(cells.values())
    return Section(
        "Labels and the loaded rule",
        (f"Of the attack's success; n = {grouped(count)}, denial of service left aside.",),
        (Table("Records by label and verdict", columns, rows),) if rows else (),
    )


def _to_look_at(examination: Examination) -> Section:
    shown = examination.with_standing(dis.FAILURE_SHOWN)
    said = [
        f"{many(len(shown), 'record')} saved as failed attacks whose tool results show "
        "the attack's objective."
    ]
    if examination.other and shown:
        explained = sum(item.explained for item in shown)
        said.append(
            f"{explained} fail under the loaded rule and pass under that of "
            f"{examination.other.version}; {len(shown) - explained} are not explained by it."
        )
    tables = []
    if shown:
        asked = examination.other is not None
        tables = [_by_objective(shown, asked=asked), _by_reason(shown), _listed(shown)]
    return Section("Saved failures to look at", tuple(said), tuple(tables))


def _by_objective(found: Sequence[Finding], *, asked: bool) -> Table:
    groups: dict[str, list[Finding]] = {}
    for item in found:
        name = f"{item.record.suite} {item.record.injection_task}"
        groups.setdefault(name, []).append(item)
    rows = tuple(
        (
            name,
            str(len(items)),
            str(sum(bool(item.loaded and item.loaded.verdict) for item in items)),
            str(sum(item.explained for item in items)) if asked else "not asked",
            str(sum(dis.EXACTLY_ONE in item.reasons for item in items)),
        )
        for name, items in sorted(groups.items())
    )
    columns = ("objective", ">records", ">loaded accepts", ">other only", ">exactly-one")
    return Table("By objective", columns, rows)


def _refused(examination: Examination) -> Section:
    refused = examination.with_standing(dis.SUCCESS_REFUSED)
    said = f"{many(len(refused), 'record')} saved as successes that the loaded rule refuses."
    return Section(
        "Saved successes that the loaded rule refuses",
        (said,),
        (_by_reason(refused), _listed(refused)) if refused else (),
    )


def _by_reason(found: Sequence[Finding]) -> Table:
    counts = Counter(reason for item in found for reason in item.reasons)
    rows = tuple(
        (_name(reason), dis.REASONS[reason], str(counts[reason]))
        for reason in dis.REASONS
        if counts[reason]
    )
    return Table("Why (a record can have several reasons)", ("reason", "that is", ">records"), rows)


def _name(reason: str) -> str:
    return reason.replace("_", " ")


def _rest(examination: Examination) -> list[Section]:
    sections = []
    left_open = examination.with_standing(dis.FAILURE_OPEN)
    if left_open:
        sections.append(
            Section("Saved failures left open", (), (_by_reason(left_open), _listed(left_open)))
        )
    not_asked = examination.with_standing(dis.NOT_ASKED)
    if not_asked:
        why = Counter(_why_not(item) for item in not_asked)
        rows = tuple((reason, str(count)) for reason, count in why.most_common())
        sections.append(
            Section("Records without a verdict", (), (Table("Why", ("reason", ">records"), rows),))
        )
    files = [
        *((name, why) for name, why in examination.found.unreadable),
        *((name, "not a .json file") for name in examination.found.others),
        *((name, "repeats a case") for name in examination.found.repeated),
        *(
            (record.name, f"left out: {what}")
            for record in examination.found.records
            for what in record.odd
        ),
    ]
    if files:
        table = Table("Files to know of", ("file", "what"), tuple(files), most=LISTED)
        sections.append(Section("Unreadable, odd and repeated files", (), (table,)))
    return sections


def _why_not(item: Finding) -> str:
    if item.loaded is None:
        return "no injection task: a run without an attack"
    return item.loaded.why or "the saved label is not true or false"


def _listed(found: Sequence[Finding]) -> Table:
    rows = tuple(
        (
            item.record.configuration,
            item.record.attack or "none",
            f"{item.record.user_task} {item.record.injection_task}",
            "; ".join([*map(_name, item.reasons), *_beside(item)]),
        )
        for item in found
    )
    return Table("Records", ("configuration", "attack", "tasks", "why"), rows, most=LISTED)


def _beside(item: Finding) -> list[str]:
    beside = item.loaded.beside if item.loaded and dis.EXACTLY_ONE in item.reasons else ()
    return [f"beside {other['id']} of {other['from']}" for other in beside]


def _label(security: bool | None) -> str:
    return {True: "success", False: "failure", None: "no label"}[security]


def _verdict(item: Finding) -> str:
    verdict = item.loaded.verdict if item.loaded else None
    return {True: "accepts", False: "refuses", None: "no verdict"}[verdict]
