"""Makes a plan from a snapshot: the same input gives the same plan. It knows neither the mgr nor a
clock.

May import plan and the folders below it.
"""
