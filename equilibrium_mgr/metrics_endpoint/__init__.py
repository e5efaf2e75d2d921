"""The HTTP endpoint of the metrics: off unless the option metrics_port is set.

It knows HTTP and threads, and nothing of Ceph or the metrics. May import runtime/ alone.
"""
