"""The ceph-mgr without Ceph: a stand-in for `mgr_module` over a simulated cluster.

`mgr_stub.mgr.install.install(release)` puts the stand-in into `sys.modules`, `mgr_stub.console.session.Session`
runs command lines against it, `python3 -m mgr_stub` is both for the shell. Importing this package
does neither.
"""
