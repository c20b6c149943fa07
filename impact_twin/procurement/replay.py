"""Runs a recorded case again on a fresh world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from impact_twin.procurement.model import Trace
from impact_twin.procurement.runtime import CaseRuntime

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite


def replay(suite: Suite, trace: Trace) -> Trace:
    """Run the recorded calls on a fresh world and return what that gives.

    Equal traces show that the record is consistent: same outputs, same effects, same final state.
    They don't show that it happened. Termination and final answer are taken over: the world can't
    know them.

    Args:
        suite: The suite that the trace belongs to.
        trace: A recorded trace; its outputs, effects and final state are not used.

    Raises:
        InputError: the suite has no such pair.
    """
    case = CaseRuntime(suite, trace.pair, trace.twin, max_calls=len(trace.events))
    for event in trace.events:
        case.call(event.tool, event.arguments)
    case.seal()
    return case.trace(trace.termination, trace.final_answer)
