"""Test-only mgr module: does equilibrium's work on a made cluster, in the mgr's own process."""
from .module import Module

__all__ = ["Module"]
