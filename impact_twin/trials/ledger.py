"""What a run has spent, and whether its budget is used up."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

from impact_twin.agents.protocol import ModelCall, Usage
from impact_twin.trials.plan import Limits
from impact_twin.trials.records import CaseRecord


@dataclass(frozen=True)
class Spent:
    """What a run consumed, as far as anybody said.

    Attributes:
        input_tokens: Prompt tokens.
        output_tokens: Completion tokens.
        cost_usd: US dollars, known costs only.
        requests: Model requests that ended.
        unpriced: Requests that used tokens and whose cost is unknown.
        silent: Cases for which nobody reported requests or usage.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    requests: int = 0
    unpriced: int = 0
    silent: int = 0

    @property
    def tokens(self) -> int:
        """Tokens in all."""
        return self.input_tokens + self.output_tokens


class Ledger:
    """Adds up usage from all cases and compares it with the run's budget.

    Args:
        limits: The budget is `max_cost_usd` and `max_tokens`.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._spent = Spent()

    @property
    def spent(self) -> Spent:
        """What was spent so far."""
        return self._spent

    def add_call(self, call: ModelCall) -> None:
        """Count one request."""
        usage = call.usage
        used = usage.input_tokens + usage.output_tokens > 0
        self._add(usage, requests=1, unpriced=int(used and usage.cost_usd is None))

    def add_reported(self, usage: Usage | None) -> None:
        """Count a case whose requests nobody saw: with what its agent said, or as silent."""
        if usage is None:
            self._add(Usage(), silent=1)
        else:
            self._add(usage, unpriced=int(usage.cost_usd is None))

    def add_earlier(self, records: Iterable[CaseRecord]) -> None:
        """Count what the run spent before it was resumed."""
        for record in records:
            for call in record.model_calls:
                self.add_call(call)
            if not record.model_calls:
                self.add_reported(None if record.usage == Usage() else record.usage)

    def used_up(self) -> str:
        """Return why no further case may start; empty while one may."""
        spent, limits = self._spent, self._limits
        if limits.max_tokens is not None and spent.tokens >= limits.max_tokens:
            return (
                f"--max-tokens {limits.max_tokens} is used up ({spent.tokens} tokens). "
                "Go on with --resume and a larger --max-tokens."
            )
        if limits.max_cost_usd is not None and spent.cost_usd >= limits.max_cost_usd:
            return (
                f"--max-cost-usd {limits.max_cost_usd:g} is used up ({spent.cost_usd:.4f} USD). "
                "Go on with --resume and a larger --max-cost-usd."
            )
        return ""

    def blind_spots(self) -> tuple[str, ...]:
        """Return what the budget can't see, one line each; empty without a budget."""
        spent, limits = self._spent, self._limits
        lines = []
        if limits.max_cost_usd is not None and spent.unpriced:
            lines.append(
                f"{spent.unpriced} requests have no known cost: "
                "--max-cost-usd counts the others only"
            )
        if spent.silent and (limits.max_cost_usd is not None or limits.max_tokens is not None):
            lines.append(
                f"{spent.silent} cases reported no usage: the budget counts the others only"
            )
        return tuple(lines)

    def _add(self, usage: Usage, *, requests: int = 0, unpriced: int = 0, silent: int = 0) -> None:
        with self._lock:
            spent = self._spent
            self._spent = Spent(
                input_tokens=spent.input_tokens + usage.input_tokens,
                output_tokens=spent.output_tokens + usage.output_tokens,
                cost_usd=spent.cost_usd + (usage.cost_usd or 0.0),
                requests=spent.requests + requests,
                unpriced=spent.unpriced + unpriced,
                silent=spent.silent + silent,
            )


def total_usage(calls: Iterable[ModelCall], reported: Iterable[Usage]) -> Usage:
    """Return the usage of a case over all its tries.

    The cost is None when nothing was reported, or a request used tokens at an unknown cost.
    """
    inputs = outputs = 0
    cost: float | None = None
    known = True
    for usage in [*(call.usage for call in calls), *reported]:
        inputs += usage.input_tokens
        outputs += usage.output_tokens
        if usage.cost_usd is not None:
            cost = (cost or 0.0) + usage.cost_usd
        elif usage.input_tokens + usage.output_tokens > 0:
            known = False
    return Usage(inputs, outputs, cost if known else None)
