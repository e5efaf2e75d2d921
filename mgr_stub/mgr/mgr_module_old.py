"""`mgr_module` of Ceph 16 to 19: one global registry of commands per interpreter."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from .api import CommandResult, MgrModuleApi, Option
from .handlers import CommandDecorator, Handler
from .osd_map_api import CRUSHMap, OSDMap, OSDMapIncremental

__all__ = ["CLICommand", "CLIReadCommand", "CLIWriteCommand", "CommandResult", "CRUSHMap",
           "MgrModule", "OSDMap",
           "OSDMapIncremental", "Option"]


class CLICommand(CommandDecorator):
    """Decorator that registers a handler: `@CLICommand('prefix', perm='rw')`."""

    # as in Ceph the registry is a class attribute
    COMMANDS: Dict[str, Handler] = {}


def CLIReadCommand(prefix: str, poll: bool = False) -> CLICommand:
    """Returns a command that needs the permission `r`."""
    return CLICommand(prefix, "r", poll)


def CLIWriteCommand(prefix: str, poll: bool = False) -> CLICommand:
    """Returns a command that needs the permission `w`."""
    return CLICommand(prefix, "w", poll)


class MgrModule(MgrModuleApi):
    """Base class of modules, old style: the class attributes exist."""

    COMMANDS: List[Any] = []
    MODULE_OPTIONS: List[Option] = []

    @classmethod
    def handlers(cls) -> Dict[str, Handler]:
        """Commands of this module: the registered ones whose functions are in its package.

        In a mgr each module has its own interpreter, and thus its own registry.
        """
        package = cls.__module__.partition(".")[0]
        return {prefix: handler for prefix, handler in CLICommand.COMMANDS.items()
                if handler.function.__module__.partition(".")[0] == package}

    def get_latest_counter(self, svc_type: str, svc_name: str,
                           path: str) -> Dict[str, Tuple[Any, ...]]:
        """Returns (time, sum in nanoseconds, count) of an average; empty for one that is not known.
        """
        found: Dict[str, Tuple[Any, ...]] = self._mgr.latest_counter(svc_type, svc_name, path)
        return found
