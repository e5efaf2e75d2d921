"""Episodes of balancing: the one that lasts, those that ended, and what came of them.

May import what control may; nothing here observes, sends or decides.
"""
