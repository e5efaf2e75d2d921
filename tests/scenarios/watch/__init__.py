"""Watchers of a run: what the module says against what the simulated cluster is, rest, and work."""
