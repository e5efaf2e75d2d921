"""Processes in virtual time: backfill, peering, clients, pg_num steps, reports.

May import monitor and what is below it.
"""
