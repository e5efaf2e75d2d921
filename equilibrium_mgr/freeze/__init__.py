"""Freezing: upmap items pin remapped PGs to the OSDs that have their data.

Pure, as the planner is. May import plan and what it may import.
"""
