"""CRUSH in plain Python: from a `ceph osd crush dump` to the OSDs of every PG, exactly as Ceph.

Also edits a dump like the monitor's commands. Imports nothing of the simulator.
"""
