"""Plans in the making: the jobs that make them, their progress, and why they failed.

May import gateway, planner and the folders below them.
"""
