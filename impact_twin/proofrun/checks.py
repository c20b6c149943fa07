"""The words of verification: the rungs, the checks on them, and what a check says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from impact_twin.procurement.model import JSON
from impact_twin.procurement.suite import Suite

Status = Literal["held", "failed", "not made"]

RUNGS: Mapping[int, str] = {
    1: "reading",
    2: "schema",
    3: "digests",
    4: "figures",
    5: "verdicts",
    6: "replay",
    7: "provenance",
}
"""The rungs of the ladder by number, in the order of checking."""

CHECKS: Mapping[str, int] = {
    "size": 1,
    "json": 1,
    "canonical": 1,
    "schema": 2,
    "digests": 3,
    "suite": 3,
    "plan": 3,
    "traces": 3,
    "texts": 3,
    "figures": 4,
    "verdicts": 5,
    "cases": 5,
    "schedule": 5,
    "copies": 5,
    "outcomes": 5,
    "replay": 6,
    "provenance": 7,
}
"""The rung of every check, in the order of checking."""


class RefusedError(Exception):
    """A check did not hold; the text says what was wrong and where, in one line."""


@dataclass(frozen=True)
class Check:
    """What one check said.

    Attributes:
        name: One of `CHECKS`.
        status: `held`, `failed`, or `not made`, since an earlier one failed or it wasn't asked for.
        message: One line: what it found, or what was wrong. May hold text from the file.
    """

    name: str
    status: Status
    message: str = ""

    @property
    def rung(self) -> int:
        """Which rung it stands on, from 1."""
        return CHECKS[self.name]


@dataclass(frozen=True)
class Material:
    """What the checks from rung 3 on read.

    Attributes:
        bundle: A bundle that keeps to its schema.
        suites: The suites that the verifier has, by digest.
        max_message_characters: How much text its messages may hold, in all.
    """

    bundle: Mapping[str, JSON]
    suites: Mapping[str, Suite]
    max_message_characters: int

    @property
    def report(self) -> Mapping[str, JSON]:
        """The bundle's report."""
        found: Mapping[str, JSON] = self.bundle["report"]
        return found

    @property
    def suite(self) -> Suite:
        """The report's suite; the check `suite` makes sure that there is one."""
        return self.suites[self.report["identity"]["suite"]["digest"]]


def case_name(pair: str, trial: int, twin: str = "") -> str:
    """Return what to call a pair-trial or a case in a message.

    >>> case_name("award-bias", 3, "clean")
    'the clean case of award-bias, trial 3'
    """
    what = f"the {twin} case of" if twin else "the pair-trial"
    return f"{what} {pair}, trial {trial}"
