"""Screens on real daemons: figures of now, and what Ceph itself shows of equilibrium."""
