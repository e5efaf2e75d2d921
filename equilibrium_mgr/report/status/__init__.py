"""`status`: what equilibrium does, why, and what helps.

May import control and what is below it, and the files of report/ itself.
"""
