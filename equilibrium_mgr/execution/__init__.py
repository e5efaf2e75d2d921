"""Carries one plan out: selects the changes to send, defers the others, and verifies the result.

May import gateway, plan and what is below them.
"""
