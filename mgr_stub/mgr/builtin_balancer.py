"""The built-in balancer as far as other modules use it: its switch and its commands.

It never moves a PG here; in mode `read` it sets primaries (simulation/read_balancer.py). A
ModuleHost switches it off at first, so that plans can be executed.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..errors import Answer, StubError, invalid
from ..monitor.config import Config


_MODES: Tuple[str, ...] = ("none", "crush-compat", "upmap")
_MODES_OF_19 = ("read", "upmap-read")


class BuiltinBalancer:
    """The always-on module `balancer`; its remote methods differ between releases."""

    def __init__(self, config: Config, release: int,
                 option: Callable[[str, str], Any]) -> None:
        self._config = config
        #: The running mgr's value of (module, option).
        self._option = option
        self._release = release
        #: Number of times that `on` or `off` has woken its loop.
        self.wakeups = 0

    @property
    def active(self) -> bool:
        value = self._option("balancer", "active")
        if value is None:
            return True
        return bool(value)

    @property
    def mode(self) -> str:
        return str(self._option("balancer", "mode") or "upmap")

    @property
    def may_move_data(self) -> bool:
        """Returns True while it is on and writes upmap items or weights."""
        return self.active and self.mode not in ("none", "read")

    def remote(self, method: str, args: Tuple[Any, ...]) -> Any:
        """Returns the target of `remote('balancer', ...)`: `handle_command` in 16; `on`, `off` from
        18 on.
        """
        if method == "gather_telemetry":
            return {"active": self.active, "mode": self.mode}
        if self._release < 18:
            if method != "handle_command":
                raise NameError(method)
            command: Dict[str, Any] = {}
            if len(args) > 1:
                command = args[1]
            return self.command(str(command.get("prefix", "")).split()[1:])
        if method not in ("on", "off", "show_status"):
            raise NameError(method)
        return self.command([{"show_status": "status"}.get(method, method)])

    def command(self, words: List[str]) -> Answer:
        """Runs `balancer on`, `balancer off`, `balancer mode` and `balancer status`."""
        if words in (["on"], ["off"]):
            self._config.set_module_option(
                "balancer", "active", {"on": "true", "off": "false"}[words[0]])
            self.wakeups += 1
            return 0, "", ""
        if words[:-1] == ["mode"]:
            modes = _MODES
            if self._release >= 19:
                modes += _MODES_OF_19
            if words[1] not in modes:
                raise invalid(f"{words[1]} not in {'|'.join(_MODES)}")
            self._config.set_module_option("balancer", "mode", words[1])
            return 0, "", ""
        if words == ["status"]:
            return 0, json.dumps(self._status(), indent=4, sort_keys=True), ""
        raise invalid("the simulated balancer knows only on, off, mode and status")

    def _status(self) -> Dict[str, Any]:
        return {"active": self.active, "last_optimize_duration": "", "last_optimize_started": "",
                "mode": self.mode, "no_optimization_needed": False, "optimize_result": "",
                "plans": []}


def try_command(balancer: BuiltinBalancer, words: List[str]) -> Optional[Answer]:
    """Returns the answer if the words are a `balancer` command, else None."""
    if not words or words[0] != "balancer":
        return None
    try:
        return balancer.command([word for word in words[1:] if not word.startswith("-")])
    except StubError as error:
        return error.code, "", error.message
