"""What the `ceph equilibrium …` commands do; cli.py declares them to Ceph.

May import report, control, plan_service, gateway and the folders below them.
"""
