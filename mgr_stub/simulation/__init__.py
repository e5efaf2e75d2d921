"""Processes in virtual time: backfill, peering, clients, pg_num steps, reports.

May import monitor and the layers below it.
"""
