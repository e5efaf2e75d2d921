"""Oracle tests: what the package plans is put before the real osdmaptool.

They make small clusters of many shapes with crushtool and osdmaptool (Ceph 16 or newer on the
PATH), let the package plan on them through the simulated mgr, put the planned upmap items into the
binary map and ask osdmaptool what a monitor would keep and how every PG then maps. Run them with

    EQUILIBRIUM_ORACLE=1 python -m pytest tests/oracle

EQUILIBRIUM_ORACLE_SEEDS=5 makes five clusters of each shape instead of one. A case is named
shape-variant-seed; the same name always gives the same cluster.
"""
