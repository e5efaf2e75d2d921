"""Drains: the OSDs that an operator wants emptied, and their progress. Pure values.

planner/search/evacuation.py plans how shards leave, and the module executes that as any plan. May
import plans, snapshots and the folders below them.
"""
