"""What the module has changed, and plans that take it back.

May import planner and what is below it, and the store of runtime.
"""
