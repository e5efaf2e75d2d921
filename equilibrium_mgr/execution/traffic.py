"""Shards in flight at each OSD, and their bytes still to be copied.

Until a PG has peered its acting set still equals its up set, so the snapshot does not show the
moves that were sent a moment ago. The pending moves do: `unseen` yields those that it lacks.
"""
from __future__ import annotations

from typing import Container, Dict, Iterator, Mapping, NamedTuple, Sequence, Tuple

from ..snapshot.model import SizedShards, Snapshot
from .pending_moves import PendingMove


class TrafficLoad(NamedTuple):
    """One OSD's shards in flight, and their bytes still to be copied."""

    shards_in: int = 0
    shards_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    leaving_bytes: int = 0   # whole shards: free when everything has arrived
    arrived_bytes: int = 0   # arrived a moment ago: the OSD's statistics may not count them yet


_IDLE = TrafficLoad()


class OsdTraffic:
    """OSD → load; grows while a batch is being chosen."""

    def __init__(self) -> None:
        self._loads: Dict[int, TrafficLoad] = {}

    def of(self, osd: int) -> TrafficLoad:
        """Returns the load of one OSD."""
        return self._loads.get(osd, _IDLE)

    def add(self, gains: SizedShards, losses: SizedShards, uncopied_ratio: float = 1.0) -> None:
        """Adds one PG's shards in flight; this ratio of their bytes is still to be copied."""
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

    def add_arrived(self, osd: int, size: int) -> None:
        """Adds a shard that has arrived a moment ago."""
        load = self.of(osd)
        self._loads[osd] = load._replace(arrived_bytes=load.arrived_bytes + size)


def unseen(snapshot: Snapshot, pending: Mapping[str, PendingMove]) -> Iterator[PendingMove]:
    """Yields the pending moves of PGs that do not move in the snapshot."""
    for pgid, entry in pending.items():
        pg = snapshot.pgs.get(pgid)
        if pg is not None and not pg.is_moving:
            yield entry


def osd_traffic(snapshot: Snapshot, pending: Mapping[str, PendingMove],
                arrivals: Sequence[Tuple[float, SizedShards]] = (),
                mispredicted: Container[int] = ()) -> OsdTraffic:
    """Returns the load of each OSD: shards in flight by the snapshot, pending moves that it does
    not show, and arrivals.

    A shard of a pool in `mispredicted` counts whole until it has arrived. Its OSD takes more bytes
    than Ceph copies, and nobody knows when.
    """
    found = OsdTraffic()
    for pg in snapshot.in_flight().values():
        uncopied = 1.0 if pg.pool in mispredicted else pg.uncopied_ratio
        found.add(*snapshot.sized_transfers(pg), uncopied)
    for entry in unseen(snapshot, pending):
        found.add(entry.gains, entry.losses)
    for _, gains in arrivals:
        for osd, size in gains:
            found.add_arrived(osd, size)
    return found


def predicted_utilization(snapshot: Snapshot, load: TrafficLoad, osd_id: int) -> float:
    """Returns an OSD's utilization once everything in flight has arrived: a ratio, 0 if unknown.
    Counts our unseen moves, which `Osd.target_utilization` does not."""
    osd = snapshot.osds.get(osd_id)
    if osd is None or not osd.has_statistics:
        return 0.0
    return (osd.used_bytes + load.bytes_in - load.leaving_bytes) / osd.size_bytes
