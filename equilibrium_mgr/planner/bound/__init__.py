"""A lower bound of the highest utilization of OSDs, and the constraint that sets it.

May import plan and the folders below it.
"""
