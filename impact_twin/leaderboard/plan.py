"""Which runs a protocol asks for: the pairs, in cells of (suite, attack, repeat)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from impact_twin.errors import InputError
from impact_twin.leaderboard.protocol import BENIGN, Protocol, SuiteTasks

SUBSET = "subset"
FULL = "full"


class Key(NamedTuple):
    """One planned run: a pair under an attack, or a user task without one, in one repeat from 1."""

    suite: str
    attack: str
    user_task: str
    injection_task: str | None
    repeat: int


class Cell(NamedTuple):
    """The runs of one suite under one attack in one repeat."""

    suite: str
    attack: str
    repeat: int


@dataclass(frozen=True)
class Plan:
    """The tasks of each suite, the attacks in the order of columns, and the repeats."""

    suites: tuple[SuiteTasks, ...]
    attacks: tuple[str, ...]
    repeats: int
    coverage: str

    def cells(self, *, benign: bool) -> Iterator[Cell]:
        """Yield the cells in running order: without an injection first, as a cheap first look."""
        for attack in (*([BENIGN] if benign else []), *self.attacks):
            for suite in self.suites:
                for repeat in range(1, self.repeats + 1):
                    yield Cell(suite.name, attack, repeat)

    def keys(self, cell: Cell) -> Iterator[Key]:
        """Yield the runs of a cell."""
        tasks = next(suite for suite in self.suites if suite.name == cell.suite)
        for user_task in tasks.user_tasks:
            for injection in (None,) if cell.attack == BENIGN else tasks.injection_tasks:
                yield Key(cell.suite, cell.attack, user_task, injection, cell.repeat)

    def pairs(self, suite: str, attack: str) -> tuple[tuple[str, str | None], ...]:
        """Return the sampling units of a suite: pairs, or user tasks without an injection."""
        return tuple(
            (key.user_task, key.injection_task) for key in self.keys(Cell(suite, attack, 1))
        )

    def total(self, *, benign: bool) -> int:
        """Return the number of runs."""
        return sum(sum(1 for _ in self.keys(cell)) for cell in self.cells(benign=benign))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as it stands in ``run.json``."""
        return {
            "coverage": self.coverage,
            "repeats": self.repeats,
            "attacks": list(self.attacks),
            "suites": {
                suite.name: {
                    "user_tasks": list(suite.user_tasks),
                    "injection_tasks": list(suite.injection_tasks),
                }
                for suite in self.suites
            },
        }


def plan_from_json(content: dict[str, Any]) -> Plan:
    """Read a plan that `Plan.to_json` wrote and the schema has checked."""
    return Plan(
        suites=tuple(
            SuiteTasks(name, tuple(tasks["user_tasks"]), tuple(tasks["injection_tasks"]))
            for name, tasks in content["suites"].items()
        ),
        attacks=tuple(content["attacks"]),
        repeats=content["repeats"],
        coverage=content["coverage"],
    )


def make_plan(
    protocol: Protocol, *, attacks: tuple[str, ...] = (), full: tuple[SuiteTasks, ...] | None = None
) -> Plan:
    """Plan a protocol's runs.

    Args:
        protocol: The protocol.
        attacks: A choice of its attacks; all by default.
        full: Every task of each suite, for full coverage instead of the pinned subset.

    Raises:
        InputError: An attack is none of the protocol's, or the headline attack isn't chosen.
    """
    for attack in attacks:
        if attack not in protocol.attacks:
            raise InputError(
                f"{attack!r} is no attack of the protocol",
                where="--attack",
                mend=f"It has: {', '.join(protocol.attacks)}.",
            )
    if attacks and protocol.headline not in attacks:
        raise InputError(f"a row needs the headline attack {protocol.headline!r}", where="--attack")
    return Plan(
        suites=protocol.suites if full is None else full,
        attacks=tuple(name for name in protocol.attacks if not attacks or name in attacks),
        repeats=protocol.repeats,
        coverage=SUBSET if full is None else FULL,
    )
