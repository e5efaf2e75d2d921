"""Differences between Ceph releases in how a module registers its commands.

Ceph 20 replaced the global `CLICommand` registry by one registry type per module. Which of the two
is there is found by importing, never by a version number.
"""
from __future__ import annotations

import functools
import inspect
import keyword
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


def keyword_arguments(handler: _Handler) -> _Handler:
    """Decorator: Ceph sees a parameter such as `from_` under the keyword, `from`.

    Ceph names arguments after the parameters of the handler's signature, and passes them by name.
    """
    shown = {f"{name}_": name for name in keyword.kwlist}
    signature = inspect.signature(handler)
    parameters = {shown.get(name, name): name for name in signature.parameters}

    @functools.wraps(handler)
    def called(self: Any, **arguments: Any) -> Any:
        return handler(self, **{parameters[name]: value for name, value in arguments.items()})
    del called.__wrapped__   # Ceph from 18 on would look into it
    # only a positional parameter may have a keyword for its name
    called.__signature__ = signature.replace(parameters=[  # type: ignore[attr-defined]
        signature.parameters[own].replace(name=name, kind=inspect.Parameter.POSITIONAL_ONLY)
        for name, own in parameters.items()])
    called.__annotations__ = {shown.get(name, name): hint
                              for name, hint in handler.__annotations__.items()}
    return called   # type: ignore[return-value]


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
