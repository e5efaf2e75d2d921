"""Flags, stretch mode, scrubs and rates."""

from __future__ import annotations

import errno
from typing import Any, Dict, Sequence

from ..cluster import pg_reports
from ..errors import StubError, invalid
from ..monitor.monitor import FLAGS, flags_of
from ..osdmap.osd_map import MapChange
from ..simulation.simulation import Simulation
from . import osd_events


def set_flag(simulation: Simulation, name: str, enabled: bool = True) -> None:
    """Acts like `ceph osd set` and `unset`."""
    if name not in FLAGS:
        raise invalid(f"'{name}' is not a flag; there are {', '.join(FLAGS)}")
    names = flags_of(name)
    flags = simulation.cluster.map.flags - names
    if enabled:
        flags |= names
    simulation.apply_change(MapChange(flags=flags))


#: `stretch_mode` of the osdmap by state of a cluster of two sites.
_STRETCH: Dict[str, Dict[str, Any]] = {
    "off": {"stretch_mode_enabled": False, "stretch_bucket_count": 0},
    "healthy": {}, "degraded": {"degraded_stretch_mode": 1},
    "recovering": {"degraded_stretch_mode": 1, "recovering_stretch_mode": 1}}


def set_stretch_mode(simulation: Simulation, name: str) -> None:
    """Sets the stretch mode of a cluster of two sites, independent of the state of its OSDs.

    Real monitors change it seconds after the OSDs change, and end it last.
    """
    if name not in _STRETCH:
        raise invalid(f"stretch mode is one of {', '.join(_STRETCH)}")
    simulation.apply_change(MapChange(rest={"stretch_mode": {
        "stretch_mode_enabled": True, "stretch_bucket_count": 2, "degraded_stretch_mode": 0,
        "recovering_stretch_mode": 0, "stretch_mode_bucket": 0, **_STRETCH[name]}}))


def scrub(simulation: Simulation, pgid: str, seconds: float) -> None:
    """Makes the PG's state show a scrub for some seconds."""
    cluster = simulation.cluster
    pg = cluster.pgs.get(pgid)
    if pg is None:
        raise StubError(errno.ENOENT, f"pg {pgid} does not exist")
    pg.scrub_until = cluster.clock.now + seconds
    pg_reports.refresh(cluster, pg)

    def end() -> None:
        if pg.pgid in cluster.pgs:
            pg_reports.refresh(cluster, pg)
    simulation.schedule.at(pg.scrub_until, end)


def set_inconsistent(simulation: Simulation, pgid: str, enabled: bool) -> None:
    """Makes a PG inconsistent, as after a deep scrub, or (False) repairs it."""
    cluster = simulation.cluster
    pg = cluster.pgs.get(pgid)
    if pg is None:
        raise StubError(errno.ENOENT, f"pg {pgid} does not exist")
    pg.inconsistent = enabled
    pg_reports.refresh(cluster, pg)


def set_log_recovery(simulation: Simulation, enabled: bool) -> None:
    """Makes PGs with a whole log recover by it, as Ceph does, or (False) backfill."""
    simulation.cluster.log_recovery = enabled


def set_backfill_rate(simulation: Simulation, bytes_per_second: float,
                      osds: Sequence[int] = ()) -> None:
    """Sets the bytes per second of some OSDs for backfill, without any of every OSD; 0 stops it."""
    if bytes_per_second < 0:
        raise invalid("a rate is 0 or more bytes per second")
    osd_events.check_exist(simulation, osds)
    backfill = simulation.backfill
    rate = float(bytes_per_second)
    if osds:
        backfill.own_rates.update(dict.fromkeys(osds, rate))
    else:
        backfill.bytes_per_second.update(dict.fromkeys(backfill.bytes_per_second, rate))
        backfill.own_rates.clear()
    backfill.replan()


def set_peering_time(simulation: Simulation, seconds: float) -> None:
    """Sets the seconds that PGs peer after a change of their up set."""
    if seconds <= 0:
        raise invalid("PGs peer for more than 0 seconds")
    simulation.backfill.peering_seconds = seconds
