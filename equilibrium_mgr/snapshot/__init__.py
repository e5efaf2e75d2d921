"""The cluster: an immutable snapshot of one osdmap epoch, built from plain dictionaries, and the
state that is kept from one reading to the next.

May import crush and runtime.
"""
