"""The log of changes that the module has sent, and plans that undo or cancel them.

May import planner and the folders below it, and the store of runtime.
"""
