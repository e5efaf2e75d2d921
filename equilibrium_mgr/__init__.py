"""Equilibrium: a Ceph mgr module that fills the devices of a cluster equally, by their size."""
from .module import Module

__all__ = ["Module"]
