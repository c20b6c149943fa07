"""The AgentDojo base-model board."""
