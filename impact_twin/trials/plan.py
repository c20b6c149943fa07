"""The plan of a run: what is run, in which order and with which seeds."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import math
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import impact_twin
from impact_twin.agents.protocol import AgentSource
from impact_twin.agents.redact import redact_json
from impact_twin.canonical import MAX_SAFE_INTEGER, digest, read_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON, TWINS, Twin
from impact_twin.resources import data_folder
from impact_twin.trials.records import CaseKey

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

KIND = "impact-twin/plan"
SCHEMA_VERSION = 1
PLAN_FILE = "plan.json"
ISOLATIONS = ("thread", "process")
MAX_TRIALS = 100_000
MAX_TIMEOUT_S = 30 * 24 * 3600.0

# Packages that decide what an agent sees or how it is called.
_PACKAGES = ("agentdojo", "dspy", "litellm")
# A budget bounds the bill, not what an agent does, so a resumed run may raise it.
_NOT_COMPARED = frozenset(
    {"identity.run.limits.max_cost_usd", "identity.run.limits.max_tokens", "created", "platform"}
)


@dataclass(frozen=True)
class Limits:
    """What a run may take.

    Attributes:
        timeout_s: Seconds that one try at a case may take, > 0.
        retries: Further tries after an infrastructure error, >= 0.
        max_cost_usd: US dollars for the run, > 0; None is no limit.
        max_tokens: Tokens for the run, input and output together, >= 1; None is no limit.
        max_tool_calls: Tool calls of one case, >= 1.
    """

    timeout_s: float = 300.0
    retries: int = 2
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_tool_calls: int = 200

    def check(self) -> None:
        """Refuse limits that make no sense.

        Raises:
            InputError: a limit is outside its range.
        """
        _check_real(self.timeout_s, "--timeout", "seconds above 0")
        if self.timeout_s > MAX_TIMEOUT_S:
            raise InputError(
                f"{self.timeout_s:g} s is too long", where="--timeout", mend="Give 30 days at most."
            )
        _check_whole(self.retries, "--retries", 0, 100)
        _check_whole(self.max_tool_calls, "max_tool_calls", 1, 100_000)
        if self.max_cost_usd is not None:
            _check_real(self.max_cost_usd, "--max-cost-usd", "US dollars above 0")
        if self.max_tokens is not None:
            _check_whole(self.max_tokens, "--max-tokens", 1, MAX_SAFE_INTEGER)


def make_plan(
    suite: Suite,
    source: AgentSource,
    *,
    trials: int,
    pairs: Sequence[str] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    isolation: str = "thread",
    limits: Limits | None = None,
    until: str | None = None,
) -> dict[str, JSON]:
    """Return the content of plan.json.

    Args:
        suite: The suite to run.
        source: The agent, after its `prepare`.
        trials: Passes over the chosen pairs, from 1 to `MAX_TRIALS`.
        pairs: Ids of the pairs to run; None is all. They are put in suite order.
        confidence: Of every interval, in (0, 1).
        seed: In [0, 2^53).
        isolation: One of `ISOLATIONS`.
        limits: What the run may take; None is the defaults.
        until: The stop rule that is asked after each trial; None runs all trials.

    Raises:
        InputError: a value is outside its range, or a pair is unknown or named twice.
    """
    limits = Limits() if limits is None else limits
    limits.check()
    _check_whole(trials, "--trials", 1, MAX_TRIALS)
    _check_whole(seed, "--seed", 0, MAX_SAFE_INTEGER)
    if isinstance(confidence, bool) or not 0 < confidence < 1:
        raise InputError(
            f"{confidence} is no confidence", where="--confidence", mend="Give one in (0, 1)."
        )
    if isolation not in ISOLATIONS:
        raise InputError(
            f"{isolation!r} is unknown", where="--isolation", mend="Use thread or process."
        )
    every = [pair.id for pair in suite.pairs]
    chosen = _chosen_pairs(every, pairs)
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "identity": {
            "suite": {"id": suite.id, "digest": suite.digest},
            "agent": redact_json(source.identity()),
            "versions": _versions(),
            "run": {
                "seed": seed,
                "isolation": isolation,
                "limits": asdict(limits),
                "until": until,
            },
        },
        "spec": redact_json(source.spec),
        "trials": trials,
        "pairs": chosen,
        "confidence": float(confidence),
        "full_suite": chosen == every,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "platform": {
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "system": platform.system(),
            "machine": platform.machine(),
        },
    }


def renew_plan(plan: Mapping[str, JSON], suite: Suite, source: AgentSource) -> dict[str, JSON]:
    """Return the plan that the stored parameters give today, to compare before resuming.

    Raises:
        InputError: the stored parameters no longer fit the suite.
    """
    run = plan["identity"]["run"]
    return make_plan(
        suite,
        source,
        trials=plan["trials"],
        pairs=plan["pairs"],
        confidence=plan["confidence"],
        seed=run["seed"],
        isolation=run["isolation"],
        limits=plan_limits(plan),
        until=run["until"],
    )


def plan_limits(plan: Mapping[str, JSON]) -> Limits:
    """Return the limits that a plan names."""
    return Limits(**plan["identity"]["run"]["limits"])


def plan_digest(plan: Mapping[str, JSON]) -> str:
    """Return the digest of a plan, which the run's journal names."""
    return digest(plan)


