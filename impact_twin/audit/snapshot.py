"""Stored descriptions of scoring rules, and what differs between two of them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from impact_twin.audit.fresh import run_fresh
from impact_twin.audit.rules import KIND, SCHEMA_VERSION
from impact_twin.canonical import read_strict
from impact_twin.errors import InputError
from impact_twin.resources import data_folder

STATES = ("start", "imported", "rebuilt")
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Change:
    """One rule that differs under an unchanged version name.

    Attributes:
        version, suite, task: Which rule.
        before, after: `module:qualname` of the two classes.
        moved_only: The source is the same; only the class's place differs.
        parts: What differs: "the class", or names of parts that it calls.
    """

    version: str
    suite: str
    task: str
    before: str
    after: str
    moved_only: bool
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """What differs between two snapshots; each triple of version, suite and task is counted once.

    Attributes:
        same: How many rules are the same.
        changed: Rules that differ.
        added, removed: (version, suite, task) that only the later or the earlier one has.
    """

    same: int
    changed: tuple[Change, ...]
    added: tuple[Key, ...]
    removed: tuple[Key, ...]

    @property
    def holds(self) -> bool:
        """Whether every rule of the earlier snapshot is there unchanged."""
        return not self.changed and not self.removed


def survey(left_out: bool = True) -> dict[str, Any]:
    """Describe the rules in a fresh interpreter.

    Args:
        left_out: Also import the modules that start-up leaves out, then rebuild the lists.

    Returns:
        Snapshots under `start` and, if asked, `imported` and `rebuilt`; `loaded` names the modules
        that were imported for the latter two.

    Raises:
        ImpactTwinError: AgentDojo can't be loaded there.
    """
    found: dict[str, Any] = run_fresh({"job": "rules", "left_out": left_out})
    return found


def load_snapshot(path: Path) -> dict[str, Any]:
    """Read a stored snapshot, or the snapshot inside a stored `audit rules` report.

    Raises:
        InputError: it can't be read, is something else, or is of a newer schema.
    """
    value = read_strict(path)
    where = str(path)
    if isinstance(value, dict) and isinstance(value.get("snapshot"), dict):
        value = value["snapshot"]
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise InputError(
            "not a snapshot of scoring rules",
            where=where,
            mend="Make one with: impact-twin audit rules --save FILE",
        )
    if value.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            f"schema version {value.get('schema_version')!r}, this program reads {SCHEMA_VERSION}",
            where=where,
            mend="Update impact-twin.",
        )
    _check_shape(value, where)
    return value


def _check_shape(value: dict[str, Any], where: str) -> None:
    error = next(_validator().iter_errors(value), None)
    if error is not None:
        path = ".".join(map(str, error.absolute_path)) or "the whole"
        raise InputError(f"a damaged snapshot, at {path}: {error.message[:200]}", where=where)
    if len({_key(rule) for rule in value["rules"]}) != len(value["rules"]):
        raise InputError("a damaged snapshot: a rule occurs twice", where=where)


@functools.cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator

    path = data_folder("schemas") / "1" / "audit-rules.schema.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def only(snapshot: Mapping[str, Any], versions: Sequence[str], where: str = "") -> dict[str, Any]:
    """Return a snapshot with the rules of some versions; all when none are named.

    Raises:
        InputError: the snapshot has no such version.
    """
    if not versions:
        return dict(snapshot)
    known = list(dict.fromkeys(rule["version"] for rule in snapshot["rules"]))
    for version in versions:
        if version not in known:
            raise InputError(
                f"no benchmark version {version!r}",
                where=where,
                mend=f"There are {', '.join(known)}.",
            )
    rules = [rule for rule in snapshot["rules"] if rule["version"] in versions]
    return {**snapshot, "rules": rules}


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Comparison:
    """Compare two snapshots, rule by rule."""
    old = {_key(rule): rule for rule in before["rules"]}
    new = {_key(rule): rule for rule in after["rules"]}
    changed = []
    for key, rule in new.items():
        if key in old and _identity(old[key]) != _identity(rule):
            changed.append(_change(key, old[key], rule, before, after))
    return Comparison(
        same=sum(1 for key in new if key in old) - len(changed),
        changed=tuple(changed),
        added=tuple(key for key in new if key not in old),
        removed=tuple(key for key in old if key not in new),
    )


def _key(rule: Mapping[str, Any]) -> Key:
    return rule["version"], rule["suite"], rule["task"]


def _identity(rule: Mapping[str, Any]) -> tuple[str, str, str]:
    return rule["module"], rule["name"], rule["digest"]


def _change(
    key: Key,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Change:
    parts: list[str] = []
    if old["own"] != new["own"]:
        parts.append("the class")
    if old["digest"] != new["digest"]:
        had, has = _parts(before, old), _parts(after, new)
        names = {name for name in had.keys() | has.keys() if had.get(name) != has.get(name)}
        parts += sorted({name.partition(" = ")[0] for name in names})
    return Change(
        *key,
        before=f"{old['module']}:{old['name']}",
        after=f"{new['module']}:{new['name']}",
        moved_only=old["digest"] == new["digest"],
        parts=tuple(parts),
    )


def _parts(snapshot: Mapping[str, Any], rule: Mapping[str, Any]) -> dict[str, str]:
    names = snapshot["sources"].get(rule["digest"], [])
    return {name: snapshot["parts"].get(name, "") for name in names}
