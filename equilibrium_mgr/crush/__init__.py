"""CRUSH as far as a balancer needs it: the hierarchy, the rules and the placements they allow.

May import runtime.
"""
