"""What `audit rules` shows: findings about the loaded rules, and what differs from a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from impact_twin.audit.document import Document, Section, Table, many
from impact_twin.audit.snapshot import Change, Comparison

_PREFIX = "agentdojo.default_suites."
STATE_NAMES = {
    "start": "as start-up loads them",
    "imported": "after importing the modules that start-up leaves out",
    "rebuilt": "after importing them and rebuilding the lists",
}


def rules_report(
    survey: Mapping[str, Any],
    comparisons: Mapping[str, Comparison],
    snapshot: Mapping[str, Any],
    state: str,
    against: tuple[str, Comparison] | None,
) -> dict[str, Any]:
    """Return the report as a JSON value.

    Args:
        survey: What `snapshot.survey` found.
        comparisons: Start-up against each other state that was surveyed.
        snapshot: The rules described: one state, possibly some versions only.
        state: Which state that is.
        against: Name of the stored snapshot and the comparison with it.
    """
    return {
        "kind": "impact-twin/audit-rules-report",
        "schema_version": 1,
        "state": state,
        "snapshot": dict(snapshot),
        "if_loaded": {
            "modules": list(survey.get("loaded", [])),
            **{name: comparison_json(item) for name, item in comparisons.items()},
        },
        "against": {"file": against[0], **comparison_json(against[1])} if against else None,
    }


def comparison_json(found: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON value."""
    return {
        "same": found.same,
        "changed": [change.__dict__ | {"parts": list(change.parts)} for change in found.changed],
        "changed_tasks": len({(item.suite, item.task) for item in found.changed}),
        "added": [list(key) for key in found.added],
        "removed": [list(key) for key in found.removed],
    }


def rules_document(
    report: Mapping[str, Any],
    comparisons: Mapping[str, Comparison],
    against: tuple[str, Comparison] | None,
    *,
    list_rules: bool,
) -> Document:
    """Return the report as a document.

    Args:
        report: What `rules_report` made.
        comparisons: As there.
        against: As there.
        list_rules: Whether the terminal shows the table of all rules too; the page always does.
    """
    snapshot = report["snapshot"]
    rules = snapshot["rules"]
    versions = list(dict.fromkeys(rule["version"] for rule in rules))
    suites = list(dict.fromkeys(rule["suite"] for rule in rules))
    lead = (
        f"AgentDojo {snapshot['agentdojo']}, {STATE_NAMES[report['state']]}: "
        f"{many(len(rules), 'rule')} ({many(len(versions), 'benchmark version')}, "
        f"{many(len(suites), 'suite')}).",
    )
    sections = [
        *([_against(*against)] if against else []),
        _left_out(snapshot, report["if_loaded"]["modules"], comparisons),
        _overwritten(rules, versions),
        _stale(rules, versions),
        _altered(rules),
        _listing(rules, page_only=not list_rules),
    ]
    return Document("Scoring rules of AgentDojo", lead, tuple(sections))


def _against(name: str, found: Comparison) -> Section:
    tasks = {(item.suite, item.task) for item in found.changed}
    moved = sum(item.moved_only for item in found.changed)
    said = (
        f"{many(len(found.changed), 'rule')} of {many(len(tasks), 'task')} changed under an "
        f"unchanged version name. The same: {found.same}, added: {len(found.added)}, "
        f"gone: {len(found.removed)}."
    )
    extra = f"{moved} of the changed ones have the same source in another place." if moved else ""
    tables = []
    if found.changed:
        tables.append(_changes_table(found.changed))
    for word, keys in (("added", found.added), ("gone", found.removed)):
        if keys:
            rows = tuple((task, suite, version) for version, suite, task in keys)
            tables.append(Table(f"Rules {word}", ("task", "suite", "version"), rows, most=20))
    return Section(f"Against {name}", tuple(filter(None, (said, extra))), tuple(tables))


def _changes_table(changes: Sequence[Change]) -> Table:
    grouped: dict[tuple[str, str, str, str, tuple[str, ...]], list[str]] = {}
    for item in changes:
        key = (item.suite, item.task, item.before, item.after, item.parts)
        grouped.setdefault(key, []).append(item.version)
    rows: tuple[tuple[str, ...], ...] = tuple(
        (f"{suite} {task}", ", ".join(versions), _short(before), _short(after), _parts(parts))
        for (suite, task, before, after, parts), versions in grouped.items()
    )
    columns: tuple[str, ...] = ("task", "in version", "before", "after", "differs")
    if all(row[4] == "the class" for row in rows):
        # The usual case; without the column the rest fits the terminal.
        rows = tuple(row[:4] for row in rows)
        return Table("Changed rules (the class itself differs)", columns[:4], rows)
    return Table("Changed rules", columns, rows)


def _parts(parts: Sequence[str]) -> str:
    if not parts:
        return "place only"
    named = [_short(part) for part in parts[:3]]
    return ", ".join(named) + (f" and {len(parts) - 3} more" if len(parts) > 3 else "")


