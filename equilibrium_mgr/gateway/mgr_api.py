"""What of Ceph's Python API for mgr modules the gateway calls, as types.

Ceph's own classes (MgrModule, OSDMap, CRUSHMap, CommandResult in mgr_module.py) have no
annotations for most of it. Nothing here runs.
"""
from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Protocol, Sequence


class CrushMapApi(Protocol):
    """mgr_module.CRUSHMap."""

    def dump(self) -> Mapping[str, Any]:
        """As `ceph osd crush dump` shows it."""


class OsdMapIncrementalApi(Protocol):
    """mgr_module.OSDMapIncremental: changes for a copy of the map; nothing is sent."""

    def set_osd_reweights(self, weightmap: Dict[int, float], /) -> None:
        """OSD id → reweight, 0 for out."""


class OsdMapApi(Protocol):
    """mgr_module.OSDMap: the osdmap of one epoch. Raises SystemError for a pool that is gone."""

    def get_epoch(self) -> int:
        """The epoch of this map."""

    def get_crush_version(self) -> int:
        """A number that grows with every change of the CRUSH map."""

    def get_crush(self) -> CrushMapApi:
        """The CRUSH map inside."""

    def dump(self) -> Dict[str, Any]:
        """As `ceph osd dump` shows it; from Ceph 18 on with the interpreter's lock held."""

    def map_pool_pgs_up(self, poolid: int, /) -> Mapping[str, Sequence[int]]:
        """pgid → up set of all PGs of a pool."""

    def pg_to_up_acting_osds(self, pool_id: int, ps: int, /) -> Mapping[str, Sequence[int]]:
        """`up` and `acting` of one PG."""

    def new_incremental(self) -> OsdMapIncrementalApi:
        """Changes to this map, none at first."""

    def apply_incremental(self, inc: Any, /) -> OsdMapApi:
        """A copy of this map with the changes. Upmap items stay as they are: in the copy no
        monitor cleans them."""


class EventApi(Protocol):
    """threading.Event, of which only this is used."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """True as soon as the event is set, False where the time is over first."""


class MonReply(Protocol):
    """mgr_module.CommandResult: a command's result, complete once `ev` is set."""

    ev: EventApi
    r: int       # 0 or a negative errno
    outb: str    # the output
    outs: str    # a sentence for people


class MgrApi(Protocol):
    """The part of mgr_module.MgrModule that the gateway calls."""

    @property
    def version(self) -> str:
        """As `ceph version` tells it, of this mgr."""

    ClusterLogPrio: Any   # an enumeration with INFO among its values

    def cluster_log(self, channel: str, priority: Any, message: str, /) -> None:
        """Adds a line to the cluster log."""

    def get(self, data_name: str, /) -> Any:
        """One of the mgr's structures; None while the mgr does not have it."""

    def get_osdmap(self) -> OsdMapApi:
        """The newest osdmap that the mgr has."""

    def get_mgr_id(self) -> str:
        """The name of this mgr daemon, as in `mgr.x`."""

    def get_mgr_ip(self) -> str:
        """The address of this mgr's host, or its name."""

    def set_uri(self, uri: str, /) -> None:
        """Announces where this module's service is (`ceph mgr services`); "" for nowhere."""

    def have_mon_connection(self) -> int:
        """1 or 0, as the mgr's C++ side returns it."""

    def get_ceph_option(self, key: str, /) -> Any:
        """An option of Ceph itself. Raises KeyError for an unknown one."""

    def set_module_option(self, key: str, val: Any, /) -> None:
        """Sets an option of this module; waits for the monitors."""

    def get_module_option_ex(self, module: str, key: str, /) -> Any:
        """An option of another module; None while it is at its default."""

    def set_module_option_ex(self, module: str, key: str, val: Any, /) -> None:
        """Sets an option of another module."""

    def remote(self, module_name: str, method_name: str, /, *args: Any) -> Any:
        """Calls a method of another module.

        Raises ImportError where that does not run, NameError where it has no such method and
        RuntimeError where the method raises.
        """

    def send_command(self, result: Any, svc_type: str, svc_id: str, command: str, tag: str,
                     /) -> None:
        """Sends a command (JSON), whose reply comes in `result` later."""

    def set_health_checks(self, checks: Mapping[str, Any], /) -> None:
        """Replaces the health checks of this module."""
