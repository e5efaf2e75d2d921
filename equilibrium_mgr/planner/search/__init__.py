"""Finds single and joint moves, swaps and ejection chains, and reverts needless moves.

May import planner.state and the folders below it.
"""
