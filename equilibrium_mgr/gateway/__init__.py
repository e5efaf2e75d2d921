"""The only folder that calls the mgr, but for the key-value store (runtime/kv_store.py): what is
read, what is sent, the built-in balancer.

May import settings, plan, snapshot and what is below them.
"""
