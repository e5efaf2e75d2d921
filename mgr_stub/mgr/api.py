"""The parts of the `mgr_module` API that the old and the new style share.

All calls go to the Mgr object that a module is given as `this_ptr`.
"""

from __future__ import annotations

import enum
import json
import logging
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..frozen import frozen
from .handlers import Handler


class AnswerEvent(threading.Event):
    """Set when the monitor has answered; waiting for it advances the simulation."""

    def __init__(self) -> None:
        super().__init__()
        self.before_wait: Optional[Callable[[Optional[float]], None]] = None

    def wait(self, timeout: Optional[float] = None) -> bool:
        if self.before_wait is not None and not self.is_set():
            self.before_wait(timeout)
            return self.is_set()
        return super().wait(timeout)


class CommandResult:
    """Answer of `send_command`: r, outb, outs, valid once `ev` is set."""

    def __init__(self, tag: Optional[str] = None) -> None:
        self.ev = AnswerEvent()
        self.r = 0
        self.outb = ""
        self.outs = ""
        self.tag = tag or ""

    def complete(self, r: int, outb: str, outs: str) -> None:
        self.r = r
        self.outb = outb
        self.outs = outs
        self.ev.set()

    def wait(self) -> Tuple[int, str, str]:
        self.ev.wait()
        return self.r, self.outb, self.outs


class Option(Dict[str, Any]):
    """A module option; all but the name is keyword-only, since releases differ in the order."""

    def __init__(self, name: str, *, default: Any = None, type: str = "str",
                 desc: Optional[str] = None, long_desc: Optional[str] = None,
                 min: Any = None, max: Any = None, enum_allowed: Optional[List[str]] = None,
                 tags: Optional[List[str]] = None, see_also: Optional[List[str]] = None,
                 runtime: bool = False) -> None:
        fields = {"name": name, "default": default, "type": type, "desc": desc,
                  "long_desc": long_desc, "min": min, "max": max, "enum_allowed": enum_allowed,
                  "tags": tags, "see_also": see_also, "runtime": runtime}
        super().__init__({key: value for key, value in fields.items() if value is not None})


_LEVELS = ["info", "debug", "critical", "error", "warning", ""]

#: Options that every module has without declaring them.
LOG_OPTIONS: Tuple[Option, ...] = (
    Option(name="log_level", default="", enum_allowed=_LEVELS, runtime=True),
    Option(name="log_to_file", type="bool", default=False, runtime=True),
    Option(name="log_to_cluster", type="bool", default=False, runtime=True),
    Option(name="log_to_cluster_level", default="info", enum_allowed=_LEVELS, runtime=True),
)


