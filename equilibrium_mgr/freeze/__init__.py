"""Freezing: upmap items pin remapped PGs to the OSDs that have their data.

Pure, as the planner is. May import plan and the folders below it.
"""
