"""Finds pairs of upmap items that are without effect, and makes the plan that removes them.

Pure, as the planner is. Imports plan and what is below it.
"""
