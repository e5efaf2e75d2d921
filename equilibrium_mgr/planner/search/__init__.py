"""How moves are found: single and joint ones, swaps and ejection chains; and how needless ones are
reverted.

May import planner.state and what is below it.
"""
