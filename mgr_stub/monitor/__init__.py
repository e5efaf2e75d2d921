"""The simulated monitor: commands and their epochs, configuration, key-value store, faults.

May import cluster and what is below it.
"""
