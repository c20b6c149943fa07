"""`--agent module:attr`: agents that a factory of the user's makes, one a case."""

from __future__ import annotations

from impact_twin.agents.calling import call_agent
from impact_twin.agents.protocol import CaseOutcome, CaseRequest
from impact_twin.agents.target import TargetSource


class FactorySource(TargetSource):
    """Objects with `run(query, tools, *, system_directive="")`."""

    KIND = "factory"
    OPTION = "--agent"
    NOUN = "an agent"
    METHOD = "run"
    MEND = "Return an object with run(query, tools, *, system_directive='')."

    def run_case(self, request: CaseRequest) -> CaseOutcome:
        """Make an agent and run it; its failure becomes an outcome."""
        return call_agent(lambda: self._make(request), request, self._instances)
