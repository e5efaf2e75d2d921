"""A small module that uses the API as equilibrium does, for tests of the stub alone.

No `from __future__ import annotations` here: Ceph reads the annotations of handlers as types.
"""

import enum
import json
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import mgr_module
from mgr_module import CommandResult, MgrModule, Option

Registry: Any
if hasattr(mgr_module, "CLICommandBase"):
    Registry = mgr_module.CLICommandBase.make_registry_subtype("FakeCLICommand")
    Read, ReadWrite = Registry.Read, Registry
else:
    Registry, Read = mgr_module.CLICommand, mgr_module.CLIReadCommand
    ReadWrite = Registry

Answer = Tuple[int, str, str]


class Color(enum.Enum):
    red = "red"
    blue = "blue"


class Module(MgrModule):
    CLICommand = Registry
    MODULE_OPTIONS = [
        Option(name="active", type="bool", default=False, runtime=True),
        Option(name="sleep_interval", type="secs", default=60, min=1, max=86400, runtime=True),
        Option(name="limit", type="size", default=1024),
        Option(name="ratio", type="float", default=0.5, min=0.0, max=1.0),
        Option(name="count", type="uint", default=3),
        Option(name="shift", type="int", default=-1, min=-5),
        Option(name="text", type="str", default="x"),
        Option(name="aim", type="str", default="even", enum_allowed=["even", "space"]),
    ]

    def __init__(self, *args: Any, clock: Callable[[], float] = time.time,
                 jobs: Any = None) -> None:
        super().__init__(*args)
        self.clock = clock
        self.jobs = jobs
        self.wakeup = threading.Event()
        self.steps: List[float] = []
        self.notified = 0
        self.closed = False
        self.work: Optional[Callable[[], None]] = None

    def step(self) -> float:
        self.steps.append(self.clock())
        if self.work is not None:
            self.work()
        return float(self.get_module_option("sleep_interval"))

    def config_notify(self) -> None:
        self.notified += 1
        self.wakeup.set()

    def shutdown(self) -> None:
        self.closed = True

    def send(self, *commands: Dict[str, Any]) -> List[CommandResult]:
        """Sends commands without waiting."""
        results = []
        for command in commands:
            result = CommandResult("")
            self.send_command(result, "mon", "", json.dumps(command), "")
            results.append(result)
        return results

    @Read("equilibrium echo")
    def echo(self, word: str, number: int = 7, format: str = "plain") -> Answer:
        return 0, json.dumps([word, number, format]), ""

    @ReadWrite("equilibrium opt")
    def opt(self, plan: str, pools: Optional[List[str]] = None,
            max_moves: Optional[int] = None, device_class: Optional[str] = None,
            format: str = "plain") -> Answer:
        return 0, json.dumps([plan, pools, max_moves, device_class, format]), ""

    @Read("equilibrium noformat")
    def noformat(self, share: float = 0.5, color: Optional[Color] = None,
                 sure: bool = False) -> Answer:
        return 0, json.dumps([share, color.value if color else None, sure]), ""

    @Read("equilibrium unannotated")
    def unannotated(self, first: str, second: str):  # type: ignore[no-untyped-def]
        return 0, first + second, ""

    @ReadWrite("equilibrium crash")
    def crash(self) -> Answer:
        raise KeyError("gone")

    @ReadWrite("equilibrium later")
    def later(self) -> Answer:
        self.jobs.submit("later", lambda: self.set_store("later", "done"))
        return 0, "later: planning", ""

    @ReadWrite("equilibrium fail")
    def fail(self) -> Answer:
        return -2, "half an answer", "no such thing"
