"""A lower bound of the highest utilization of OSDs, and the constraint that sets it.

May import plan and what is below it.
"""
