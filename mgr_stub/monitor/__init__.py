"""The simulated monitor: commands and their epochs, configuration, key-value store, faults.

May import cluster and the layers below it.
"""
