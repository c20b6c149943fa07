"""The frozen protocol: what a model is asked, under which releases, and how it is scored."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from impact_twin.canonical import digest, read_strict
from impact_twin.errors import InputError
from impact_twin.leaderboard import schema

BUNDLED = Path(__file__).parent / "protocols" / "agentdojo-v1.json"
BENIGN = "none"
"""The attack name of a cell without an injection."""

_ALIAS = re.compile(
    r"(?:^|[-_.:/@])(?:latest|newest|stable|current|default|auto)(?:$|[:@])", re.IGNORECASE
)
_ALIAS_MEND = "Name the dated or numbered version, so that a row means one model for ever."


@dataclass(frozen=True)
class SuiteTasks:
    """The tasks of one suite: every user task meets every injection task."""

    name: str
    user_tasks: tuple[str, ...]
    injection_tasks: tuple[str, ...]

    @property
    def pairs(self) -> int:
        """Number of (user task, injection task) pairs."""
        return len(self.user_tasks) * len(self.injection_tasks)


@dataclass(frozen=True)
class Limits:
    """Wall-clock seconds for a pair and for a request, and the tries that a pair gets."""

    pair_seconds: float
    request_seconds: float
    attempts: int


@dataclass(frozen=True)
class Buckets:
    """Robust is [robust, 1], Vulnerable is [0, vulnerable), Mixed is what lies between."""

    robust: float
    vulnerable: float

    def of(self, value: float) -> str:
        """Return the bucket of a robustness in [0, 1].

        >>> Buckets(0.9, 0.5).of(0.9), Buckets(0.9, 0.5).of(0.5), Buckets(0.9, 0.5).of(0.4999)
        ('Robust', 'Mixed', 'Vulnerable')
        """
        # Sums of thirds may miss a boundary by a last unit; the boundary itself belongs above.
        rounded = round(value, 12)
        if rounded >= self.robust:
            return "Robust"
        return "Vulnerable" if rounded < self.vulnerable else "Mixed"


@dataclass(frozen=True)
class Protocol:
    """A protocol file, read and checked; ``digest`` covers every byte of meaning in it."""

    id: str
    version: str
    digest: str
    agentdojo: str
    dspy: str
    benchmark: str
    suites: tuple[SuiteTasks, ...]
    headline: str
    secondary: tuple[str, ...]
    addressed_as: str
    signature: str
    max_iters: int
    temperature: float
    max_tokens: int
    repeats: int
    clock: datetime.datetime
    limits: Limits
    buckets: Buckets
    confidence: float
    content: dict[str, Any]

    @property
    def attacks(self) -> tuple[str, ...]:
        """The headline attack, then the others."""
        return (self.headline, *self.secondary)


def load_protocol(path: Path | None = None) -> Protocol:
    """Read a protocol file; the bundled one by default.

    Raises:
        InputError: The file can't be read, or isn't a protocol.
    """
    path = BUNDLED if path is None else path
    return parse_protocol(read_strict(path), where=str(path))


def parse_protocol(content: Any, *, where: str) -> Protocol:
    """Check a protocol's content and name its parts.

    Raises:
        InputError: The content isn't a protocol.
    """
    schema.check(content, "protocol", where=where)
    attacks, buckets = content["attacks"], content["buckets"]
    if attacks["headline"] in attacks["secondary"]:
        raise InputError("the headline attack is a secondary one too", where=f"{where}.attacks")
    if buckets["vulnerable"] >= buckets["robust"]:
        raise InputError("the vulnerable limit is not below robust", where=f"{where}.buckets")
    try:
        clock = datetime.datetime.fromisoformat(content["clock"])
    except ValueError:
        raise InputError("not a date and time", where=f"{where}.clock") from None
    return Protocol(
        id=content["id"],
        version=content["version"],
        digest=digest(content),
        agentdojo=content["environment"]["agentdojo"],
        dspy=content["environment"]["dspy"],
        benchmark=content["benchmark"]["version"],
        suites=tuple(
            SuiteTasks(name, tuple(tasks["user_tasks"]), tuple(tasks["injection_tasks"]))
            for name, tasks in content["benchmark"]["suites"].items()
        ),
        headline=attacks["headline"],
        secondary=tuple(attacks["secondary"]),
        addressed_as=attacks["addressed_as"],
        signature=content["scaffold"]["signature"],
        max_iters=content["scaffold"]["max_iters"],
        temperature=float(content["decoding"]["temperature"]),
        max_tokens=content["decoding"]["max_tokens"],
        repeats=content["repeats"],
        clock=clock,
        limits=Limits(**content["limits"]),
        buckets=Buckets(**buckets),
        confidence=content["confidence"],
        content=content,
    )


def check_versions(protocol: Protocol) -> None:
    """Refuse to run a protocol under other releases than those it pins.

    The tool schema that the model sees comes from dspy and the tasks from AgentDojo, so another
    release is another stimulus.

    Raises:
        InputError: An installed release differs, or is missing.
    """
    for name, pinned in (("agentdojo", protocol.agentdojo), ("dspy", protocol.dspy)):
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            installed = "none"
        if installed != pinned:
            raise InputError(
                f"the protocol pins {name} {pinned}, but {installed} is installed",
                where=f"protocol {protocol.id} {protocol.version}",
                mend=f"Install {name}=={pinned}, or use a protocol for {installed}.",
            )


def check_model_id(model: str) -> None:
    """Refuse a model id that may mean another model tomorrow, or that can't be a model id.

    Raises:
        InputError: The id is empty, holds spaces or unprintable characters, or is an alias.
    """
    if not model or len(model) > 200 or not model.isascii() or not model.isprintable():
        raise InputError("not a model id", where="--model")
    if " " in model or model.endswith("/"):
        raise InputError(f"{model!r} is not a model id", where="--model")
    if _ALIAS.search(model):
        raise InputError(
            f"{model!r} is an alias that may come to mean another model",
            where="--model",
            mend=_ALIAS_MEND,
        )
