"""The PGs of the last look, kept and amended: a look builds anew what has changed since.

May import crush, runtime, sizes and the values and checks of snapshot.
"""
