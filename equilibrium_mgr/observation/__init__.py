"""Observes the cluster between decisions: the view that people read, and when to observe again.

May import execution, gateway, planner and the folders below them.
"""
