"""What the cluster is: an immutable picture of one osdmap epoch, built from plain dictionaries.

May import crush and runtime.
"""
