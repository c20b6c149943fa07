"""Which scoring rule ran, and which cases were counted.

This room only reads. Nothing here changes AgentDojo in the calling process: what it would be with
the modules that start-up leaves out is asked of a fresh interpreter (`impact_twin.audit.fresh`).
"""
