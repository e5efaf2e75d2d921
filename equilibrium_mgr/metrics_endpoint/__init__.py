"""The HTTP endpoint of the metrics: off unless the option metrics_port says otherwise.

Knows HTTP and threads, and nothing of Ceph or of what it serves. May import runtime/ alone.
"""
