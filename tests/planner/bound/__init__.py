"""The lower bound of the highest utilization."""
