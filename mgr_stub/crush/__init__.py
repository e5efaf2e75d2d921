"""CRUSH in plain Python: from a `ceph osd crush dump` to the OSDs of every PG, exactly as Ceph.

Also edits a dump as the monitor's commands do. Imports nothing of the simulator.
"""
