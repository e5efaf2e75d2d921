"""Decides in each round whether to idle, plan, send or wait, and stores what was done.

May import observation, execution, plan_service and what is below them.
"""
