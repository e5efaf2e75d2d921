"""Decides in each round whether to idle, plan, send or wait, and stores the results.

May import observation, execution, plan_service and the folders below them.
"""
