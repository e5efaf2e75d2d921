"""A ceph-mgr without Ceph: a stand-in for `mgr_module` over a simulated cluster in virtual time.

`python3 -m mgr_stub` runs the module from the shell, `console.session.Session` runs command lines
from Python. `mgr.install.install(release)` puts the stand-in into `sys.modules` as `mgr_module`;
importing this package alone does not.
"""
