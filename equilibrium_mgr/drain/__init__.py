"""Drains: which OSDs an operator wants emptied, and how far they are. Pure values.

How shards leave is planned by planner/search/evacuation.py, and carried out as any plan is. May
import plans, snapshots and what is below them.
"""
