"""What the module has changed, and plans that take it back.

Imports plans, snapshots and runtime.
"""
