"""What the page tells, before any of it is written.

May import the drawings' levels, the figures of report/cluster, and what is below report/.
"""
