"""Backfill in virtual time: which PGs copy, how fast, and what their OSDs hold meanwhile."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Optional, Set

from ..cluster.cluster import Cluster, Peering
from ..cluster.pg import Flow, Pg, pg_order
from ..cluster.pg_state import priority_of
from ..cluster.shard_copies import DONE, finish, retarget, settle
from ..osdmap.upmap import Mapping
from .reservations import Request, grant

#: Seconds between a new up set and the pg_temp entry that goes with it, and between the end of a
#: backfill and the epoch that takes the entry away.
PEERING_SECONDS = 1.0

#: Bytes per second that an OSD can read and write together for backfill, by device class.
BYTES_PER_SECOND: Dict[str, float] = {"hdd": 100e6, "ssd": 300e6, "nvme": 600e6}


class Backfill:
    """Moves shards between the OSDs of a Cluster.

    Slots are given as in reservations.py, `max_backfills` tells how many an OSD has. An OSD shares
    its bytes per second evenly among the copies that read from or write to it.
    """

    def __init__(self, cluster: Cluster, max_backfills: Callable[[int], int]) -> None:
        self.cluster = cluster
        self.max_backfills = max_backfills
        self.bytes_per_second = dict(BYTES_PER_SECOND)
        self.peering_seconds = PEERING_SECONDS
        self._moving: Dict[str, Pg] = {}
        #: What the moving PGs ask for, as long as it cannot change.
        self._requests: Dict[str, Request] = {}
        self._active: List[Flow] = []
        #: PGs that hold their slots, and those that a target was too full for, since `_plan`.
        self._granted: List[Pg] = []
        self._refused: List[Pg] = []
        #: PGs that a flag keeps from copying although they have their slots.
        self._stopped: Set[str] = set()
        self._replan = True
        #: Whether no target can become too full by all that is on its way there, since `_plan`.
        self._roomy = False
        #: Whether something has been copied that the OSDs' statistics do not show yet.
        self._unsettled = True
        for pg in cluster.pgs.values():
            if pg.flows:
                self._moving[pg.pgid] = pg
                cluster.look_at(pg)

    # -- what goes on -------------------------------------------------------------------------

    def moving(self) -> List[Pg]:
        """PGs with shards on their way."""
        return list(self._moving.values())

    def idle(self) -> bool:
        """Whether no shard is being copied, none can start, and no pg_temp is about to change."""
        return not self.cluster.peering and self.next_completion() is None

    def next_temp(self) -> Optional[float]:
        """The moment at which the next PG has peered."""
        return min((peering.due for peering in self.cluster.peering.values()), default=None)

    def take_peered(self) -> Dict[str, Optional[Mapping]]:
        """The PGs that have peered by now, with the pg_temp entry that each asks for."""
        now = self.cluster.clock.now
        peering = self.cluster.peering
        due = [pgid for pgid, entry in peering.items() if entry.due <= now]
        if any(pgid in self._moving for pgid in due):
            self._replan = True
        elif due:
            self._perhaps_changed()
        wanted: Dict[str, Optional[Mapping]] = {}
        for pgid in sorted(due, key=pg_order):
            wanted[pgid] = peering.pop(pgid).temp
            self._requests.pop(pgid, None)
            self.cluster.pgs[pgid].created = False
        return wanted

    def report(self, pgids: Iterable[str]) -> None:
        """PGs tell their state to the mgr, as they do once they have peered."""
        for pgid in pgids:
            if pgid in self.cluster.pgs:
                pg = self.cluster.pgs[pgid]
                pg.reported_epoch = self.cluster.map.epoch
                self.cluster.look_at(pg)
                self.cluster.note_interval(pg)

    # -- reactions to a new epoch --------------------------------------------------------------

    def map_changed(self, remapped: Iterable[str], only_serves: bool = False) -> None:
        """Takes note of a new epoch in which these PGs have another up set or other members.

        With `only_serves` nothing else is new but pg_temp entries of PGs that have peered.
        """
        if only_serves:
            self._perhaps_changed()
        else:
            self._replan = True
        for pgid in [p for p in self._moving if p not in self.cluster.pgs]:
            del self._moving[pgid]
        for pgid in remapped:
            pg = self.cluster.pgs.get(pgid)
            if pg is not None and pg.movable:
                self.retarget(pg)

    def retarget(self, pg: Pg) -> None:
        """The PG peers anew and copies what its up set needs."""
        last = self.cluster.report_of(pg)[0]
        pg.intervals = pg.intervals or (pg.held,)
        retarget(self.cluster, pg)
        if pg.flows and pg.writes == 0 and self.cluster.log_recovery:
            finish(self.cluster, pg)  # who has nothing lacks nothing
        if pg.flows:
            self._moving[pg.pgid] = pg
        else:
            self._moving.pop(pg.pgid, None)
        self._peer(pg, last)
        sets = self.cluster.map.up.get(pg.pgid, ()), self.cluster.map.acting(pg.pgid)
        if sets != pg.sets:
            pg.sets = sets
            pg.unmarked = self.cluster.leads_unmarked(pg, self.cluster.peering[pg.pgid].temp)
        self._replan = True

    def changed(self) -> None:
        """Something that slots or rates depend on is another now."""
        self._replan = True

    def _perhaps_changed(self) -> None:
        """No slot is wanted or free that was not: only targets that fill could change plans."""
        self._replan = self._replan or not self._roomy

    def _peer(self, pg: Pg, last: str) -> None:
        cluster = self.cluster
        now = cluster.clock.now
        temp = cluster.wanted_temp(pg)
        self._requests.pop(pg.pgid, None)
        cluster.peering[pg.pgid] = Peering(now, now + self.peering_seconds, temp, last)
        cluster.look_at(pg)

    # -- the copying --------------------------------------------------------------------------

    def next_completion(self) -> Optional[float]:
        """Seconds until the next shard is through, None if none is being copied."""
        if self._replan:
            self._plan()
        return min((flow.remaining / flow.rate for flow in self._active if flow.rate > 0),
                   default=None)

    def next_retry(self) -> Optional[float]:
        """The moment at which a target that was too full is asked again."""
        return min((pg.retry_at for pg in self._refused
                    if pg.toofull and pg.pgid in self._moving), default=None)

    def copy(self, seconds: float) -> None:
        """Copies for some seconds, during which no shard but the last gets through."""
        if seconds <= 0.0 or not self._active:
            return
        self._unsettled = True
        through = False
        for flow in self._active:
            flow.copied += flow.rate * seconds
            through = through or flow.shard.total - flow.copied <= DONE
        if through:
            self._replan = True
            self._finish_complete()

    def _finish_complete(self) -> bool:
        """Ends the backfill of every PG whose shards have all arrived; whether there was one."""
        complete = [pg for pg in self._granted if pg.backfilling and pg.pgid in self._moving
                    and pg.pgid not in self._stopped
                    and all(flow.shard.total - flow.copied <= DONE for flow in pg.flows.values())]
        for pg in complete:
            last = self.cluster.report_of(pg)[0]
            finish(self.cluster, pg)
            del self._moving[pg.pgid]
            self._peer(pg, last)
        return bool(complete)

    def settle(self) -> None:
        """Brings the statistics of the OSDs up to what has been copied."""
        if not self._unsettled:
            return
        self._unsettled = False
        for pg in self._moving.values():
            if pg.backfilling:
                settle(self.cluster, pg)

    # -- slots and rates -----------------------------------------------------------------------

    def _plan(self) -> None:
        self._replan = False
        self.cluster.revision += 1  # PGs that wait tell other states than those that copy
        self._roomy = self._has_room()
        if not self._roomy:
            self.settle()
        ran, self._granted = self._granted, self._grant()
        while self._finish_complete():
            self._granted = self._grant()
        for pg in ran:
            if not pg.backfilling and pg.pgid in self._moving:
                settle(self.cluster, pg)  # `self.settle` does not see it any more
        self._refused = [pg for pg in self._moving.values() if pg.toofull]
        running = [] if "norecover" in self.cluster.map.flags else [
            pg for pg in self._granted if pg.pgid not in self._stopped]
        self._active = [flow for pg in running for flow in pg.flows.values()
                        if flow.remaining > DONE]
        load: Dict[int, int] = {}
        for flow in self._active:
            load[flow.source] = load.get(flow.source, 0) + 1
            load[flow.target] = load.get(flow.target, 0) + 1
        for flow in self._active:
            flow.rate = min(self._speed(osd) / load[osd] for osd in (flow.source, flow.target))

    def _has_room(self) -> bool:
        """Whether no target would refuse, whatever copies get their slots in whatever order."""
        usage, ratio = self.cluster.usage, self.cluster.map.ratio("backfillfull_ratio")
        coming: Dict[int, int] = {}
        for pg in self._moving.values():
            for flow in pg.flows.values():
                to_come = flow.shard.total - flow.landed.total
                coming[flow.target] = coming.get(flow.target, 0) + to_come
        return all(usage[osd].used + more <= ratio * usage[osd].total
                   for osd, more in coming.items())

    def _speed(self, osd: int) -> float:
        return self.bytes_per_second.get(self.cluster.crush.classes.get(osd, "hdd"),
                                         self.bytes_per_second["hdd"])

    def _grant(self) -> List[Pg]:
        flags = self.cluster.map.flags
        self._stopped.clear()
        requests: List[Request] = []
        for pg in self._moving.values():
            if pg.pgid in self.cluster.peering:
                pg.backfilling = pg.toofull = False
                continue
            request = self._requests.get(pg.pgid)
            if request is None:
                request = self._requests[pg.pgid] = self._request(pg)
            stopped = "nobackfill" in flags and request.priority != 180 or (
                "norebalance" in flags and request.priority == 100)
            if stopped and self.cluster.log_recovery:
                self._stopped.add(pg.pgid)  # real PGs take their slots, and then do nothing
            if stopped and not self.cluster.log_recovery:
                pg.backfilling = pg.toofull = False
            else:
                requests.append(request)
        return grant(self.cluster, requests, self.max_backfills, self._roomy)

    def _request(self, pg: Pg) -> Request:
        cluster = self.cluster
        acting = cluster.map.acting(pg.pgid)
        counts = cluster.counts_of(pg)
        priority = priority_of(pg, acting, cluster.size_of(pg), cluster.min_size_of(pg),
                               counts.degraded)
        primary = next((osd for osd in acting if osd in pg.held), pg.holders()[0])
        return Request(pg, priority, primary, tuple(sorted(pg.targets())), (pg.queued, pg.order))
