"""How an agent is called: the protocol, the demo agents, factories, ReAct and pipelines."""
