"""Whole commands on the simulated demo cluster, as an operator would type them."""
