"""Differences between Ceph releases in how a module registers its commands.

Ceph 20 replaced the global `CLICommand` registry by one registry type per module. Which of the two
is there is found by importing, never by a version number.
"""
from __future__ import annotations

from typing import Any, Callable, TypeVar

import mgr_module

_Handler = TypeVar("_Handler", bound=Callable[..., Any])

Registry: Any
if hasattr(mgr_module, "CLICommandBase"):
    Registry = mgr_module.CLICommandBase.make_registry_subtype("EquilibriumCLICommand")
    _READ, _WRITE = Registry.Read, Registry
else:
    Registry = mgr_module.CLICommand
    _READ, _WRITE = mgr_module.CLIReadCommand, mgr_module.CLICommand


def read_command(prefix: str) -> Callable[[_Handler], _Handler]:
    """Decorator that registers a handler for a command that only reads.

    The handler stays the plain function that it was: Ceph's decorators return it unchanged, but
    have no types that say so.
    """
    register: Callable[[_Handler], _Handler] = _READ(prefix)
    return register


def write_command(prefix: str) -> Callable[[_Handler], _Handler]:
    """Decorator that registers a handler for a command that changes something, as read_command."""
    register: Callable[[_Handler], _Handler] = _WRITE(prefix)
    return register
