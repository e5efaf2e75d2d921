"""A unit for Ceph's own suites, laid out as below `qa` there; teuthology runs it."""
