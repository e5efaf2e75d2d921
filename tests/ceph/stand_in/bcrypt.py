"""Stand-in for bcrypt in the module folder of a test cluster, never in a real one.

Debian 13 builds bcrypt with PyO3, which refuses the sub-interpreters of Ceph 18's mgr, so that no
Python module loads there. `mgr_util` imports it for the dashboard's passwords, and the dashboard is
not used by the tests.
"""
