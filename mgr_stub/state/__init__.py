"""Cluster state files: reading, checking, building a Cluster of one, and writing it.

May import simulation and the layers below it.
"""
