"""What README and handbook show is what the program prints; `python3 -m tests.readme` renews it.

`python3 -m tests.readme.rst` makes the page for Ceph's own documentation of it.
"""
