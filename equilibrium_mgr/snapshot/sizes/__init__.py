"""How many bytes a shard occupies on a device, its omap included, from what Ceph reports.

May import crush, runtime and the plain values of snapshot.
"""
