"""What is seen of the cluster between decisions: the view that people read, and when to look again.

May import execution, gateway, planner and what is below them.
"""
