"""`repeat --until`: a stop rule asked after each trial, at an interval that allows for looking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.statistics.sequential import CONTINUE, StopRule, look, parse_rule
from impact_twin.statistics.table import Observation, ObservationTable

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite
    from impact_twin.trials.records import RunData


def read_rule(text: str) -> StopRule:
    """Read a stop rule such as `secure_utility >= 0.8` or `attack_success +- 0.1`.

    Raises:
        InputError: it is no rule.
    """
    try:
        return parse_rule(text)
    except ValueError as err:
        raise InputError(
            str(err), where="--until", mend="Write it like 'secure_utility >= 0.8'."
        ) from None


class Until:
    """The runner's stop rule: looks at the whole trials of a run that goes on.

    Args:
        text: The rule.
        suite: The suite that runs.
        plan: The plan.

    Raises:
        InputError: the text is no rule.
    """

    def __init__(self, text: str, suite: Suite, plan: Mapping[str, JSON]) -> None:
        self._rule = read_rule(text)
        self._text = text
        self._suite = suite
        self._pairs: list[str] = plan["pairs"]
        self._confidence: float = plan["confidence"]
        self._rows: list[Observation] = []

    def __call__(self, run: RunData) -> str:
        """Return why the run is complete, or an empty string."""
        trial = len(self._rows) // len(self._pairs)
        while self._add(run, trial + 1):
            trial += 1
        if trial == 0:
            return ""
        table = ObservationTable.from_rows(self._rows, self._pairs)
        found = look(self._rule, table, trial, self._confidence)
        if found.verdict == CONTINUE:
            return ""
        return f"{self._text}: {found.verdict} after trial {trial}"

    def _add(self, run: RunData, trial: int) -> bool:
        """Add a trial's pair-trials if all of them have ended."""
        from impact_twin.report.model import observe_records
        from impact_twin.trials.records import CaseKey

        rows = []
        for pair in self._pairs:
            clean = run.cases.get(CaseKey(pair, trial, "clean"))
            poisoned = run.cases.get(CaseKey(pair, trial, "poisoned"))
            if clean is None or poisoned is None:
                return False
            rows.append(observe_records(self._suite, run, clean, poisoned))
        self._rows += rows
        return True


def sequential_json(report: Mapping[str, JSON], table: ObservationTable) -> dict[str, JSON] | None:
    """Return what the looks saw, derived from the table; None when the run had no stop rule.

    Returns:
        `rule`, and `looks[]` for the trials that the run looked after: `trial`, `count`,
        `unresolved`, `n`, `interval` (always valid) and `verdict`.

    Raises:
        ValueError: the rule is none, or a look is not after a whole trial.
    """
    text = report["identity"]["run"]["until"]
    if text is None:
        return None
    rule, confidence = parse_rule(text), report["plan"]["confidence"]
    taken = [
        look(rule, table, item["trial"], confidence) for item in report["identity"]["run"]["looks"]
    ]
    return {
        "rule": text,
        "looks": [
            {
                "trial": item.trial,
                "count": item.count,
                "unresolved": item.unresolved,
                "n": item.n,
                "interval": [round(end, 12) for end in item.interval],
                "verdict": item.verdict,
            }
            for item in taken
        ],
    }


def reported_trials(planned: int, looks: JSON) -> int:
    """Return the trials that a report speaks of: those up to the look that stopped the run."""
    return looks[-1]["trial"] if looks and looks[-1]["stop"] else planned
