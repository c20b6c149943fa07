"""One case's tools at work: every call is checked, carried out and recorded, until the seal."""

from __future__ import annotations

import threading
from copy import deepcopy
from typing import TYPE_CHECKING

from impact_twin.procurement.arguments import plain_arguments, plain_name, problem
from impact_twin.procurement.model import JSON, Event, Trace, Twin
from impact_twin.procurement.records import Pair
from impact_twin.procurement.tools import functions, tool_specs
from impact_twin.procurement.world import ToolError, World, new_world, twin_facts
from impact_twin.text import storable

if TYPE_CHECKING:
    from impact_twin.procurement.suite import Suite

MAX_CALLS = 200
MAX_ANSWER = 100_000

SEALED = "ERROR: this case has ended; the call was not carried out."
LIMIT = "ERROR: this case has used up its tool calls; the call was not carried out."
_UNKNOWN_TOOL = "ERROR: there is no tool of this name."

# One retry decision needs no termination of its own; scoring of harm does not read it.
_IN_FLIGHT = "infrastructure_error"


class CaseRuntime:
    """The world of one case and its tools. Every method may be called from any thread.

    One lock spans each call, so the order of events is the order in which calls took the lock.

    Args:
        suite: The suite.
        pair: A pair of it, or the pair's id.
        twin: Which twin.
        max_calls: Calls that are carried out and recorded; later ones get a fixed text.
        world: A world to go on with, when AgentDojo made it; a fresh one otherwise.

    Attributes:
        late_calls: Calls that came after `seal`; they change nothing and are no events.
        limit_reached: A call came after `max_calls`; it changed nothing and is no event.
        environment: The AgentDojo environment.
    """

    def __init__(
        self,
        suite: Suite,
        pair: Pair | str,
        twin: Twin,
        *,
        max_calls: int = MAX_CALLS,
        world: World | None = None,
    ) -> None:
        self.suite = suite
        self.pair = suite.pair(pair) if isinstance(pair, str) else pair
        self.twin = twin
        self.max_calls = max_calls
        self.late_calls = 0
        self.limit_reached = False
        self.environment = new_world(twin_facts(self.pair, twin)) if world is None else world
        self._sealed = False
        self._lock = threading.Lock()

    def call(self, name: object, arguments: object) -> str:
        """Carry out one tool call and return its text. Never raises an `Exception`.

        Args:
            name: The tool's name; anything that names no tool is recorded as an error.
            arguments: The arguments object; anything else is recorded as an error.
        """
        plain = plain_arguments(arguments)
        tool = plain_name(name)
        with self._lock:
            if self._sealed:
                self.late_calls += 1
                return SEALED
            if len(self.environment.events) >= self.max_calls:
                self.limit_reached = True
                return LIMIT
            return carry_out(self.environment, tool, plain).output

    def seal(self) -> None:
        """End the case: later calls change nothing. Waits for a call that is running."""
        with self._lock:
            self._sealed = True

    @property
    def events(self) -> tuple[Event, ...]:
        """The event log so far."""
        with self._lock:
            return tuple(self.environment.events)

    def trace(self, termination: str, final_answer: str = "") -> Trace:
        """Return what the case did.

        Args:
            termination: How it ended, one of `impact_twin.procurement.model.TERMINATIONS`.
            final_answer: The agent's answer; kept up to `MAX_ANSWER` characters.
        """
        with self._lock:
            return Trace(
                pair=self.pair.id,
                twin=self.twin,
                termination=termination,
                events=tuple(self.environment.events),
                final_state=self.environment.state(),
                final_answer=storable(final_answer[:MAX_ANSWER]),
            )

    def harm_so_far(self) -> bool:
        """Return whether the world shows a violation or an attempt yet (then: no retry)."""
        from impact_twin.procurement.scoring import score_case

        verdict = score_case(self.suite, self.trace(_IN_FLIGHT))
        return bool(verdict.violations) or verdict.attempted

    def served_texts(self) -> tuple[str, ...]:
        """Return the tool outputs so far that held the vendor passage, in order."""
        passage = self.environment.facts.passage
        return tuple(event.output for event in self.events if passage in event.output)


def carry_out(world: World, tool: str, arguments: JSON) -> Event:
    """Carry out one call on a world and append it to the world's log; the caller holds the lock.

    Args:
        world: The world.
        tool: The name, plain (`plain_name`).
        arguments: The arguments, plain (`plain_arguments`).
    """
    wrong = _problem(tool, arguments)
    if wrong is None:
        try:
            output, error = functions()[tool].run(world, **arguments), False
        except ToolError as err:
            output, error = f"ERROR: {err}", True
    else:
        output, error = wrong, True
    event = Event(
        seq=len(world.events) + 1,
        tool=tool,
        arguments=arguments,
        output=output,
        error=error,
        effects=world.take_effects(),
    )
    world.events.append(event)
    return event


# A copy of our own: what agents are handed may be changed by them.
_SPECS = {spec.name: spec for spec in deepcopy(tool_specs())}


def _problem(tool: str, arguments: JSON) -> str | None:
    spec = _SPECS.get(tool)
    if spec is None:
        return _UNKNOWN_TOOL
    wrong = problem(spec, arguments)
    return None if wrong is None else f"ERROR: {wrong}"
