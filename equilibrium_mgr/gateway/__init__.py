"""Calls the mgr: reads, sends moves, and switches the built-in balancer. No other code calls it,
except the key-value store (runtime/kv_store.py).

May import settings, plan, snapshot and the folders below them.
"""
