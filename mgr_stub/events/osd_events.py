"""Operators' commands for OSDs and hosts, and their failures.

Every function makes its epoch at once. StubError for OSDs that do not exist and similar errors.
"""

from __future__ import annotations

import errno
from typing import Any, Callable, Dict, Iterable, List, Optional

from ..cluster.shard_copies import lose_osd_data
from ..cluster.usage import OsdUsage, empty_record
from ..crush.hashes import WEIGHT_ONE
from ..crush.edit import with_host, with_osd_weight
from ..errors import StubError, invalid
from ..osdmap.osd_map import (
    MapChange, has_flag, marked_down, marked_in, marked_out, marked_up, reweighted)
from ..simulation.simulation import Simulation

TIB = 1 << 40


def mark_out(simulation: Simulation, osds: Iterable[int]) -> None:
    """Acts like `ceph osd out`: CRUSH maps their PGs to others; they serve until the data has
    moved.
    """
    _change(simulation, osds, marked_out)


def mark_in(simulation: Simulation, osds: Iterable[int]) -> None:
    """Acts like `ceph osd in`: with the reweight that they had before."""
    _change(simulation, osds, marked_in)


def mark_down(simulation: Simulation, osds: Iterable[int]) -> None:
    """Stops the OSDs; after mon_osd_down_out_interval the monitor marks them out."""
    _change(simulation, osds, marked_down)


def mark_up(simulation: Simulation, osds: Iterable[int]) -> None:
    """Starts the OSDs with the data on their devices.

    Those that the monitor has marked out are marked in; those marked out by operators are not.
    """
    cluster = simulation.cluster
    may_come_in = bool(simulation.config.core("mon", "mon_osd_auto_mark_auto_out_in"))

    def started(entry: Dict[str, Any]) -> Dict[str, Any]:
        stays_out = has_flag(cluster.map, cluster.crush, entry["osd"], "noin")
        return marked_up(entry, may_come_in and not stays_out, cluster.map.epoch + 1)
    _change(simulation, osds, started)


def reweight(simulation: Simulation, osd: int, weight: float) -> None:
    """Acts like `ceph osd reweight`: 0 (out) to 1."""
    if not 0.0 <= weight <= 1.0:
        raise invalid(f"a reweight is between 0 and 1, {weight} is not")
    rounded = int(weight * WEIGHT_ONE) / WEIGHT_ONE
    _change(simulation, [osd], lambda entry: reweighted(entry, rounded))


def primary_affinity(simulation: Simulation, osd: int, weight: float) -> None:
    """Acts like `ceph osd primary-affinity`: 0 (never primary if another OSD can be) to 1."""
    if not 0.0 <= weight <= 1.0:
        raise invalid(f"a primary affinity is between 0 and 1, {weight} is not")
    rounded = int(weight * WEIGHT_ONE) / WEIGHT_ONE
    _change(simulation, [osd], lambda entry: {**entry, "primary_affinity": rounded})


def crush_reweight(simulation: Simulation, osd: int, weight: float) -> None:
    """Acts like `ceph osd crush reweight`; 1.0 is a TiB by custom."""
    check_exist(simulation, [osd])
    if weight < 0.0:
        raise invalid(f"a CRUSH weight is 0 or more, {weight} is not")
    try:
        crush = with_osd_weight(simulation.cluster.crush.as_dump(), osd, weight)
    except ValueError as error:
        raise StubError(errno.ENOENT, str(error)) from None
    simulation.apply_change(MapChange(crush=crush))


def lose(simulation: Simulation, osd: int) -> None:
    """Destroys a device: the OSD is down and out, its data is lost, and the disk that takes its
    place has another uuid."""
    uuid = f"{simulation.cluster.map.epoch:08x}-0000-4000-8000-{osd:012x}"
    _change(simulation, [osd], lambda entry: {**marked_out(marked_down(entry)), "uuid": uuid})
    cluster = simulation.cluster
    for pg in list(cluster.pgs.values()):
        has_data = osd in pg.held or any(place[1] == osd for place in pg.strays)
        if pg.movable and has_data:
            lose_osd_data(cluster, pg, osd)
            simulation.backfill.retarget(pg)
    cluster.usage[osd] = OsdUsage(empty_record(osd, cluster.usage[osd].total))
    simulation.commit()


