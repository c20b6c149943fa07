"""Verification of a bundle: bytes in, one result object out, no I/O in between.

A bundle is treated as hostile. The checks are made in the order of the ladder
(`impact_twin.proofrun.checks`); the first one that fails ends it, since the later ones trust what
the earlier ones have shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from impact_twin.canonical import digest_bytes
from impact_twin.procurement.model import JSON
from impact_twin.procurement.suite import Suite
from impact_twin.proofrun import digests, figures, reading, replaying, schedule, tries, verdicts
from impact_twin.proofrun.checks import CHECKS, Check, Material, RefusedError
from impact_twin.proofrun.eligibility import Eligibility, eligibility_of
from impact_twin.proofrun.reading import ReadLimits
from impact_twin.proofrun.shape import check_shape, load_rules
from impact_twin.proofrun.tiers import Tier, self_attested

_LADDER: Mapping[str, Callable[[Material], str]] = {
    "digests": digests.check_digests,
    "suite": digests.check_suite,
    "plan": digests.check_plan,
    "traces": digests.check_traces,
    "texts": digests.check_texts,
    "figures": figures.check_figures,
    "verdicts": verdicts.check_verdicts,
    "cases": tries.check_cases,
    "schedule": schedule.check_schedule,
    "copies": schedule.check_copies,
    "outcomes": verdicts.check_outcomes,
    "replay": replaying.check_replay,
}


@dataclass(frozen=True)
class Verification:
    """What verifying one file showed.

    Attributes:
        digest: ``sha256:<hex>`` of the bytes: the bundle's identity.
        size: How many bytes they are.
        checks: Every check of the ladder up to rung 6, in order.
        bundle: The bundle; None unless every check held.
        eligibility: Whether it may stand on the board; None unless every check held.
        tier: What it is worth by itself, without an attestation; None unless every check held.
    """

    digest: str
    size: int
    checks: tuple[Check, ...]
    bundle: Mapping[str, JSON] | None = None
    eligibility: Eligibility | None = None
    tier: Tier | None = None

    @property
    def valid(self) -> bool:
        """Whether every check held."""
        return self.bundle is not None

    @property
    def failed(self) -> Check | None:
        """The check that failed; None when none did."""
        return next((check for check in self.checks if check.status == "failed"), None)


class Verifier:
    """Verifies bundles. It reads its schemas when it is made, and no file after that.

    Args:
        suites: The suites that reports may be of.
        limits: What a file may take.
    """

    def __init__(self, suites: Iterable[Suite], limits: ReadLimits | None = None) -> None:
        self._suites = {suite.digest: suite for suite in suites}
        self._limits = ReadLimits() if limits is None else limits
        load_rules()

    def verify(self, data: bytes) -> Verification:
        """Verify a bundle. Raises nothing, whatever the bytes hold.

        Args:
            data: The file's bytes.
        """
        steps = _Steps()
        value = self._read(data, steps)
        if steps.going:
            self._climb(value, steps)
        result = Verification(digest_bytes(data), len(data), steps.checks())
        if not steps.going:
            return result
        return Verification(
            result.digest,
            result.size,
            result.checks,
            bundle=value,
            eligibility=eligibility_of(value["report"]),
            tier=self_attested(value),
        )

    def verify_value(self, value: JSON) -> tuple[Check, ...]:
        """Make the checks from rung 2 on, of a value that was read already."""
        steps = _Steps()
        self._climb(value, steps)
        return steps.checks()

    def _read(self, data: bytes, steps: _Steps) -> Any:
        held: list[JSON] = []
        steps.make("size", lambda: reading.check_size(data, self._limits))
        steps.make("json", lambda: _kept(held, reading.parse(data, self._limits)))
        steps.make("canonical", lambda: reading.check_canonical(data, held[0]))
        return held[0] if held else None

    def _climb(self, value: Any, steps: _Steps) -> None:
        steps.make("schema", lambda: check_shape(value))
        material = Material(value, self._suites, self._limits.max_message_characters)
        for name, check in _LADDER.items():
            steps.make(name, lambda check=check: check(material))  # type: ignore[misc]


class _Steps:
    """Checks made one after the other until one fails."""

    def __init__(self) -> None:
        self._made: dict[str, Check] = {}
        self.going = True

    def make(self, name: str, check: Callable[[], str]) -> None:
        if not self.going:
            return
        try:
            self._made[name] = Check(name, "held", check())
            return
        except RefusedError as err:
            message = str(err)
        except Exception as err:
            # Whatever a hostile file makes a check stumble over, it did not hold.
            message = f"the check can't be made on this file ({type(err).__name__})"
        self._made[name] = Check(name, "failed", message)
        self.going = False

    def checks(self) -> tuple[Check, ...]:
        return tuple(
            self._made.get(name, Check(name, "not made")) for name in CHECKS if name != "provenance"
        )


def _kept(held: list[JSON], value: JSON) -> str:
    held.append(value)
    return "strict UTF-8 JSON"
