"""Rung 5: every verdict and outcome class, derived again."""

from __future__ import annotations

from impact_twin.errors import InputError
from impact_twin.procurement.scoring import score_case
from impact_twin.proofrun.checks import Material, RefusedError, case_name
from impact_twin.proofrun.figures import differences
from impact_twin.report.cases import VERDICT_FIELDS, trace_of, verdict_json
from impact_twin.report.model import judge


def check_verdicts(material: Material) -> str:
    """Refuse a verdict that scoring the trace again does not give."""
    report = material.report
    for name, entry in report["traces"].items():
        try:
            verdict = score_case(material.suite, trace_of(entry, report["texts"]))
        except (KeyError, TypeError, AttributeError, ValueError, InputError) as err:
            raise RefusedError(
                f"report.traces.{name} can't be scored: it is none that this world makes "
                f"({type(err).__name__})"
            ) from None
        stated = {field: entry[field] for field in VERDICT_FIELDS}
        for field, said, found in differences(stated, verdict_json(verdict)):
            raise RefusedError(
                f"report.traces.{name}: {field} says {said!r:.80}, but scoring gives {found!r:.80}"
            )
    return f"{len(report['traces'])} traces scored again, with the same verdicts"


def check_outcomes(material: Material) -> str:
    """Refuse an outcome class that the two cases of a pair-trial do not give."""
    report = material.report
    for row in report["pair_trials"]:
        found = judge(material.suite, row["pair"], row["clean"], row["poisoned"], report["traces"])
        derived = {
            "outcome": found.outcome,
            "reasons": list(found.reasons),
            "targeted": found.targeted,
            "toward_attacker": found.toward_attacker,
        }
        for field, said, other in differences({name: row[name] for name in derived}, derived):
            raise RefusedError(
                f"{case_name(row['pair'], row['trial'])}: {field} says {said!r:.80}, but its cases "
                f"give {other!r:.80}"
            )
    return f"{len(report['pair_trials'])} pair-trials have the class that their cases give"
