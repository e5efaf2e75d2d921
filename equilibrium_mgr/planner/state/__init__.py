"""The placement while it is being planned, in flat lists: legality and costs of moves.

May import planner.bound, planner.objective, plan and what is below them.
"""
