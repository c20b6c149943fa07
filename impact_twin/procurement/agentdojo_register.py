"""Registers procurement-v1 with AgentDojo when imported: for its script's `-ml` option."""

from impact_twin.procurement.agentdojo_suite import register

register()
