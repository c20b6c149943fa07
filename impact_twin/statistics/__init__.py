"""Pure functions over the observation table. Imports numpy and nothing of ours."""
