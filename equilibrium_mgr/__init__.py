"""Equilibrium: a Ceph mgr module that fills the devices of a cluster equally, by their size."""
import sys

# This file and old_python.py must compile with Python 3.6, which ceph-mgr 16 and 17 have in the
# official containers: an import that fails would show as a module that does not exist.
if sys.version_info >= (3, 9):
    from .module import Module
else:
    from .old_python import Module

__all__ = ["Module"]
