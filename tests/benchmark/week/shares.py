"""Whose processor time it is when the module runs on a simulated cluster."""
from __future__ import annotations

import functools
import time
from contextlib import ExitStack, contextmanager
from typing import Any, Callable, Dict, Iterator, Tuple
from unittest import mock

from mgr_stub.host.inline_jobs import InlineJobs
from mgr_stub.mgr.handlers import Handler
from mgr_stub.mgr.mgr import Mgr
from mgr_stub.mgr.osd_map_api import CRUSHMap, OSDMap

from equilibrium_mgr.gateway import osd_map_reader
from equilibrium_mgr.gateway.gateway import Gateway
from equilibrium_mgr.module import Module
from equilibrium_mgr.observation.observer import ClusterObserver
from equilibrium_mgr.plan_service.plan_service import PlanService

SIMULATOR, MODULE, PLANNER, BOUNDS = "simulator", "module", "planner", "bounds"

#: The calls by which the processor passes from one to the other, until they return.
_DOORS: Tuple[Tuple[Any, str, str], ...] = (
    (Module, "step", MODULE), (InlineJobs, "run_pending", MODULE), (Handler, "call", MODULE),
    (PlanService, "_make", PLANNER), (ClusterObserver, "_bounds", BOUNDS),
    (Mgr, "get", SIMULATOR), (Mgr, "get_osdmap", SIMULATOR), (Mgr, "send_command", SIMULATOR),
    (Mgr, "_wait", SIMULATOR), (Mgr, "set_store", SIMULATOR), (OSDMap, "dump", SIMULATOR),
    (CRUSHMap, "dump", SIMULATOR),
    # thousands of calls of the mgr API with little between them: to time each would cost more
    (osd_map_reader, "read_up_sets", SIMULATOR))


class Shares:
    """Processor seconds of each of them; what nobody else takes is the simulator's."""

    def __init__(self) -> None:
        self.looks = 0   # at the whole cluster, by all mgrs
        self.seconds: Dict[str, float] = dict.fromkeys((SIMULATOR, MODULE, PLANNER, BOUNDS), 0.0)
        self._owner = SIMULATOR
        self._since = time.process_time()

    def turn_to(self, owner: str) -> str:
        """From now on it is another's time; returns whose it was."""
        now = time.process_time()
        self.seconds[self._owner] += now - self._since
        before, self._owner, self._since = self._owner, owner, now
        return before

    def charged(self, function: Callable[..., Any], owner: str) -> Callable[..., Any]:
        """The function, its time charged to `owner`."""
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            before = self.turn_to(owner)
            try:
                return function(*args, **kwargs)
            finally:
                self.turn_to(before)
        return call


    def counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its calls counted as looks."""
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self.looks += 1
            return function(*args, **kwargs)
        return call


@contextmanager
def shared() -> Iterator[Shares]:
    """Counts while it lasts."""
    shares = Shares()
    with ExitStack() as doors:
        for holder, name, owner in _DOORS:
            doors.enter_context(mock.patch.object(
                holder, name, shares.charged(getattr(holder, name), owner)))
        doors.enter_context(mock.patch.object(
            Gateway, "snapshot", shares.counted(Gateway.snapshot)))
        shares.turn_to(SIMULATOR)
        yield shares
        shares.turn_to(SIMULATOR)
