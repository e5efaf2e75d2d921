"""CRUSH of the simulated cluster."""
