"""The same events on real daemons and in mgr_stub, and what both then tell."""
