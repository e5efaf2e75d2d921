"""What any long-running module needs: yielding to others, a background thread, waits, the
key-value store, figures as people read them. Knows nothing of Ceph's placement.

Imports nothing of the module.
"""
