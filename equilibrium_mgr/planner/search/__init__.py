"""How moves are found: single ones, joint ones, swaps and chains, and the taking back of needless ones.

May import planner.state and what is below it.
"""
