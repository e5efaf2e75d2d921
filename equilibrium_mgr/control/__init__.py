"""Decides in each round what is to be done: rest, plan, send, or wait, and remembers what was done.

May import observation, execution, plan_service and what is below them.
"""
