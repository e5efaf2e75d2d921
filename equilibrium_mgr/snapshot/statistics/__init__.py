"""What PGs, pools and OSDs report, read from the mgr's structures and kept between readings.

May import runtime and the plain values of snapshot.
"""
