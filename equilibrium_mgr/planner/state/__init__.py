"""A placement while it is being planned, in flat lists: what moves are legal, and what they cost.

May import planner.bound, planner.objective, plan and what is below them.
"""
