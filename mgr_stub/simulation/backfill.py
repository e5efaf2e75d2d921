"""Backfill and recovery in virtual time: which PGs copy, how fast, and the bytes on their OSDs.

Local and remote reservations of Ceph's OSDs, which decide which PGs may copy.

A PG needs one of `osd_max_backfills` local slots of its acting primary and as many remote slots of
each target. Higher priorities go first and take the slots of lower ones that run; within a priority
running PGs keep their slots, then the longest waiting PG goes. A target that would exceed the
backfillfull ratio refuses, and is asked again later.
"""
from __future__ import annotations

import math
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from ..cluster import operations, peering, pg_reports
from ..cluster.cluster import Cluster, Peering
from ..cluster.pg import Pg, Transfer, pg_order
from ..cluster.pg_state import priority_of
from ..cluster.shard_copies import (
    DONE_BYTES, account_copied, finish, retarget, update_num_pgs)
from ..crush.hashes import NONE
from ..osdmap.upmap import Mapping


#: Seconds after which a target that was too full is asked again (osd_backfill_retry_interval).
RETRY_SECONDS = 30.0


class Request(NamedTuple):
    """A PG that has to copy; `primary` is the OSD whose local slot it needs.

    `order` sorts requests of one priority: moment since which they wait, then the PG.
    """

    pg: Pg
    priority: int
    primary: int
    targets: Tuple[int, ...]
    order: Tuple[float, Tuple[int, int]]


def grant(cluster: Cluster, requests: Iterable[Request],
          limit_of: Callable[[int], int], targets_have_space: bool = False) -> List[Pg]:
    """Sets `backfilling` and `toofull` of all PGs with a request; returns the PGs that may copy.

    `targets_have_space` spares the check of the targets: none can become too full.
    """
    slots = _Slots(cluster, limit_of)
    granted: List[Pg] = []
    ranked = sorted([(-request.priority, not request.pg.backfilling, request.order, request)
                     for request in requests])   # no two PGs have one `order`
    for _, _, _, request in ranked:
        pg = request.pg
        ran = pg.backfilling
        pg.backfilling = False
        if pg.toofull and pg.retry_at > cluster.clock.now:
            continue
        pg.toofull = False
        if not slots.free_for(request):
            continue
        if _by_log(pg):
            pg.toofull = slots.is_above_full(pg)
        elif not targets_have_space:
            pg.toofull = slots.too_full(pg, ran)
        if pg.toofull:
            pg.retry_at = cluster.clock.now + RETRY_SECONDS
            continue
        pg.backfilling = True
        pg.waiting_report = None
        slots.reserve(request)
        granted.append(pg)
    return granted


def _copied_now(pg: Pg) -> List[Transfer]:
    """Returns the transfers that get objects now; sets their `ahead`.

    Backfill goes through the objects once: targets that have got further before wait for the
    others (PrimaryLogPG::recover_backfill).
    """
    going = [transfer for transfer in pg.transfers.values() if transfer.remaining > DONE_BYTES]
    if len(pg.transfers) < 2 or _by_log(pg) or not going:
        for transfer in going:
            transfer.ahead = None
        return going
    least = min(transfer.copied for transfer in going) + DONE_BYTES
    ahead = min([transfer for transfer in pg.transfers.values() if transfer.copied > least],
                key=lambda transfer: transfer.copied, default=None)
    behind = [transfer for transfer in going if transfer.copied <= least]
    for transfer in behind:
        transfer.ahead = ahead
    return behind


def _by_log(pg: Pg) -> bool:
    return any(transfer.by_log for transfer in pg.transfers.values())


