"""The only folder that calls the mgr: what is read, what is sent, the built-in balancer.

May import settings, plan, snapshot and what is below them.
"""
