"""From a snapshot to a plan: a pure function, the same for the same input. Nothing here knows the
mgr or a clock.

May import plan and what is below it.
"""
