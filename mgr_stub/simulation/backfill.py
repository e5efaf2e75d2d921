"""Backfill and recovery in virtual time: which PGs copy, how fast, and the bytes on their OSDs."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List, Optional, Set

from ..cluster import peering, pg_reports
from ..cluster.cluster import Cluster, Peering
from ..cluster.pg import Pg, Transfer, pg_order
from ..cluster.pg_state import priority_of
from ..cluster.shard_copies import DONE_BYTES, account_copied, finish, retarget
from ..osdmap.upmap import Mapping
from .reservations import Request, grant

#: Seconds between a new up set and the pg_temp entry that goes with it, and between the end of a
#: backfill and the epoch that takes the entry away.
PEERING_SECONDS = 1.0

#: Bytes per second that an OSD can read and write together for backfill, by device class.
BYTES_PER_SECOND: Dict[str, float] = {"hdd": 100e6, "ssd": 300e6, "nvme": 600e6}


class Backfill:
    """Moves shards between the OSDs of a Cluster.

    PGs get their slots as in reservations.py; `max_backfills` gives the slots of an OSD. An OSD
    shares its bytes per second evenly among the transfers that read from or write to it. All shards
    of a PG are copied at the rate of the slowest, as Ceph sends an object to all targets of its PG
    before the next one (PrimaryLogPG::recover_backfill; seen on 16.2.15: while one of two targets
    is stopped, the other gets nothing).
    """

    def __init__(self, cluster: Cluster, max_backfills: Callable[[int], int]) -> None:
        self.cluster = cluster
        self.max_backfills = max_backfills
        self.bytes_per_second = dict(BYTES_PER_SECOND)
        self.peering_seconds = PEERING_SECONDS
        self._moving: Dict[str, Pg] = {}
        #: Reservation requests of the moving PGs, cached while they cannot change.
        self._requests: Dict[str, Request] = {}
        self._active: List[Transfer] = []
        #: PGs that hold their slots, and PGs with a target that is too full, at the last `_plan`.
        self._granted: List[Pg] = []
        self._refused: List[Pg] = []
        #: PGs that hold their slots and that an osdmap flag keeps from copying.
        self._stopped: Set[str] = set()
        self._plan_is_stale = True
        #: True if no target can become too full by all transfers to it, as of the last `_plan`.
        self._targets_have_space = False
        #: True if bytes have been copied that the OSDs' statistics do not show yet.
        self._has_unaccounted = True
        for pg in cluster.pgs.values():
            if pg.transfers:
                self._moving[pg.pgid] = pg
                pg_reports.refresh(cluster, pg)

    # -- progress ------------------------------------------------------------------------------

    def moving(self) -> List[Pg]:
        """PGs with unfinished transfers."""
        return list(self._moving.values())

    def idle(self) -> bool:
        """True if no shard is being copied, none can start, and no PG peers."""
        return not self.cluster.peering and self.next_completion() is None

    def next_peered(self) -> Optional[float]:
        """Moment at which the next PG has peered."""
        return min((peering.due for peering in self.cluster.peering.values()), default=None)

    def pop_peered(self) -> Dict[str, Optional[Mapping]]:
        """Removes the PGs that have peered by now; the pg_temp entry that each asks for."""
        now = self.cluster.clock.now
        peering = self.cluster.peering
        due = [pgid for pgid, entry in peering.items() if entry.due <= now]
        if any(pgid in self._moving for pgid in due):
            self._plan_is_stale = True
        elif due:
            self._replan_unless_space()
        wanted: Dict[str, Optional[Mapping]] = {}
        for pgid in sorted(due, key=pg_order):
            wanted[pgid] = peering.pop(pgid).temp
            self._requests.pop(pgid, None)
            self.cluster.pgs[pgid].creating = False
        return wanted

    def report(self, pgids: Iterable[str]) -> None:
        """PGs report their state to the mgr, as they do once they have peered."""
        for pgid in pgids:
            if pgid in self.cluster.pgs:
                pg = self.cluster.pgs[pgid]
                pg.reported_epoch = self.cluster.map.epoch
                pg_reports.refresh(self.cluster, pg)
                peering.record_interval(self.cluster, pg)

    # -- reactions to a new epoch --------------------------------------------------------------

    def map_changed(self, remapped: Iterable[str], is_pg_temp_only: bool = False) -> None:
        """Reacts to a new epoch that changes the up sets or the members of these PGs.

        With `is_pg_temp_only` nothing changes but pg_temp entries of PGs that have peered.
        """
        if is_pg_temp_only:
            self._replan_unless_space()
        else:
            self._plan_is_stale = True
        for pgid in [p for p in self._moving if p not in self.cluster.pgs]:
            del self._moving[pgid]
        for pgid in remapped:
            pg = self.cluster.pgs.get(pgid)
            if pg is not None and pg.movable:
                self.retarget(pg)

    def retarget(self, pg: Pg) -> None:
        """Starts peering of a PG and the transfers that its up set needs."""
        last = pg_reports.compute_report(self.cluster, pg)[0]
        pg.past_intervals = pg.past_intervals or (pg.held,)
        retarget(self.cluster, pg)
        if pg.transfers and pg.writes == 0 and self.cluster.log_recovery:
            finish(self.cluster, pg)  # an empty PG has nothing to copy
        if pg.transfers:
            self._moving[pg.pgid] = pg
        else:
            self._moving.pop(pg.pgid, None)
        self._peer(pg, last)
        sets = self.cluster.map.up.get(pg.pgid, ()), self.cluster.map.acting(pg.pgid)
        if sets != pg.peered_sets:
            pg.peered_sets = sets
            pg.hides_remapped = peering.hides_remapped(
                self.cluster, pg, self.cluster.peering[pg.pgid].temp)
        self._plan_is_stale = True

    def replan(self) -> None:
        """To be called when slots or rates may change."""
        self._plan_is_stale = True

    def _replan_unless_space(self) -> None:
        """To be called when slots are unchanged: only targets that fill up can change the plan."""
        self._plan_is_stale = self._plan_is_stale or not self._targets_have_space

    def _peer(self, pg: Pg, last: str) -> None:
        cluster = self.cluster
        now = cluster.clock.now
        temp = peering.wanted_temp(cluster, pg)
        self._requests.pop(pg.pgid, None)
        cluster.peering[pg.pgid] = Peering(now, now + self.peering_seconds, temp, last)
        pg_reports.refresh(cluster, pg)

    # -- the copying --------------------------------------------------------------------------

    def next_completion(self) -> Optional[float]:
        """Seconds until the next shard is complete, None if none is being copied."""
        if self._plan_is_stale:
            self._plan()
        return min((transfer.remaining / transfer.rate for transfer in self._active
                    if transfer.rate > 0), default=None)

    def next_retry(self) -> Optional[float]:
        """Moment at which the next target that was too full is asked again."""
        return min((pg.retry_at for pg in self._refused
                    if pg.toofull and pg.pgid in self._moving), default=None)

    def copy(self, seconds: float) -> None:
        """Copies for some seconds, in which no shard completes before the end."""
        if seconds <= 0.0 or not self._active:
            return
        self._has_unaccounted = True
        complete = False
        for transfer in self._active:
            transfer.copied += transfer.rate * seconds
            complete = complete or transfer.total - transfer.copied <= DONE_BYTES
        if complete:
            self._plan_is_stale = True
            self._finish_complete()

    def _finish_complete(self) -> bool:
        """Ends the backfill of every PG whose shards are complete; True if there was one."""
        complete = [pg for pg in self._granted if pg.backfilling and pg.pgid in self._moving
                    and pg.pgid not in self._stopped
                    and all(transfer.total - transfer.copied <= DONE_BYTES
                            for transfer in pg.transfers.values())]
        for pg in complete:
            last = pg_reports.compute_report(self.cluster, pg)[0]
            finish(self.cluster, pg)
            del self._moving[pg.pgid]
            self._peer(pg, last)
        return bool(complete)

    def account_copied(self) -> None:
        """Makes the statistics of the OSDs show all that has been copied."""
        if not self._has_unaccounted:
            return
        self._has_unaccounted = False
        for pg in self._moving.values():
            if pg.backfilling:
                account_copied(self.cluster, pg)

    # -- slots and rates -----------------------------------------------------------------------

    def _plan(self) -> None:
        self._plan_is_stale = False
        self.cluster.revision += 1  # waiting PGs report other states than copying ones
        self._targets_have_space = self._all_targets_have_space()
        if not self._targets_have_space:
            self.account_copied()
        ran, self._granted = self._granted, self._grant()
        while self._finish_complete():
            self._granted = self._grant()
        for pg in ran:
            if not pg.backfilling and pg.pgid in self._moving:
                account_copied(self.cluster, pg)  # `self.account_copied` skips it from now on
        self._refused = [pg for pg in self._moving.values() if pg.toofull]
        running = [] if "norecover" in self.cluster.map.flags else [
            pg for pg in self._granted if pg.pgid not in self._stopped]
        self._active = [transfer for pg in running for transfer in pg.transfers.values()
                        if transfer.remaining > DONE_BYTES]
        load: Dict[int, int] = {}
        for transfer in self._active:
            load[transfer.source] = load.get(transfer.source, 0) + 1
            load[transfer.target] = load.get(transfer.target, 0) + 1
        for pg in running:
            transfers = [t for t in pg.transfers.values() if t.remaining > DONE_BYTES]
            rate = min((self._speed(osd) / load[osd] for transfer in transfers
                        for osd in (transfer.source, transfer.target)), default=0.0)
            for transfer in transfers:
                transfer.rate = rate

    def _all_targets_have_space(self) -> bool:
        """True if no target would refuse, whichever transfers get their slots in whatever order."""
        usage, ratio = self.cluster.usage, self.cluster.map.ratio("backfillfull_ratio")
        coming: Dict[int, int] = {}
        for pg in self._moving.values():
            for transfer in pg.transfers.values():
                to_come = transfer.total - transfer.accounted.total
                coming[transfer.target] = coming.get(transfer.target, 0) + to_come
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
                self._stopped.add(pg.pgid)  # real PGs take their slots and then do not copy
            if stopped and not self.cluster.log_recovery:
                pg.backfilling = pg.toofull = False
            else:
                requests.append(request)
        return grant(self.cluster, requests, self.max_backfills, self._targets_have_space)

    def _request(self, pg: Pg) -> Request:
        cluster = self.cluster
        acting = cluster.map.acting(pg.pgid)
        counts = pg_reports.counts_of(cluster, pg)
        priority = priority_of(pg, acting, cluster.size_of(pg), cluster.min_size_of(pg),
                               counts.degraded)
        primary = next((osd for osd in acting if osd in pg.held), pg.holders()[0])
        return Request(pg, priority, primary, tuple(sorted(pg.targets())), (pg.queued_at, pg.order))
