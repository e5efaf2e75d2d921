"""Finding moves: single and joint ones, swaps and ejection chains. Reverting needless ones.

May import planner.state and what is below it.
"""
