"""What planner, store, execution and reports agree on: options, the plan and its figures, how it is
kept.

May import snapshot and what is below it.
"""
