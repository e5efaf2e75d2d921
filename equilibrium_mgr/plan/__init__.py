"""What planner, execution and reports share: options, the plan and its figures, its store.

May import snapshot and what is below it.
"""