def _left_out(
    snapshot: Mapping[str, Any], loaded: Sequence[str], comparisons: Mapping[str, Comparison]
) -> Section:
    missing = [item["module"] for item in snapshot["modules"] if not item["loaded"]]
    heading = "Modules that exist and are not loaded"
    said = []
    tables: list[Table] = []
    if missing:
        said.append(
            f"{many(len(missing), 'module')} with tasks to register: "
            f"{', '.join(_short(name) for name in missing)}."
        )
    elif loaded:
        said.append(f"Loaded here on purpose: {', '.join(_short(name) for name in loaded)}.")
    else:
        said.append("Every module that registers tasks is loaded.")
    if "imported" in comparisons:
        count = len(comparisons["imported"].changed)
        said.append(
            f"Importing them changes {many(count, 'rule')} at once, in suites that versions share."
        )
    if "rebuilt" in comparisons:
        changed = comparisons["rebuilt"].changed
        tasks = len({(item.suite, item.task) for item in changed})
        said.append(
            f"Importing them and rebuilding the lists changes {many(len(changed), 'rule')} of "
            f"{many(tasks, 'task')}."
        )
        if changed:
            tables = [_by_version(changed), _changes_table(changed)]
    return Section(heading, tuple(said), tuple(tables))


def _by_version(changes: Sequence[Change]) -> Table:
    versions = dict.fromkeys(item.version for item in changes)
    rows = tuple(
        (version, str(sum(item.version == version for item in changes))) for version in versions
    )
    return Table("Rules that would change, by version", ("version", ">rules"), rows)


def _overwritten(rules: Sequence[Mapping[str, Any]], versions: Sequence[str]) -> Section:
    rows = _grouped(
        (
            (f"{rule['suite']} {rule['task']}", _short(_at(rule)), ", ".join(_shorts(rule)))
            for rule in rules
            if rule["overwrote"]
        ),
        [rule["version"] for rule in rules if rule["overwrote"]],
        versions,
    )
    said = (
        "A plain registration writes to the slot of version 1.0.0 and so reaches every version. "
        f"Tasks whose rule overwrote another one in the same slot: {len({row[0] for row in rows})}."
    )
    columns = ("task", "in version", "registered in", "overwrote")
    tables = (Table("Overwritten slots", columns, rows),) if rows else ()
    return Section("Overwritten slots", (said,), tables)


def _shorts(rule: Mapping[str, Any]) -> list[str]:
    return [_short(name) for name in rule["overwrote"]]


def _stale(rules: Sequence[Mapping[str, Any]], versions: Sequence[str]) -> Section:
    found = [(rule, part) for rule in rules for part in rule["stale_parts"]]
    rows = _grouped(
        (
            (
                f"{rule['suite']} {rule['task']}",
                part["task"],
                _short(part["captured"]),
                _short(part["current"] or "nothing"),
            )
            for rule, part in found
        ),
        [rule["version"] for rule, _ in found],
        versions,
    )
    said = (
        "A combined task keeps the two task objects that it was made of. "
        f"Combined tasks with a part that the version itself scores by another rule: "
        f"{len({row[0] for row in rows})}."
    )
    columns = ("task", "in version", "part", "holds", "the version has")
    tables = (Table("Combined tasks with a stale part", columns, rows),) if rows else ()
    return Section("Combined tasks", (said,), tables)


def _altered(rules: Sequence[Mapping[str, Any]]) -> Section:
    names = sorted({name for rule in rules for name in rule["altered"]})
    said = (
        f"Not those of their source files: {', '.join(names)}."
        if names
        else "No function of a rule was replaced at run time."
    )
    return Section("Patched at run time", (said,))


def _listing(rules: Sequence[Mapping[str, Any]], *, page_only: bool) -> Section:
    rows = tuple(
        (
            f"{rule['version']} {rule['suite']} {rule['task']}",
            _short(f"{rule['module']}:{rule['name']}"),
            rule["digest"].removeprefix("sha256:")[:16],
            _registered(rule),
        )
        for rule in rules
    )
    columns = ("rule", "class", "digest", "registered")
    return Section(
        "All rules",
        (
            f"Module names are shown without {_PREFIX.rstrip('.')}. A digest is over the source "
            "of the class and of what it calls; its first 16 digits are shown.",
        ),
        (Table("Rules", columns, rows),),
        page_only=page_only,
    )


def _registered(rule: Mapping[str, Any]) -> str:
    place = rule["registered"]
    if not place["module"]:
        return f"slot {place['slot']}, place unknown"
    return f"{_short(place['module'])}:{place['line']} {place['how']}, slot {place['slot']}"


def _at(rule: Mapping[str, Any]) -> str:
    place = rule["registered"]
    return f"{place['module']}:{place['line']}"


def _grouped(
    rows: Iterable[tuple[str, ...]], row_versions: Sequence[str], versions: Sequence[str]
) -> tuple[tuple[str, ...], ...]:
    """Merge equal rows of several versions; put the versions into the second column."""
    merged: dict[tuple[str, ...], list[str]] = {}
    for row, version in zip(rows, row_versions, strict=True):
        merged.setdefault(row, []).append(version)
    return tuple((row[0], _versions(found, versions), *row[1:]) for row, found in merged.items())


def _versions(found: Sequence[str], versions: Sequence[str]) -> str:
    return f"all {len(versions)}" if len(found) == len(versions) > 1 else ", ".join(found)


def _short(name: str) -> str:
    return name.removeprefix(_PREFIX).replace("TaskCombinator._create_combined_task.<locals>.", "")
