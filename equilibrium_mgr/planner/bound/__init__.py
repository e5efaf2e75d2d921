"""How equally full the OSDs could be at best: a lower bound, and what stands in the way of it.

May import plan and what is below it.
"""
