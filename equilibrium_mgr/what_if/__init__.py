"""Hypothetical changes and failures: the cluster after them, and its figures.

Pure: takes a snapshot, changes and the up sets after a failure. May import plan and the
folders below it.
"""