def identity_difference(stored: Mapping[str, JSON], current: Mapping[str, JSON]) -> tuple[str, ...]:
    """Name what differs between two plans, so that results can't be mixed.

    Everything counts but when and on which platform the plan was made, and the run's budget.

    Returns:
        One line a field, in order: ``identity.versions.dspy: "3.4.1" became "3.4.2"``.
    """
    before, after = dict(_leaves(stored)), dict(_leaves(current))
    return tuple(
        f"{path}: {_short(before, path)} became {_short(after, path)}"
        for path in sorted(before.keys() | after.keys())
        if before.get(path, _MISSING) != after.get(path, _MISSING)
    )


def iter_cases(plan: Mapping[str, JSON]) -> Iterator[CaseKey]:
    """Yield every planned case in start order; a longer plan keeps its prefix."""
    seed = plan["identity"]["run"]["seed"]
    for trial in range(1, plan["trials"] + 1):
        for pair in sorted(plan["pairs"], key=lambda pair: _hash("pair", seed, trial, pair)):
            for twin in twin_order(seed, trial, pair):
                yield CaseKey(pair, trial, twin)


def case_order(plan: Mapping[str, JSON]) -> list[CaseKey]:
    """Return every planned case in start order."""
    return list(iter_cases(plan))


def twin_order(seed: int, trial: int, pair: str) -> tuple[Twin, Twin]:
    """Return which twin of a pair-trial starts first, and which second."""
    first = _hash("twin", seed, trial, pair)[0] & 1
    return TWINS if first == 0 else (TWINS[1], TWINS[0])


def case_seed(plan: Mapping[str, JSON], key: CaseKey) -> int:
    """Return the case's own seed, in [0, 2^63): the first bits of a SHA-256."""
    seed = plan["identity"]["run"]["seed"]
    hashed = _hash("case", seed, key.trial, key.pair, key.twin)
    return int.from_bytes(hashed[:8], "big") >> 1


def read_plan(directory: Path) -> dict[str, JSON]:
    """Read a run directory's plan.json.

    Raises:
        InputError: there is none, or it is not one that this version can read.
    """
    path = directory / PLAN_FILE
    if not path.is_file():
        raise InputError(
            "is not a run directory: it holds no plan.json",
            where=str(directory),
            mend="Name the folder that `impact-twin repeat --out` wrote.",
        )
    return check_plan(read_strict(path), where=str(path))


def check_plan(plan: Any, *, where: str) -> dict[str, JSON]:
    """Return the plan if it keeps to its schema.

    Raises:
        InputError: it does not, or a newer version of impact-twin wrote it.
    """
    if not isinstance(plan, dict) or plan.get("kind") != KIND:
        raise InputError(f"is not a plan: kind is not {KIND!r}", where=where)
    version = plan.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InputError(
            f"has schema_version {version}; this version reads up to {SCHEMA_VERSION}",
            where=where,
            mend="Use a newer impact-twin.",
        )
    from jsonschema import Draft202012Validator

    schema = json.loads((data_folder("schemas") / "1" / "plan.schema.json").read_bytes())
    errors = sorted(Draft202012Validator(schema).iter_errors(plan), key=lambda error: error.path)
    if errors:
        field = ".".join(str(part) for part in errors[0].path) or "the plan"
        raise InputError(f"{field} breaks the schema: {errors[0].message[:200]}", where=where)
    return plan


def _chosen_pairs(every: list[str], pairs: Sequence[str] | None) -> list[str]:
    if pairs is None:
        return every
    unknown = [pair for pair in pairs if pair not in every]
    if unknown:
        raise InputError(
            f"{unknown[0]!r} is no pair of the suite",
            where="--pairs",
            mend=f"Choose among {', '.join(every)}.",
        )
    if not pairs:
        raise InputError("no pair is chosen", where="--pairs")
    if len(set(pairs)) != len(pairs):
        raise InputError("a pair is named twice", where="--pairs")
    return [pair for pair in every if pair in pairs]


def _versions() -> dict[str, str]:
    found = {"impact_twin": impact_twin.__version__}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _hash(*parts: str | int) -> bytes:
    return hashlib.sha256(json.dumps(parts).encode("ascii")).digest()


_MISSING = object()


def _leaves(value: JSON, path: str = "") -> Iterator[tuple[str, JSON]]:
    if path in _NOT_COMPARED:
        return
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, list(value) if isinstance(value, tuple) else value


def _short(leaves: Mapping[str, JSON], path: str) -> str:
    if path not in leaves:
        return "nothing"
    text = json.dumps(leaves[path])
    return text if len(text) <= 80 else text[:77] + "..."


def _check_whole(value: object, where: str, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(
            f"{value!r} is out of range",
            where=where,
            mend=f"Give a whole number from {low}."
            if high > MAX_TRIALS
            else f"Give a whole number from {low} to {high}.",
        )


def _check_real(value: float, where: str, what: str) -> None:
    if isinstance(value, bool) or not math.isfinite(value) or value <= 0:
        raise InputError(f"{value} is out of range", where=where, mend=f"Give {what}.")