class _Slots:
    """Reserved slots, and bytes in flight to each OSD."""

    def __init__(self, cluster: Cluster, limit_of: Callable[[int], int]) -> None:
        self._cluster = cluster
        self._limit_of = limit_of
        self._local: Dict[int, int] = {}
        self._remote: Dict[int, int] = {}
        #: Bytes still to come to an OSD by transfers that hold their slots.
        self._incoming: Dict[int, float] = {}

    def free_for(self, request: Request) -> bool:
        limit_of = self._limit_of
        remote = self._remote
        if self._local.get(request.primary, 0) >= limit_of(request.primary):
            return False
        for osd in request.targets:
            if remote.get(osd, 0) >= limit_of(osd):
                return False
        return True

    def reserve(self, request: Request) -> None:
        pg = request.pg
        self._local[request.primary] = self._local.get(request.primary, 0) + 1
        for osd in request.targets:
            self._remote[osd] = self._remote.get(osd, 0) + 1
        for transfer in pg.transfers.values():
            to_come = transfer.total - transfer.accounted.total
            self._incoming[transfer.target] = self._incoming.get(transfer.target, 0.0) + to_come

    def is_above_full(self, pg: Pg) -> bool:
        """Returns True if an acting OSD or a target is above the full ratio, which stops recovery.
        """
        full = self._cluster.map.ratio("full_ratio")
        osds = {osd for osd in self._cluster.map.acting(pg.pgid) if osd != NONE} | pg.targets()
        return any(self._cluster.usage[osd].utilization > full for osd in osds
                   if osd in self._cluster.usage)

    def too_full(self, pg: Pg, runs: bool) -> bool:
        """Returns True if a target refuses; for a running PG only what the target holds now counts.
        """
        ratio = self._cluster.map.ratio("backfillfull_ratio")
        for transfer in pg.transfers.values():
            usage = self._cluster.usage[transfer.target]
            coming = 0.0
            if not runs:
                coming = (transfer.total - transfer.accounted.total
                          + self._incoming.get(transfer.target, 0.0))
            if usage.used + coming > ratio * usage.total:
                return True
        return False


#: Seconds between a new up set and its pg_temp entry. The same between the end of a backfill and
#: the epoch that removes the entry.
PEERING_SECONDS = 1.0

#: Bytes per second that an OSD can read and write together for backfill, by device class.
BYTES_PER_SECOND: Dict[str, float] = {"hdd": 100e6, "ssd": 300e6, "nvme": 600e6}


