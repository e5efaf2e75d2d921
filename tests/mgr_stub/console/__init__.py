"""Command lines and state files of the simulated mgr."""
