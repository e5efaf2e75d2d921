"""Data in flight from and to every OSD, whoever moves it.

Until a PG has peered its acting set still equals its up set, so the snapshot alone shows nothing of
what was sent a moment ago. The pending moves do; `unseen` is the only place that puts both
together.
"""
from __future__ import annotations

from typing import Dict, Iterator, Mapping, NamedTuple, Sequence

from ..snapshot.model import SizedShards, Snapshot
from .pending_moves import Arrival, PendingMove


class TrafficLoad(NamedTuple):
    """One OSD's shards in flight, and their bytes that are still to be copied."""

    shards_in: int = 0
    shards_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    leaving_bytes: int = 0   # whole shards: what becomes free when everything has arrived
    arrived_bytes: int = 0    # just arrived: the OSD's statistics may not count them yet


_IDLE = TrafficLoad()


class OsdTraffic:
    """OSD → load; grows while a batch is being chosen."""

    def __init__(self) -> None:
        self._loads: Dict[int, TrafficLoad] = {}

    def of(self, osd: int) -> TrafficLoad:
        """The load of one OSD."""
        return self._loads.get(osd, _IDLE)

    def add(self, gains: SizedShards, losses: SizedShards, uncopied_ratio: float = 1.0) -> None:
        """Adds one PG's shards in flight, of whose bytes this ratio is still to be copied."""
        loads = self._loads
        for osd, size in gains:
            shards_in, shards_out, bytes_in, *rest = loads.get(osd, _IDLE)
            loads[osd] = TrafficLoad(shards_in + 1, shards_out,
                                     bytes_in + int(size * uncopied_ratio), *rest)
        for osd, size in losses:
            shards_in, shards_out, bytes_in, bytes_out, leaving, arrived = loads.get(osd, _IDLE)
            loads[osd] = TrafficLoad(shards_in, shards_out + 1, bytes_in,
                                     bytes_out + int(size * uncopied_ratio), leaving + size,
                                     arrived)

    def add_arrival(self, targets: SizedShards) -> None:
        """Adds one PG that has arrived a moment ago."""
        for osd, shard_bytes in targets:
            load = self.of(osd)
            self._loads[osd] = load._replace(arrived_bytes=load.arrived_bytes + shard_bytes)


def unseen(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> Iterator[PendingMove]:
    """Pending moves of PGs that the snapshot does not show as moving."""
    for pgid, entry in pending.items():
        pg = snapshot.pgs.get(pgid)
        if pg is not None and not pg.is_moving:
            yield entry


def osd_traffic(snapshot: Snapshot, pending: Mapping[str, PendingMove],
                arrivals: Sequence[Arrival] = ()) -> OsdTraffic:
    """OSD → what is in flight to and from it, by the snapshot and by pending moves that it does not
    show, and what has just arrived."""
    found = OsdTraffic()
    for pg in snapshot.in_flight().values():
        found.add(*snapshot.sized_transfers(pg), pg.uncopied_ratio)
    for entry in unseen(snapshot, pending):
        found.add(entry.gains, entry.losses)
    for arrival in arrivals:
        found.add_arrival(arrival.gains)
    return found


def predicted_utilization(snapshot: Snapshot, load: TrafficLoad, osd_id: int) -> float:
    """Utilization of an OSD once everything in flight, our unseen moves included, has arrived: a
    ratio; 0 where unknown. `Osd.target_utilization` is without unseen moves."""
    osd = snapshot.osds.get(osd_id)
    if osd is None or not osd.has_statistics:
        return 0.0
    return (osd.used_bytes + load.bytes_in - load.leaving_bytes) / osd.size_bytes
