"""CRUSH in plain Python: from a `ceph osd crush dump` to the OSDs of every PG, exact as Ceph."""
