"""Rung 2: whether JSON is a bundle, by schemas/1; and the plan's own schema for rung 3."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.bundle import KIND, SCHEMA_VERSION
from impact_twin.proofrun.checks import RefusedError
from impact_twin.report.model import KIND as REPORT_KIND
from impact_twin.report.schema import FILES as REPORT_FILES
from impact_twin.report.strict_schema import BrokenRuleError, Rule, compile_schema
from impact_twin.resources import data_folder
from impact_twin.text import escape

_BUNDLE = "bundle.schema.json"
_PLAN = "plan.schema.json"
_SUBMISSION = "the submission"
_PARTS = {_SUBMISSION: {"$ref": f"{_BUNDLE}#/$defs/submission"}}


def load_rules() -> None:
    """Read the schemas, so that checking reads no file."""
    _rule(_BUNDLE)
    _rule(_PLAN)


def check_shape(value: JSON) -> str:
    """Refuse what is no bundle of the current schema; unknown fields are refused.

    Raises:
        RefusedError: another kind of file, a newer version, or a field that breaks the schema.
    """
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if kind == REPORT_KIND:
        raise RefusedError("it is a report, not a bundle: impact-twin submit makes one of it")
    if kind != KIND:
        raise RefusedError(f"it is no bundle of impact-twin: its kind is not {KIND!r}")
    version = value.get("schema_version")
    if type(version) is int and version > SCHEMA_VERSION:
        raise RefusedError(
            f"it has schema_version {version}; this impact-twin reads up to {SCHEMA_VERSION}"
        )
    _check(_BUNDLE, value, "")
    return f"it keeps to schemas/{SCHEMA_VERSION}/{_BUNDLE}"


def check_plan_shape(plan: Mapping[str, JSON]) -> None:
    """Refuse what can't be a plan.json.

    Raises:
        RefusedError: a field breaks the plan's schema.
    """
    _check(_PLAN, plan, "the plan's ")


def submission_problem(name: str, value: str) -> str | None:
    """Return what is wrong with one field of a `submission`; None when nothing is."""
    fine = {"submitter": "@someone", "source": "https://example.org", "notes": ""}
    try:
        _rule(_SUBMISSION)({**fine, name: value})
    except BrokenRuleError as err:
        return escape(err.message)
    return None


def _check(name: str, value: JSON, whose: str) -> None:
    """Refuse a value that breaks a schema, naming the field after `whose`."""
    try:
        _rule(name)(value)
    except BrokenRuleError as err:
        field = escape(".".join(part[:100] for part in err.path[:20]))[:200] or "top level"
        raise RefusedError(f"{whose}{field}: {escape(err.message)}") from None


@cache
def _rule(name: str) -> Rule:
    folder = data_folder("schemas") / "1"
    files = (_BUNDLE, _PLAN, *REPORT_FILES)
    schemas = {file: json.loads((folder / file).read_text(encoding="utf-8")) for file in files}
    return compile_schema({**schemas, **_PARTS}, name)
