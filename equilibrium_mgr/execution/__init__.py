"""Carries one plan out: which changes go now, what keeps them back, and what came of them.

May import gateway, plan and what is below them.
"""
