"""What is on its way from and to every OSD, whoever moves it, and what we sent unseen by Ceph.

Before a PG has peered its acting set still equals its up set, so the snapshot alone shows nothing
of what was sent a moment ago; the ledger knows.
"""
from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Sequence

from ..snapshot.model import Snapshot
from .pending_moves import Arrival, PendingMove


class TrafficLoad(NamedTuple):
    """One OSD's shards under way, and their bytes that are still to be copied."""

    shards_in: int = 0
    shards_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    leaving_bytes: int = 0   # whole shards: what becomes free when all has arrived
    landed_bytes: int = 0    # just arrived: the OSD's statistics may not count them yet


_IDLE = TrafficLoad()


class OsdTraffic:
    """OSD → load; grows while a batch is being chosen."""

    def __init__(self) -> None:
        self._loads: Dict[int, TrafficLoad] = {}

    def of(self, osd: int) -> TrafficLoad:
        return self._loads.get(osd, _IDLE)

    def add(self, gains: Sequence[int], losses: Sequence[int], bytes_to_come: int,
            shard_bytes: int) -> None:
        """One PG's shards on their way; bytes are those of one shard."""
        for osd in gains:
            load = self.of(osd)
            self._loads[osd] = load._replace(shards_in=load.shards_in + 1,
                                             bytes_in=load.bytes_in + bytes_to_come)
        for osd in losses:
            load = self.of(osd)
            self._loads[osd] = load._replace(shards_out=load.shards_out + 1,
                                             bytes_out=load.bytes_out + bytes_to_come,
                                             leaving_bytes=load.leaving_bytes + shard_bytes)

    def add_arrival(self, targets: Sequence[int], shard_bytes: int) -> None:
        """One PG that has arrived a moment ago."""
        for osd in targets:
            load = self.of(osd)
            self._loads[osd] = load._replace(landed_bytes=load.landed_bytes + shard_bytes)


def osd_traffic(snapshot: Snapshot, pending: Mapping[str, PendingMove],
            arrivals: Sequence[Arrival] = ()) -> OsdTraffic:
    """What is on its way now: what the snapshot shows, and the ledger's entries that it hides."""
    found = OsdTraffic()
    for pg in snapshot.in_flight().values():
        gains, losses = snapshot.transfers(pg)
        found.add(gains, losses, int(pg.shard_bytes * pg.uncopied_ratio), pg.shard_bytes)
    for pgid, entry in pending.items():
        hidden = snapshot.pgs.get(pgid)
        if hidden is not None and not hidden.is_moving:
            shard_bytes = entry.bytes // max(1, entry.shards)
            found.add(entry.targets, entry.sources, shard_bytes, shard_bytes)
    for arrival in arrivals:
        found.add_arrival(arrival.targets, arrival.shard_bytes)
    return found


def predicted_utilization(snapshot: Snapshot, load: TrafficLoad, osd_id: int) -> float:
    """How full an OSD is once all that is on its way has arrived, a ratio; 0 where unknown."""
    osd = snapshot.osds.get(osd_id)
    if osd is None or not osd.has_statistics:
        return 0.0
    return (osd.used_bytes + load.bytes_in - load.leaving_bytes) / osd.size_bytes
