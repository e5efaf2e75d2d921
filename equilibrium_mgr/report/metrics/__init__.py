"""`metrics`: the figures in the text format of Prometheus.

May import control and what is below it, and the files of report/ itself.
"""
