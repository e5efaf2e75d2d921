"""Commands that take changes back or tidy up: each makes a plan, which the loop carries out.

Imports what the other commands import.
"""
