"""Freezing: remapped PGs are pinned by upmap items to where their data is now.

Pure, as the planner is. May import plan and what is below it.
"""
