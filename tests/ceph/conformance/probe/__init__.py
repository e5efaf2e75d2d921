"""Test-only mgr module: tells what the mgr's API gives to a module."""
from .module import Module

__all__ = ["Module"]
