"""How equally full the OSDs can be at best: a lower bound, and what keeps them from it.

May import plan and what is below it.
"""