class MgrModuleApi:
    """Methods of MgrModule that are the same in all releases."""

    class ClusterLogPrio(enum.IntEnum):
        DEBUG = 0
        INFO = 1
        SEC = 2
        WARN = 3
        ERROR = 4

    def __init__(self, module_name: str, py_modules_ptr: object, this_ptr: Any) -> None:
        self.module_name = module_name
        self._mgr = this_ptr
        self._declared: Dict[str, Option] = {
            option["name"]: option
            for option in list(LOG_OPTIONS) + list(getattr(self, "MODULE_OPTIONS", []))}
        self._logger = logging.getLogger(module_name)

    # -- life cycle ---------------------------------------------------------------------------

    @staticmethod
    def can_run() -> Tuple[bool, str]:
        return True, ""

    @classmethod
    def handlers(cls) -> Dict[str, Handler]:
        """Returns the registered commands by prefix; this method exists in the stub only."""
        raise NotImplementedError

    def serve(self) -> None:
        """Runs in its own thread in a mgr; a ModuleHost calls `step` of the module instead."""

    def shutdown(self) -> None:
        """Ends the module; the mgr calls it."""

    def config_notify(self) -> None:
        """Handles a change of any option; the mgr calls it."""

    def handle_command(self, inbuf: Optional[str], cmd: Dict[str, Any]) -> Tuple[int, str, str]:
        raise NotImplementedError()

    # -- reading ------------------------------------------------------------------------------

    @property
    def log(self) -> logging.Logger:
        return self._logger

    def getLogger(self, name: Optional[str] = None) -> logging.Logger:
        return logging.getLogger(name or self.module_name)

    @property
    def version(self) -> str:
        return str(self._mgr.version)

    @property
    def release_name(self) -> str:
        return str(self._mgr.release_name)

    def get_mgr_id(self) -> str:
        return str(self._mgr.mgr_id)

    def get_mgr_ip(self) -> str:
        return "127.0.0.1"

    def set_uri(self, uri: str) -> None:
        """Sets the module's address for `ceph mgr services`; "" for none."""
        self._mgr.services[self.module_name] = uri

    def have_mon_connection(self) -> bool:
        return bool(self._mgr.mon_connected)

    def get(self, data_name: str) -> Any:
        value = self._mgr.get(data_name)
        if self._mgr.shares_readings:
            return frozen(value)
        return value

    def get_osdmap(self) -> Any:
        return self._mgr.get_osdmap()

    def get_ceph_option(self, key: str) -> Any:
        return self._mgr.config.core("mgr", key)

    def get_foreign_ceph_option(self, entity: str, key: str) -> Any:
        return self._mgr.config.core(entity, key)

    def get_metadata(self, svc_type: str, svc_id: str,
                     default: Optional[Dict[str, str]] = None) -> Optional[Dict[str, str]]:
        found: Optional[Dict[str, str]] = self._mgr.metadata(svc_type, svc_id)
        if found is None:
            return default
        return found

    # -- options ------------------------------------------------------------------------------

    def _option(self, key: str) -> Option:
        if key not in self._declared:
            raise RuntimeError(
                f"Config option '{key}' is not in {self.__class__.__name__}.MODULE_OPTIONS")
        return self._declared[key]

    def get_module_option(self, key: str, default: Any = None) -> Any:
        """Returns the typed value; if not set the declared default, else `default`."""
        option = self._option(key)
        value = self._mgr.module_option(self.module_name, key)
        if value is None:
            return option.get("default", default)
        return value

    def get_module_option_ex(self, module: str, key: str, default: Any = None) -> Any:
        """Returns another module's option: `default` if not set, regardless of its declared
        default.
        """
        if module == self.module_name:
            return self.get_module_option(key, default)
        value = self._mgr.module_option(module, key)
        if value is None:
            return default
        return value

    def get_localized_module_option(self, key: str, default: Any = None) -> Any:
        """Returns the same as get_module_option, because this mgr has no value of its own."""
        option = self._option(key)
        value = self._mgr.module_option(self.module_name, f"{self.get_mgr_id()}/{key}")
        if value is None:
            value = self._mgr.module_option(self.module_name, key)
        if value is None:
            return option.get("default", default)
        return value

    def set_module_option(self, key: str, val: Any) -> None:
        self._option(key)
        text = None
        if val is not None:
            text = str(val)
        self._mgr.set_module_option(self.module_name, key, text)

    def set_module_option_ex(self, module: str, key: str, val: Any) -> None:
        if module == self.module_name:
            self._option(key)
        self._mgr.set_module_option(module, key, str(val))

    # -- key-value store ----------------------------------------------------------------------

    def get_store(self, key: str, default: Optional[str] = None) -> Optional[str]:
        value = self._mgr.store.get(key)
        if value is None:
            return default
        return str(value)

    def set_store(self, key: str, val: Optional[str]) -> None:
        self._mgr.set_store(key, val)

    def get_store_prefix(self, key_prefix: str) -> Dict[str, str]:
        return dict(self._mgr.store.with_prefix(key_prefix))

    # -- commands -----------------------------------------------------------------------------

    def send_command(self, result: CommandResult, svc_type: str, svc_id: str, command: str,
                     tag: str, inbuf: Optional[str] = None, *, one_shot: bool = False) -> None:
        """Sends a command (JSON) to the monitor; `result` is completed when its epoch is made."""
        self._mgr.send_command(result, svc_type, svc_id, command)

    def mon_command(self, cmd_dict: Dict[str, Any],
                    inbuf: Optional[str] = None) -> Tuple[int, str, str]:
        result = CommandResult()
        self.send_command(result, "mon", "", json.dumps(cmd_dict), "", inbuf)
        return result.wait()

    # -- health, log, progress ----------------------------------------------------------------

    def set_health_checks(self, checks: Dict[str, Dict[str, Any]]) -> None:
        self._mgr.set_health_checks(checks)

    def cluster_log(self, channel: str, priority: MgrModuleApi.ClusterLogPrio,
                    message: str) -> None:
        self._mgr.cluster_log.append((channel, priority.value, message))

    def remote(self, module_name: str, method_name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a method of another module: ImportError, NameError or RuntimeError if it fails."""
        return self._mgr.remote(module_name, method_name, args, kwargs)
