"""Command lines and their answers: the module's, the monitor's, `sim` commands, and the demo.

May import everything but `__main__`.
"""
