"""What operators see: tables and JSON, made from snapshots, plans and the state of balancing.

May import control and what is below it.
"""
