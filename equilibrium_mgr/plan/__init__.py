"""Options, the plan with its figures, and its store: planner, execution and reports share them.

May import snapshot and the folders below it.
"""
