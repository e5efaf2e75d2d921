"""Calls the mgr: reads, sends moves, and switches the built-in balancer. Of other code, only the
key-value store (runtime/kv_store.py) and module.py call it.

May import settings, plan, snapshot and the folders below them.
"""
