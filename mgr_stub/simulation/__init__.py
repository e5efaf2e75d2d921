"""What happens as virtual time passes: backfill, peering, clients, pg_num steps, reports.

May import monitor and what is below it.
"""
