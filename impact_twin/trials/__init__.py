"""Running: the plan, limits, the runner and the journal."""
