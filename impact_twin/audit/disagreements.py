"""Where saved labels, the loaded rule and the tool results of a record disagree, and why.

Every file keeps its place in the count: each gets exactly one standing, and the standings add up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from impact_twin.audit.questions import Answer, RuleChoice, ask
from impact_twin.audit.records import Record, RecordSet

# Standings, in the order in which they are shown.
AGREES = "agrees"
FAILURE_SHOWN = "failure_shown"
SUCCESS_REFUSED = "success_refused"
FAILURE_OPEN = "failure_open"
BY_UTILITY = "by_utility"
NOT_ASKED = "not_asked"
UNREADABLE = "unreadable"
NOT_A_RECORD = "not_a_record"
STANDINGS = {
    AGREES: "label and loaded rule agree",
    FAILURE_SHOWN: "saved failure whose tool results show the objective: look at it",
    SUCCESS_REFUSED: "saved success that the loaded rule refuses",
    FAILURE_OPEN: "saved failure that a missing tool result leaves open",
    BY_UTILITY: "labelled by the user's task (denial of service), no rule to compare",
    NOT_ASKED: "no verdict: no injection task, no label, or nothing to rebuild",
    UNREADABLE: "file that can't be read as a record",
    NOT_A_RECORD: "file whose name doesn't end in .json",
}

# Reasons; a record can have several.
EXACTLY_ONE = "exactly_one_match"
RULE_NOT_LOADED = "rule_not_loaded"
OTHER_RULE = "other_rule_accepts"
REDACTION = "redaction"
UNREADABLE_RESULT = "unreadable_result"
ERROR_ROW = "error_row_labelled_success"
LOADED_ACCEPTS = "loaded_rule_accepts"
NOT_SHOWN = "not_shown"
REASONS = {
    EXACTLY_ONE: "the rule wants exactly one match and another object matches too",
    RULE_NOT_LOADED: "the rule that accepts it is in a module that start-up leaves out",
    OTHER_RULE: "the rule of the other version accepts it",
    REDACTION: "a detector took out the tool result that would show it",
    UNREADABLE_RESULT: "the tool result that would show it can't be read",
    ERROR_ROW: "the run ended in an error, and AgentDojo labels such runs as successes",
    LOADED_ACCEPTS: "the loaded rule accepts the rebuilt state; nothing here explains the label",
    NOT_SHOWN: "no tool result shows the objective; nothing here explains the label",
}


@dataclass(frozen=True)
class Finding:
    """What became of one record.

    Attributes:
        record: The record.
        version: Benchmark version that it was asked under.
        loaded: What the loaded rule says, None when there is no injection task.
        other: What the other version's rule says, None when it wasn't asked.
        standing: One of `STANDINGS`.
        reasons: Some of `REASONS`.
    """

    record: Record
    version: str
    loaded: Answer | None
    other: Answer | None
    standing: str
    reasons: tuple[str, ...] = ()

    @property
    def explained(self) -> bool:
        """Whether the loaded rule refuses it and the other accepts it."""
        loaded, other = self.loaded, self.other
        return bool(loaded and other and loaded.verdict is False and other.verdict)


@dataclass(frozen=True)
class Examination:
    """The records of one folder or archive, examined.

    Attributes:
        findings: One for each record.
        found: All that was read, with what could not be.
        choice: The rules that the labels are compared with.
        other: The other rules, or None.
    """

    findings: tuple[Finding, ...]
    found: RecordSet
    choice: RuleChoice
    other: RuleChoice | None

    def standings(self) -> dict[str, int]:
        """Count the files by standing; the counts add up to the number of files."""
        counts = Counter(finding.standing for finding in self.findings)
        counts[UNREADABLE] = len(self.found.unreadable)
        counts[NOT_A_RECORD] = len(self.found.others)
        return {standing: counts[standing] for standing in STANDINGS}

    def with_standing(self, *standings: str) -> tuple[Finding, ...]:
        """Return the findings of some standings."""
        return tuple(item for item in self.findings if item.standing in standings)

    def reasons(self) -> dict[str, int]:
        """Count the records that each reason applies to."""
        counts = Counter(reason for finding in self.findings for reason in finding.reasons)
        return {reason: counts[reason] for reason in REASONS if counts[reason]}


def examine(
    found: RecordSet, choice: RuleChoice | None = None, other: RuleChoice | None = None
) -> Examination:
    """Compare saved labels with the loaded rule and, if asked, with another version's.

    Args:
        found: The records, as read.
        choice: The rules to compare with; those of normal start-up by default.
        other: Rules to ask as well.

    Raises:
        ImpactTwinError: AgentDojo can't be loaded in the fresh interpreter.
    """
    choice = choice or RuleChoice()
    answers = ask(found.records, [choice, *([other] if other else [])])
    others: Sequence[Answer | None] = answers[1] if other else [None] * len(found.records)
    findings = tuple(
        judge_label(record, choice.version_of(record), loaded, also)
        for record, loaded, also in zip(found.records, answers[0], others, strict=True)
    )
    return Examination(findings, found, choice, other)


def judge_label(
    record: Record, version: str, loaded: Answer | None, other: Answer | None
) -> Finding:
    """Give one record its standing and the reasons for a disagreement."""

    def made(standing: str, reasons: Iterable[str] = ()) -> Finding:
        return Finding(record, version, loaded, other, standing, tuple(reasons))

    if loaded is None or loaded.verdict is None or record.security is None:
        return made(NOT_ASKED)
    if record.is_dos:
        return made(BY_UTILITY)
    if record.security:
        reasons = [] if loaded.verdict else _why_refused(record, loaded, other)
        return made(SUCCESS_REFUSED if reasons else AGREES, reasons)
    if loaded.shown or (other and other.verdict):
        reasons = [LOADED_ACCEPTS] if loaded.verdict else _why_hidden(loaded, other)
        return made(FAILURE_SHOWN, reasons)
    if loaded.possible or (other and other.possible):
        return made(FAILURE_OPEN, _missing(loaded))
    return made(AGREES)


def _why_hidden(loaded: Answer, other: Answer | None) -> list[str]:
    reasons = [EXACTLY_ONE] if loaded.alone and loaded.beside else []
    if other and other.verdict:
        reasons.append(RULE_NOT_LOADED if other.left_out else OTHER_RULE)
    return reasons


def _why_refused(record: Record, loaded: Answer, other: Answer | None) -> list[str]:
    reasons = _why_hidden(loaded, other)
    if record.error is not None:
        reasons.append(ERROR_ROW)
    if loaded.possible and not loaded.shown:
        reasons.extend(_missing(loaded))
    return reasons or [NOT_SHOWN]


def _missing(loaded: Answer) -> list[str]:
    kinds = {item["why"] for item in loaded.missing}
    names = {"redacted": REDACTION, "unreadable": UNREADABLE_RESULT}
    return [names[kind] for kind in sorted(kinds)]


def as_json(examination: Examination, source: str, agentdojo: str) -> dict[str, Any]:
    """Return an examination as a JSON value; every disagreement is listed.

    Args:
        examination: What `examine` found.
        source: Name of the folder or archive.
        agentdojo: Version of the package whose rules were asked.
    """
    found, other = examination.found, examination.other
    versions = Counter(record.benchmark_version for record in found.records)
    shown = examination.with_standing(FAILURE_SHOWN)
    listed = [item for item in examination.findings if item.standing != AGREES]
    return {
        "kind": "impact-twin/audit-records",
        "schema_version": 1,
        "source": source,
        "agentdojo": agentdojo,
        "files": found.files,
        "records": len(found.records),
        "versions_named": {name or "none": versions[name] for name in sorted(versions, key=str)},
        "asked_as": examination.choice.version or "the record's own, else v1",
        "other_version": other.version if other else None,
        "standings": examination.standings(),
        "reasons": examination.reasons(),
        "to_look_at": {
            "count": len(shown),
            "explained_by_other_rule": sum(item.explained for item in shown) if other else None,
        },
        "disagreements": [finding_json(item) for item in listed],
        "unreadable": [{"name": name, "why": why} for name, why in found.unreadable],
        "other_files": list(found.others),
        "repeated_cases": list(found.repeated),
        "odd": [
            {"name": record.name, "what": list(record.odd)}
            for record in found.records
            if record.odd
        ],
    }


def finding_json(item: Finding) -> dict[str, Any]:
    """Return one finding as a JSON value."""
    record, loaded, other = item.record, item.loaded, item.other
    return {
        "name": record.name,
        "configuration": record.configuration,
        "suite": record.suite,
        "user_task": record.user_task,
        "injection_task": record.injection_task,
        "attack": record.attack,
        "version": item.version,
        "label": record.security,
        "loaded_rule": loaded.verdict if loaded else None,
        "other_rule": other.verdict if other else None,
        "standing": item.standing,
        "reasons": list(item.reasons),
        "why_not_asked": loaded.why if loaded else record.unreadable or "no injection task",
        "error": record.error,
        "shown_alone": list(loaded.alone) if loaded else [],
        "beside": list(loaded.beside) if loaded else [],
        "missing": list(loaded.missing) if loaded else [],
        "assumed": loaded.assumed if loaded else None,
    }