def set_full_ratios(simulation: Simulation, nearfull: float, backfillfull: float,
                    full: float) -> None:
    """Sets all three ratios, like `ceph osd set-nearfull-ratio`, `-backfillfull-ratio` and
    `-full-ratio`.
    """
    if not 0.0 < nearfull <= backfillfull <= full <= 1.0:
        raise invalid("the ratios must be above 0, in the order nearfull, backfillfull, full, "
                      "and at most 1")
    simulation.apply_change(MapChange(rest={"nearfull_ratio": nearfull, "full_ratio": full,
                                     "backfillfull_ratio": backfillfull}))


# -- hosts ----------------------------------------------------------------------------------------

def add_host(simulation: Simulation, name: str, count: int, size: int, device_class: str = "hdd",
             under: Optional[str] = None) -> List[int]:
    """Adds empty OSDs of `size` bytes, up and in, to a new or an existing host; their ids.

    A new host goes below the bucket `under`, by default below the parent of the first host.
    """
    cluster = simulation.cluster
    if count < 1 or size <= 0:
        raise invalid("a host needs at least one OSD of some size")
    first = max(cluster.map.osds, default=-1) + 1
    osds = list(range(first, first + count))
    if under is None:
        under = _default_parent(simulation)
    try:
        crush = with_host(cluster.crush.as_dump(), name,
                          {osd: (device_class, size / TIB) for osd in osds}, under)
    except ValueError as error:
        raise invalid(str(error)) from None
    pattern: Dict[str, Any] = next(iter(cluster.map.osds.values()), {})
    entries: Dict[int, Dict[str, Any]] = {}
    for osd in osds:
        entries[osd] = {
            **pattern,
            "osd": osd,
            "uuid": f"00000000-0000-4000-8000-{osd:012x}",
            "up": 1,
            "in": 1,
            "weight": 1.0,
            "old_weight": 0.0,
            "up_from": cluster.map.epoch + 1,
            "state": ["exists", "up"]}
        cluster.usage[osd] = OsdUsage(empty_record(osd, size))
    try:
        simulation.apply_change(MapChange(crush=crush, osds=entries))
    except StubError:
        for osd in osds:
            del cluster.usage[osd]
        raise
    return osds


def _default_parent(simulation: Simulation) -> Optional[str]:
    """Returns the parent of the first host, else the first root."""
    buckets = [bucket for bucket in simulation.cluster.crush.buckets.values()
               if "~" not in bucket["name"]]
    hosts = [bucket["id"] for bucket in buckets if bucket["type_name"] == "host"]
    listed = {item["id"] for bucket in buckets for item in bucket["items"]}
    above = [bucket["name"] for bucket in buckets
             if any(item["id"] in hosts for item in bucket["items"])]
    roots = [bucket["name"] for bucket in buckets if bucket["id"] not in listed]
    return next(iter(above + roots), None)


def osds_of(simulation: Simulation, name: str) -> List[int]:
    """Returns the OSDs of a host."""
    crush = simulation.cluster.crush
    for bucket in crush.buckets.values():
        if bucket["name"] == name and bucket["type_name"] == "host":
            return [osd for osd in sorted(crush.weights_below(bucket["id"]))
                    if simulation.cluster.map.exists(osd)]
    raise StubError(errno.ENOENT, f"there is no host '{name}'")


# -- both -----------------------------------------------------------------------------------------

def check_exist(simulation: Simulation, osds: Iterable[int]) -> None:
    """Raises StubError for an OSD that does not exist."""
    for osd in osds:
        if not simulation.cluster.map.exists(osd):
            raise StubError(errno.ENOENT, f"osd.{osd} does not exist")


def _change(simulation: Simulation, osds: Iterable[int],
            change: Callable[[Dict[str, Any]], Dict[str, Any]]) -> None:
    wanted = list(osds)
    check_exist(simulation, wanted)
    present = simulation.cluster.map.osds
    entries = {osd: change(present[osd]) for osd in wanted}
    simulation.apply_change(MapChange(osds={osd: entry for osd, entry in entries.items()
                                     if entry != present[osd]}))
