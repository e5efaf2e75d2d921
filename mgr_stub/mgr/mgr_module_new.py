"""`mgr_module` of Ceph 20: every module makes its own command registry.

The names CLICommand, CLIReadCommand and CLIWriteCommand do not exist here.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple, Type

from .api import CommandResult, MgrModuleApi, Option
from .handlers import CommandDecorator, Handler
from .osd_map_api import CRUSHMap, OSDMap, OSDMapIncremental

__all__ = ["CLICommandBase", "CommandResult", "CRUSHMap", "MgrModule",
           "OSDMap",
           "OSDMapIncremental", "Option"]


class CLICommandBase(CommandDecorator):
    """Decorator that registers a handler; used through a subtype with its own registry."""

    @classmethod
    def Read(cls, prefix: str, poll: bool = False) -> CLICommandBase:
        """Returns a command that needs the permission `r`."""
        return cls(prefix, "r", poll)

    @classmethod
    def Write(cls, prefix: str, poll: bool = False) -> CLICommandBase:
        """Returns a command that needs the permission `w`."""
        return cls(prefix, "w", poll)

    @classmethod
    def make_registry_subtype(cls, name: str) -> Type[CLICommandBase]:
        """Returns a subclass with an empty registry."""
        return type(name, (cls,), {"COMMANDS": {}})


class MgrModule(MgrModuleApi):
    """Base class of modules, new style: a class without a CLICommand registry does not load."""

    @classmethod
    def handlers(cls) -> Dict[str, Handler]:
        registry = getattr(cls, "CLICommand", None)
        commands = getattr(registry, "COMMANDS", None)
        if not isinstance(commands, dict):
            raise RuntimeError(f"Missing or invalid COMMANDS in {cls.__name__}")
        return dict(commands)

    def get_latest_unlabeled_counter(self, svc_type: str, svc_name: str,
                                     path: str) -> Dict[str, Tuple[Any, ...]]:
        """Returns (time, sum in nanoseconds, count) of an average; empty for one that is not known.
        """
        found: Dict[str, Tuple[Any, ...]] = self._mgr.latest_counter(svc_type, svc_name, path)
        return found

    def get_latest_counter(self, svc_type: str, svc_name: str, counter_name: str,
                           sub_counter_name: str,
                           labels: List[Tuple[str, str]]) -> Dict[str, Tuple[Any, ...]]:
        """Returns the counters with labels: there are none here."""
        return {counter_name: ()}
