"""Automatic balancing beside its plans: drains, which it carries out, and the state at rest.

What a drain is: drain/. May import what control may; nothing here sends.
"""
