"""Evens out which OSDs are primaries: clients read from these alone. No data moves.

Pure, as the planner is. Imports plan and what is below it.
"""
