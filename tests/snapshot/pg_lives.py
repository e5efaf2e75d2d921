"""Random lives of PGs as Ceph tells them: upmaps, backfill, log recovery, OSDs that fall.

Every step changes the readings of a `Cluster`; beside it stands what is true, from the history of
events alone: where each PG's shards are, which OSDs gain or lose one, who is short of copies.
"""
from __future__ import annotations

import random
from collections import Counter
from typing import Any, Dict, List

from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.snapshot.model import Reading

OSDS = 10
SENT, MOVING, SETTLED = "sent", "moving", "settled"
#: How Ceph carries a move: by backfill, or by log recovery with the new OSD outside of the acting
#: set or inside (seen on 16.2.15 and 20.2.4).
BACKFILL, ASYNC, IN_PLACE = "backfill", "async", "in place"
STATES = {
    BACKFILL: "active+remapped+backfilling",
    ASYNC: "active+recovering+undersized+remapped",
    IN_PLACE: "active+recovery_wait+degraded"}


class Life:
    """One PG. `home` is where it was last clean."""

    def __init__(self, pgid: str, osds: List[int], positional: bool) -> None:
        self.pgid = pgid
        self.positional = positional
        self.raw = list(osds)
        self.home = list(osds)
        self.up = list(osds)
        self.phase = SETTLED
        self.way = BACKFILL

    def acting(self) -> List[int]:
        if self.phase != MOVING or self.way == IN_PLACE:
            return list(self.up)
        if self.way == BACKFILL:
            return list(self.home)
        if self.positional:
            return [u if u == h else NONE for u, h in zip(self.up, self.home)]
        return [osd for osd in self.up if osd in self.home]

    def state(self) -> str:
        """The report of before, where a move has just been sent."""
        return STATES[self.way] if self.phase == MOVING else "active+clean"

    def gains(self) -> List[int]:
        return [osd for osd in self.up if osd not in self.home]

    def losses(self) -> List[int]:
        return [osd for osd in self.home if osd not in self.up]


class Lives:
    """PGs of a replicated pool 1 and an erasure-coded pool 2."""

    def __init__(self, seed: int, pgs: int = 12) -> None:
        self.rng = random.Random(seed)
        self.cluster = Cluster(hosts(OSDS)).pool(1, size=3).pool(2, size=4, k=3)
        self.lives: List[Life] = []
        for ps in range(pgs):
            for pool, size in ((1, 3), (2, 4)):
                life = Life(f"{pool}.{ps:x}", self.rng.sample(range(OSDS), size), pool == 2)
                self.lives.append(life)
                self.cluster.pg(life.pgid, life.up, num_bytes=3 * GIB, objects=30)
        self.now = 1000.0

    def step(self) -> None:
        """One event each for some PGs, and a new map."""
        self.cluster.epoch += 1
        self.now += self.rng.choice((2.0, 20.0, 200.0))
        for life in self.lives:
            if life.phase == SENT or self.rng.random() < 0.4:   # a PG peers within seconds
                self._advance(life)
        self._tell()

    def _advance(self, life: Life) -> None:
        if life.phase == SETTLED:
            self._move(life)
        elif life.phase == SENT and life.up != life.home:
            life.phase = MOVING
            life.way = BACKFILL
            if len(life.up) - len(life.gains()) >= 2:   # they can serve
                life.way = self.rng.choice(list(STATES))
            self._report(life)
        elif life.up != life.home and self.rng.random() < 0.25:
            self._move(life)             # once more, before it has arrived
        elif life.up != life.home and self.rng.random() < 0.2:
            life.up, life.phase = list(life.home), SENT    # taken back
        else:
            life.home, life.phase = list(life.up), SETTLED
            self._report(life)

    def _move(self, life: Life) -> None:
        """Another OSD for one of the shards that are where they were."""
        places = [i for i, osd in enumerate(life.up) if osd in life.home]
        free = sorted(set(range(OSDS)).difference(life.up, life.home, life.raw))
        if places and free:
            life.up[self.rng.choice(places)] = self.rng.choice(free)
            life.phase = SENT

    def _report(self, life: Life) -> None:
        record = self.cluster.records[life.pgid]
        self.cluster.records[life.pgid] = record._replace(
            state=life.state(), reported_epoch=self.cluster.epoch)

    def _tell(self) -> None:
        cluster = self.cluster
        for life in self.lives:
            pgid, acting = life.pgid, life.acting()
            cluster.up[pgid] = list(life.up)
            cluster.items.pop(pgid, None)
            if life.up != life.raw:
                cluster.items[pgid] = [(r, u) for r, u in zip(life.raw, life.up) if r != u]
            cluster.acting.pop(pgid, None)
            if acting != life.up:
                cluster.acting[pgid] = acting
        cluster.pg_status = pg_status(cluster)

    def reading(self) -> Reading:
        return self.cluster.reading()._replace(taken_at=self.now, up=dict(self.cluster.up))

    def coming(self) -> Dict[int, int]:
        """OSD → shards that it gains."""
        return Counter(osd for life in self.lives for osd in life.gains())

    def leaving(self) -> Dict[int, int]:
        """OSD → shards that it loses."""
        return Counter(osd for life in self.lives for osd in life.losses())


def pg_status(cluster: Cluster) -> Dict[str, Any]:
    """How many PGs of each pool are in each state."""
    rows = []
    for pool in cluster.pools:
        states = Counter(cluster.records[pgid].state for pgid in cluster.pgids(pool))
        counts = [{"state_name": state, "count": count} for state, count in states.items()]
        rows.append({"pool_id": pool, "pg_state_counts": counts})
    return {"pgs_by_pool_state": rows}
