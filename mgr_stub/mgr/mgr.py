"""The simulated mgr daemon: the object that a module gets as `this_ptr`."""

from __future__ import annotations

import json
import pickle
import threading
from functools import partial
from typing import Any, Dict, List, Optional, Tuple

from ..cluster.map_update import with_reweights
from ..errors import StubError
from ..frozen import frozen
from ..monitor.mon_store import StoreCache
from ..osdmap.crush_map import CrushMap
from ..osdmap.osd_map import OsdMap
from ..simulation.reports import REPORTED
from ..simulation.simulation import Simulation
from .api import CommandResult
from .builtin_balancer import BuiltinBalancer
from .mon_queries import answer_to, fullness, health, ok_to_stop, osd_tree
from .install import SIMULATED_RELEASES
from .mgr_process import MgrProcess
from .osd_map_api import OSDMap
from .progress_module import ProgressModule


def _osd_of(service: str, name: str) -> int:
    """Returns the id of the OSD that is this daemon; -1 if it is another one."""
    if service == "osd" and name.isdigit():
        return int(name)
    return -1


class Mgr:
    """One mgr daemon from becoming active to the next failover.

    Thread-safe: every call takes one lock.
    """

    mgr_id = "x"

    def __init__(self, simulation: Simulation, module_name: str) -> None:
        self.simulation = simulation
        self.cluster = simulation.cluster
        self.config = simulation.config
        self.store = StoreCache(simulation.store, module_name)
        self.process = MgrProcess()
        self.release = simulation.cluster.release
        number, self.release_name = SIMULATED_RELEASES[self.release]
        self.version = (f"ceph version {number} ({self.cluster.extras.get('origin', 'simulated')})"
                        f" {self.release_name} (stable)")
        self.balancer = BuiltinBalancer(simulation.config, self.release, self.module_option)
        #: Its maps at the moment the connection to the monitors was lost; None while connected.
        self._last_maps: Optional[Tuple[OsdMap, CrushMap]] = None
        self.config_changed = False
        #: True if readings of `get` are read-only, as from Ceph 21 on.
        self.shares_readings = False
        #: Values of module options that `ceph config rm` has removed since this mgr began: a
        #: running mgr is not notified of removals and keeps the values.
        self._removed: Dict[Tuple[str, str], str] = {}
        self.config.on_removal = self._note_removal
        self.config.on_setting = self._note_setting
        self.module: Optional[Any] = None
        self.health_checks: Dict[str, Dict[str, Any]] = {}
        #: Module → address that it has announced; "" for none.
        self.services: Dict[str, str] = {}
        self.cluster_log: List[Tuple[str, int, str]] = []
        self.progress_module = ProgressModule(lambda: simulation.clock.now)
        #: Number of expensive calls, by name.
        self.calls: Dict[str, int] = {}
        #: The last read-only tree, and the OSDs and the CRUSH map that it shows.
        self._tree: Optional[Tuple[Dict[int, Dict[str, Any]], CrushMap, Dict[str, Any]]] = None
        self.lock = threading.RLock()

    def count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1

    # -- the connection to the monitors -------------------------------------------------------

    @property
    def mon_connected(self) -> bool:
        return self.simulation.monitor.faults.connected

    @mon_connected.setter
    def mon_connected(self, connected: bool) -> None:
        self.simulation.monitor.faults.connected = connected
        self.store.set_connected(connected)
        self._last_maps = None
        if not connected:
            self._last_maps = self.cluster.map, self.cluster.crush

    def maps(self) -> Tuple[OsdMap, CrushMap]:
        """Returns the mgr's osdmap and CRUSH map; they do not change without a connection."""
        if self._last_maps is not None:
            return self._last_maps
        return self.cluster.map, self.cluster.crush

    # -- reading ------------------------------------------------------------------------------

    def get_osdmap(self) -> OSDMap:
        with self.lock, self.process.call("get_osdmap"):
            osdmap, crush = self.maps()
            return OSDMap(osdmap, crush, self.release, self.count,
                          partial(with_reweights, self.cluster, osdmap, crush))

    def get(self, name: str) -> Any:
        """Returns a named structure in the shape of the release; None for an unknown name."""
        with self.lock, self.process.call("get"):
            self.count(name)
            return self._get(name)

    def _get(self, name: str) -> Any:
        if name in REPORTED:
            return self.simulation.reports.get(name)
        osdmap, crush = self.maps()
        if name == "osd_map":
            return osdmap.dump(self.release)
        if name == "osd_map_crush":
            return crush.dump(self.release)
        if name == "osd_map_tree":
            return self._osd_tree(osdmap, crush)
        if name == "health":
            return health(self.all_health_checks())
        return None

    def _osd_tree(self, osdmap: OsdMap, crush: CrushMap) -> Dict[str, Any]:
        """Returns the tree of OSDs; a read-only one is made once for a map."""
        if not self.shares_readings:
            return osd_tree(osdmap, crush)
        if self._tree is None or self._tree[0] is not osdmap.osds or self._tree[1] is not crush:
            self._tree = osdmap.osds, crush, frozen(osd_tree(osdmap, crush))
        return self._tree[2]

    def latest_counter(self, service: str, name: str, path: str) -> Dict[str, Tuple[Any, ...]]:
        """Returns the newest point of a counter of a daemon: of the ops of clients alone, none of
        any other counter, nor of an OSD that has not reported.
        """
        with self.lock:
            osd = _osd_of(service, name)
            self.count("perf counter")
            if path != "osd.op_latency" or not self.cluster.map.exists(osd):
                return {path: ()}
            ops = self.simulation.client_load.ops.get(osd, (0, 0))
            return {path: (self.simulation.clock.now, *ops)}

    def metadata(self, service: str, name: str) -> Optional[Dict[str, str]]:
        """Returns the metadata of a daemon: only the kind of an OSD's device is known."""
        with self.lock:
            osd = _osd_of(service, name)
            if osd not in self.cluster.map.osds:
                return None
            is_rotational = self.cluster.crush.classes.get(osd) not in ("ssd", "nvme")
            return {"id": name, "rotational": str(int(is_rotational))}

    # -- options ------------------------------------------------------------------------------

    def _note_removal(self, module: str, name: str, text: str) -> None:
        self._removed[module, name] = text

    def _note_setting(self, module: str, name: str) -> None:
        self._removed.pop((module, name), None)

    def module_option(self, module: str, name: str) -> Any:
        """Returns the value of an option in the running mgr, typed; None if not set."""
        removed = self._removed.get((module, name))
        if removed is not None:
            return self.config.typed(module, name, removed)
        return self.config.module_option(module, name)

    # -- writing ------------------------------------------------------------------------------

    def set_module_option(self, module: str, name: str, text: Optional[str]) -> None:
        """Sets an option for a module.

        An invalid value is ignored by 16 and raises ValueError from 18 on.
        """
        with self.lock:
            try:
                if text is None:
                    self.config.remove_module_option(module, name)
                    self._removed.pop((module, name), None)
                else:
                    self.config.set_module_option(module, name, text)
            except StubError as error:
                if self.release >= 18:
                    raise ValueError(error.message) from None
                return
            self.config_changed = True

    def notify_config(self) -> None:
        """Notifies the module after a possible change of an option.

        Separate from the call that changed it, since in Ceph another thread does it.
        """
        if self.config_changed and self.module is not None:
            self.config_changed = False
            self.module.config_notify()

    def send_command(self, result: CommandResult, svc_type: str, svc_id: str,
                     command: str) -> None:
        """Queues a command; the first wait for any result makes the epoch for all of them."""
        if self._answer_query(result, svc_type, json.loads(command)):
            return
        with self.lock, self.process.call("send_command"):
            if svc_type != "mon":
                result.complete(-22, "", f"the simulation has no {svc_type} to command")
                return
            result.ev.before_wait = partial(self._wait, result)
            self.simulation.monitor.submit(command, result.complete)

    def _answer_query(self, result: CommandResult, svc_type: str,
                      command: Dict[str, Any]) -> bool:
        """Answers a query, which needs no epoch, and `osd ok-to-stop` or `config show`, which
        monitors hand on to the mgr; False for other commands. Without a connection no answer comes.
        """
        prefix = command.get("prefix")
        with self.lock:
            if prefix == "config get" and "key" not in command:
                self.count("config get")
                answer = 0, json.dumps(self.config.of_daemon(str(command["who"]))), ""
            elif prefix == "config show":   # what the daemon runs with; the mgr knows it
                self.count(prefix)
                answer = 0, f"{self.config.core(command['who'], command['key'])}\n", ""
            elif prefix == "config dump":   # no daemon has options of its own
                answer = 0, "[]", ""
            elif prefix == "osd ok-to-stop":
                answer = ok_to_stop(self.cluster, set(map(int, command["ids"])))
            else:
                text = None
                if svc_type == "mon":
                    text = answer_to(command, self.cluster.map, self.release)
                if text is None:
                    return False
                answer = 0, text, ""
                with self.process.call("get"):
                    self.count("mon_queries")
            if self.mon_connected:
                result.complete(*answer)
            elif prefix == "config get":
                result.ev.before_wait = _wait_for_nothing   # nor does real time pass
            else:
                result.ev.before_wait = partial(self._wait, result)
        return True

    def _wait(self, result: CommandResult, timeout: Optional[float]) -> None:
        """Makes the epoch of a command, or advances time until it is due."""
        with self.lock:
            self.simulation.wait_until(result.ev.is_set, timeout)
            if timeout is None and not result.ev.is_set():
                result.complete(-110, "", "the simulation waited for an hour in vain")

    def set_store(self, key: str, value: Optional[str]) -> None:
        """Stores a module's value with the monitor."""
        with self.lock, self.process.call("set_store"):
            self.store.set(key, value)

    def commit(self) -> None:
        with self.lock:
            self.simulation.commit()

    def all_health_checks(self) -> Dict[str, Dict[str, Any]]:
        """Returns the health checks of the module and of too full OSDs."""
        return {**fullness(self.cluster.map, self.cluster.usage), **self.health_checks}

    def set_health_checks(self, checks: Dict[str, Dict[str, Any]]) -> None:
        """Replaces all health checks of the module; TypeError for a shape that Ceph rejects."""
        for code, check in checks.items():
            if not isinstance(check.get("detail", []), list):
                raise TypeError(f"{code}: detail is not a list")
            if check.get("severity", "warning") not in ("warning", "error"):
                raise TypeError(f"{code}: severity is neither warning nor error")
        self.health_checks = {code: dict(check) for code, check in checks.items()}

    def remote(self, module: str, method: str, args: Tuple[Any, ...],
               kwargs: Dict[str, Any]) -> Any:
        """Calls another module; from 20 on the arguments and the result must pickle."""
        if self.release >= 20:
            args, kwargs = pickle.loads(pickle.dumps((args, kwargs)))
        if module not in ("balancer", "progress") or module in self.simulation.disabled_modules:
            raise ImportError(f"Module not found: {module}")
        if module == "progress":
            with self.lock:
                return self.progress_module.remote(method, args, kwargs)
        try:
            with self.lock:
                return self.balancer.remote(method, args)
        except StubError as error:
            raise RuntimeError(error.message) from None


def _wait_for_nothing(_timeout: Optional[float]) -> None:
    """Returns at once."""