class Backfill:
    """Moves shards between the OSDs of a Cluster.

    PGs get their slots as in reservations.py; `max_backfills` gives the slots of an OSD. An OSD
    shares its bytes per second evenly among the transfers that read from or write to it. All shards
    of a PG are copied at the rate of the slowest. Ceph sends an object to all targets of its PG
    that lack it before the next one (PrimaryLogPG::recover_backfill). Seen on 16.2.15: while one of
    two targets is stopped, the other gets nothing.
    """

    def __init__(self, cluster: Cluster, max_backfills: Callable[[int], int]) -> None:
        self.cluster = cluster
        self.max_backfills = max_backfills
        self.bytes_per_second = dict(BYTES_PER_SECOND)
        #: OSD → bytes per second, for OSDs that differ from their class.
        self.own_rates: Dict[int, float] = {}
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
        """Returns the PGs with unfinished transfers."""
        return list(self._moving.values())

    def idle(self) -> bool:
        """Returns True if no shard is being copied, none can start, and no PG peers."""
        return not self.cluster.peering and self.next_completion() is None

    def next_peered(self) -> Optional[float]:
        """Returns the moment at which the next PG has peered."""
        return min((peering.due for peering in self.cluster.peering.values()), default=None)

    def pop_peered(self) -> Dict[str, Optional[Mapping]]:
        """Removes the PGs that have peered by now; the pg_temp entry that each asks for."""
        now = self.cluster.clock.now
        peering = self.cluster.peering
        for pgid in [pgid for pgid, entry in peering.items() if entry.due == math.inf]:
            pg, (_, _, temp, last) = self.cluster.pgs[pgid], peering[pgid]
            if not any(map(self.cluster.withholds, pg.withheld_by)):
                before = self.cluster.members(pg)
                pg.withheld_by = frozenset()   # a withheld PG goes on without an epoch
                update_num_pgs(self.cluster, before, self.cluster.members(pg))
                peering[pgid] = Peering(now, now + self.peering_seconds, temp, last)
        due = [pgid for pgid, entry in peering.items() if entry.due <= now]
        if any(pgid in self._moving for pgid in due):
            self._plan_is_stale = True
        elif due:
            self._replan_unless_space()
        wanted: Dict[str, Optional[Mapping]] = {}
        for pgid in sorted(due, key=pg_order):
            wanted[pgid] = peering.pop(pgid).temp
            self._requests.pop(pgid, None)
            pg = self.cluster.pgs[pgid]
            pg.creating = pg.creating and not pg.holders()
        return wanted

    def report(self, pgids: Iterable[str]) -> None:
        """Makes PGs report their state to the mgr, which they do once they have peered."""
        for pgid in pgids:
            pg = self.cluster.pgs.get(pgid)
            if pg is not None and not pg.creating:
                pg.reported_epoch = self.cluster.map.epoch
                pg_reports.refresh(self.cluster, pg)
                peering.record_interval(self.cluster, pg)
                operations.note_peered(self.cluster, pg)

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
        if pg.creating and not pg.holders():   # its rule has perhaps reached no OSD so far
            pg.held = self.cluster.map.up.get(pg.pgid, ())
            update_num_pgs(self.cluster, set(), self.cluster.members(pg))
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
        """Makes a plan again, because slots or rates have perhaps changed."""
        self._plan_is_stale = True

    def _replan_unless_space(self) -> None:
        """Makes a plan again if targets can fill up: with the same slots nothing else changes it.
        """
        if not self._targets_have_space:
            self._plan_is_stale = True

    def _peer(self, pg: Pg, last: str) -> None:
        cluster = self.cluster
        since = cluster.clock.now
        temp = peering.wanted_temp(cluster, pg)
        self._requests.pop(pg.pgid, None)
        if cluster.map.up_primary(pg.pgid) in pg.withheld_by:   # and nobody reports it
            since = math.inf
        cluster.peering[pg.pgid] = Peering(since, since + self.peering_seconds, temp, last)
        pg_reports.refresh(cluster, pg)

    # -- the copying --------------------------------------------------------------------------

    def next_completion(self) -> Optional[float]:
        """Returns seconds until the next shard is complete, or as far as others of its PG; None if
        none is being copied.
        """
        if self._plan_is_stale:
            self._plan()
        return min((max(0.0, transfer.to_go) / transfer.rate for transfer in self._active
                    if transfer.rate > 0), default=None)

    def next_retry(self) -> Optional[float]:
        """Returns the moment at which the next target that was too full is asked again."""
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
            complete = complete or transfer.to_go <= DONE_BYTES
        if complete:
            self._plan_is_stale = True
            self._finish_complete()

    def _finish_complete(self) -> bool:
        """Ends the backfill of every PG whose shards are complete; True if there was one."""
        copying = [pg for pg in self._granted if pg.backfilling and pg.pgid in self._moving]
        complete = [pg for pg in copying if pg.pgid not in self._stopped and _is_complete(pg)]
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
        running: List[Pg] = []
        if "norecover" not in self.cluster.map.flags:
            running = [pg for pg in self._granted if pg.pgid not in self._stopped]
        copied = list(map(_copied_now, running))
        self._active = [transfer for transfers in copied for transfer in transfers]
        load: Dict[int, int] = {}
        for transfer in self._active:
            load[transfer.source] = load.get(transfer.source, 0) + 1
            load[transfer.target] = load.get(transfer.target, 0) + 1
        for transfers in copied:
            rate = min((self._speed(osd) / load[osd] for transfer in transfers
                        for osd in (transfer.source, transfer.target)), default=0.0)
            for transfer in transfers:
                transfer.rate = rate

    def _all_targets_have_space(self) -> bool:
        """Returns True if no target would refuse, for any transfers in any order.
        """
        usage = self.cluster.usage
        ratio = self.cluster.map.ratio("backfillfull_ratio")
        coming: Dict[int, int] = {}
        for pg in self._moving.values():
            for transfer in pg.transfers.values():
                to_come = transfer.total - transfer.accounted.total
                coming[transfer.target] = coming.get(transfer.target, 0) + to_come
        return all(usage[osd].used + more <= ratio * usage[osd].total
                   for osd, more in coming.items())

    def _speed(self, osd: int) -> float:
        if osd in self.own_rates:
            return self.own_rates[osd]
        return self.bytes_per_second.get(self.cluster.crush.classes.get(osd, "hdd"),
                                         self.bytes_per_second["hdd"])

    def _grant(self) -> List[Pg]:
        flags = self.cluster.map.flags
        self._stopped.clear()
        requests: List[Request] = []
        for pg in self._moving.values():
            if pg.pgid in self.cluster.peering or pg.withheld_by:
                pg.backfilling = pg.toofull = False
                continue
            request = self._requests.get(pg.pgid)
            if request is None:
                request = self._requests[pg.pgid] = self._request(pg)
            stopped = "norebalance" in flags and request.priority == 100
            if "nobackfill" in flags and request.priority != 180:
                stopped = True
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


def _is_complete(pg: Pg) -> bool:
    return all(transfer.total - transfer.copied <= DONE_BYTES for transfer in pg.transfers.values())
