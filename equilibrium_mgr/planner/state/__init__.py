"""The placement during planning, in flat lists: legality and costs of moves.

May import planner.bound, planner.objective, plan and the folders below them.
"""
