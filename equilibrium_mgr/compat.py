"""Registers commands in any Ceph release.

Ceph 20 replaced the global `CLICommand` registry by one registry type per module. The module finds
out by importing, never by a version number.
"""
from __future__ import annotations

import functools
import inspect
import keyword
from typing import Any, Callable

import mgr_module

Registry: Any
#: Decorators that register a handler: of a command that only reads, and of one that changes
#: something. Ceph's return the plain function, but have no types for that.
read_command: Callable[[str], Callable[[Any], Any]]
write_command: Callable[[str], Callable[[Any], Any]]
if hasattr(mgr_module, "CLICommandBase"):
    Registry = mgr_module.CLICommandBase.make_registry_subtype("EquilibriumCLICommand")
    read_command = Registry.Read
    write_command = Registry
else:
    Registry = mgr_module.CLICommand
    read_command = mgr_module.CLIReadCommand
    write_command = mgr_module.CLICommand


def keyword_arguments(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Shows Ceph a parameter such as `from_` under the keyword, `from`; a decorator.

    Ceph names arguments after the parameters of the handler's signature, and passes them by name.
    """
    shown = {f"{name}_": name for name in keyword.kwlist}
    signature = inspect.signature(handler)
    parameters = {shown.get(name, name): name for name in signature.parameters}

    @functools.wraps(handler)
    def called(self: Any, **arguments: Any) -> Any:
        return handler(self, **{parameters[name]: value for name, value in arguments.items()})
    del called.__wrapped__   # Ceph from 18 on would read its signature
    # only a positional parameter can have a keyword as its name
    called.__signature__ = signature.replace(parameters=[  # type: ignore[attr-defined]
        signature.parameters[own].replace(name=name, kind=inspect.Parameter.POSITIONAL_ONLY)
        for name, own in parameters.items()])
    called.__annotations__ = {shown.get(name, name): hint
                              for name, hint in handler.__annotations__.items()}
    return called
