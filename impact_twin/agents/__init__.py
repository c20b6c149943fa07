"""How an agent is called: the protocol, the demo agents, factories, ReAct and pipelines."""

from __future__ import annotations

from impact_twin.agents.sources import load_source, spec_from_options

__all__ = ["load_source", "spec_from_options"]
