"""Backfill in virtual time: which PGs copy, how fast, and what their OSDs hold meanwhile."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Optional, Set, Tuple

from .cluster import Cluster
from .pg import Flow, Pg, pg_order
from .upmap import Mapping
from .usage import NOTHING

#: Seconds between a new up set and the pg_temp entry that goes with it, and between the end of a
#: backfill and the epoch that takes the entry away.
PEERING_SECONDS = 1.0

#: Bytes per second that an OSD can read and write together for backfill, by device class.
BYTES_PER_SECOND: Dict[str, float] = {"hdd": 100e6, "ssd": 300e6, "nvme": 600e6}

#: Flags of the osdmap that make backfill stand still.
_STOPPING_FLAGS = {"nobackfill", "norebalance"}

#: Less than this many bytes to go counts as nothing.
_DONE = 0.5


class Backfill:
    """Moves shards between the OSDs of a Cluster.

    A PG copies while its acting primary has one of `max_backfills()` local slots and every target
    one of as many remote slots. An OSD shares its bytes per second evenly among the copies that
    read from or write to it.
    """

    def __init__(self, cluster: Cluster, max_backfills: Callable[[], int]) -> None:
        self.cluster = cluster
        self.max_backfills = max_backfills
        self.bytes_per_second = dict(BYTES_PER_SECOND)
        #: PGs that are peering: {pgid: (moment it is done, pg_temp to ask for or None)}
        self._wanted_temp: Dict[str, Tuple[float, Optional[Mapping]]] = {}
        self._moving: Dict[str, Pg] = {}
        self._active: List[Flow] = []
        self._replan = True
        for pg in cluster.pgs.values():
            if pg.flows:
                self._moving[pg.pgid] = pg

    # -- what goes on -------------------------------------------------------------------------

    def moving(self) -> List[Pg]:
        """PGs with shards on their way."""
        return list(self._moving.values())

    def idle(self) -> bool:
        """Whether no shard is being copied, none can start, and no pg_temp is about to change."""
        return not self._wanted_temp and self.next_completion() is None

    def next_temp(self) -> Optional[float]:
        """The moment at which the next PG has peered."""
        return min((due for due, _ in self._wanted_temp.values()), default=None)

    def take_peered(self) -> Dict[str, Optional[Mapping]]:
        """The PGs that have peered by now, with the pg_temp entry that each asks for."""
        now = self.cluster.clock()
        due = [pgid for pgid, (moment, _) in self._wanted_temp.items() if moment <= now]
        if due:
            self._replan = True
        return {pgid: self._wanted_temp.pop(pgid)[1] for pgid in sorted(due, key=pg_order)}

    def report(self, pgids: Iterable[str]) -> None:
        """PGs tell their state to the mgr, as they do once they have peered."""
        for pgid in pgids:
            if pgid in self.cluster.pgs:
                self.cluster.pgs[pgid].reported_epoch = self.cluster.map.epoch

    # -- reactions to a new epoch --------------------------------------------------------------

    def map_changed(self, remapped: List[str]) -> None:
        """Takes note of a new epoch in which these PGs have another up set."""
        self._replan = True
        for pgid in remapped:
            pg = self.cluster.pgs[pgid]
            if pg.movable:
                self._retarget(pg)
        for pgid in [p for p in self._moving if p not in self.cluster.pgs]:
            del self._moving[pgid]
        for pgid in [p for p in self._wanted_temp if p not in self.cluster.pgs]:
            del self._wanted_temp[pgid]

    def _retarget(self, pg: Pg) -> None:
        """Copies that the new up set still wants go on, others are thrown away."""
        cluster = self.cluster
        self._settle(pg)
        before = set(pg.held) | {flow.target for flow in pg.flows.values()}
        recovered = pg.recovered()
        up = cluster.map.up[pg.pgid]
        flows: Dict[Tuple[int, int], Flow] = {}
        for key, source in pg.wanted_flows(up):
            kept = pg.flows.pop(key, None)
            flows[key] = kept or Flow(source, key[1], pg.shard)
        for flow in pg.flows.values():
            cluster.usage[flow.target].remove(flow.landed)
            cluster.pool_usage.add(pg.pool_id, flow.target, NOTHING.minus(flow.landed))
        pg.flows = flows
        pg.recovered_bytes += recovered - pg.recovered()  # the counter never falls
        pg.backfilling = pg.toofull = False
        pg.queued = cluster.clock()
        if flows:
            self._moving[pg.pgid] = pg
        else:
            pg.held = up
            self._moving.pop(pg.pgid, None)
        self._count(before, set(pg.held) | set(up))
        self._want_temp(pg, pg.held if flows else None)

    def _want_temp(self, pg: Pg, acting: Optional[Mapping]) -> None:
        self._wanted_temp[pg.pgid] = (self.cluster.clock() + PEERING_SECONDS, acting)

    def _count(self, before: Set[int], after: Set[int]) -> None:
        for osd in before - after:
            self.cluster.usage[osd].count_pg(-1)
        for osd in after - before:
            self.cluster.usage[osd].count_pg(1)

    # -- the copying --------------------------------------------------------------------------

    def next_completion(self) -> Optional[float]:
        """Seconds until the next shard is through, None if none is being copied."""
        if self._replan:
            self._plan()
        return min((flow.remaining / flow.rate for flow in self._active if flow.rate > 0),
                   default=None)

    def copy(self, seconds: float) -> None:
        """Copies for some seconds, during which no shard but the last gets through."""
        through = False
        for flow in self._active:
            flow.copied += flow.rate * seconds
            through = through or flow.remaining <= _DONE
        if through:
            self._replan = True
            self._finish_complete()

    def _finish_complete(self) -> bool:
        """Ends the backfill of every PG whose shards have all arrived; whether there was one."""
        complete = [pg for pg in self._moving.values() if pg.backfilling
                    and all(flow.remaining <= _DONE for flow in pg.flows.values())]
        for pg in complete:
            self._finish(pg)
        return bool(complete)

    def settle(self) -> None:
        """Brings the statistics of the OSDs up to what has been copied."""
        for pg in self._moving.values():
            if pg.backfilling:
                self._settle(pg)

    def _settle(self, pg: Pg) -> None:
        for flow in pg.flows.values():
            here = flow.shard if flow.remaining <= _DONE else flow.shard.part(flow.copied)
            fresh = here.minus(flow.landed)
            self.cluster.usage[flow.target].add(fresh)
            self.cluster.pool_usage.add(pg.pool_id, flow.target, fresh)
            flow.landed = here

    def _finish(self, pg: Pg) -> None:
        """The backfill of a PG is through: the sources drop their shards, acting becomes up."""
        self._settle(pg)
        cluster = self.cluster
        up = cluster.map.up[pg.pgid]
        before = set(pg.held) | set(up)
        if pg.erasure:
            left = [old for old, new in zip(pg.held, up) if old != new]
        else:
            left = [osd for osd in pg.held if osd not in up]
        for osd in left:
            cluster.usage[osd].remove(pg.shard)
            cluster.pool_usage.add(pg.pool_id, osd, NOTHING.minus(pg.shard))
        pg.recovered_bytes += pg.num_bytes
        pg.held = up
        pg.flows = {}
        pg.backfilling = False
        del self._moving[pg.pgid]
        self._count(before, set(up))
        self._want_temp(pg, None)

    # -- reservations and rates ----------------------------------------------------------------

    def _plan(self) -> None:
        self._replan = False
        if self.cluster.map.flags & _STOPPING_FLAGS:
            self._active = []
            return
        self._reserve()
        while self._finish_complete():
            self._reserve()
        self._active = [flow for pg in self._moving.values() if pg.backfilling
                        for flow in pg.flows.values() if flow.remaining > _DONE]
        load: Dict[int, int] = {}
        for flow in self._active:
            load[flow.source] = load.get(flow.source, 0) + 1
            load[flow.target] = load.get(flow.target, 0) + 1
        for flow in self._active:
            flow.rate = min(self._speed(osd) / load[osd] for osd in (flow.source, flow.target))

    def _speed(self, osd: int) -> float:
        return self.bytes_per_second.get(self.cluster.crush.classes.get(osd, "hdd"),
                                         self.bytes_per_second["hdd"])

    def _reserve(self) -> None:
        """Grants free slots to waiting PGs, the longest waiting first."""
        limit = self.max_backfills()
        local: Dict[int, int] = {}
        remote: Dict[int, int] = {}
        waiting = []
        for pg in self._moving.values():
            if pg.backfilling:
                _take_slots(pg, local, remote)
            elif pg.pgid in self.cluster.map.pg_temp and pg.pgid not in self._wanted_temp:
                waiting.append(pg)
        waiting.sort(key=lambda pg: (pg.queued, pg.order))
        for pg in waiting:
            targets = {flow.target for flow in pg.flows.values()}
            if local.get(pg.held[0], 0) >= limit or any(
                    remote.get(osd, 0) >= limit for osd in targets):
                continue
            pg.toofull = any(self._would_be_toofull(flow) for flow in pg.flows.values())
            if not pg.toofull:
                pg.backfilling = True
                _take_slots(pg, local, remote)

    def _would_be_toofull(self, flow: Flow) -> bool:
        """Whether the shard would push its target over the backfillfull ratio."""
        usage = self.cluster.usage[flow.target]
        limit = self.cluster.map.ratio("backfillfull_ratio") * usage.total
        return usage.used + flow.remaining > limit


def _take_slots(pg: Pg, local: Dict[int, int], remote: Dict[int, int]) -> None:
    local[pg.held[0]] = local.get(pg.held[0], 0) + 1
    for target in {flow.target for flow in pg.flows.values()}:
        remote[target] = remote.get(target, 0) + 1
