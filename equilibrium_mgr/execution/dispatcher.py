"""Sends batches: batch.py chooses a batch, and execution.py compares it with the osdmap.

Keeps the pending moves, rejections and cooldowns that follow.
"""
from __future__ import annotations

import logging
from math import inf
from typing import (
    AbstractSet, Any, Callable, Container, ContextManager, Dict, FrozenSet, Iterable, Iterator,
    List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..plan.model import MOTIONLESS, STEER, UNDO, PgChange, moves_nothing, takes_back, topology_of
from ..plan.options import HARD_SHARE
from ..runtime.time_slice import piecewise
from ..runtime.waiting import Backoff
from ..settings import Settings
from ..snapshot.immovable_reasons import NO_STATISTICS
from ..snapshot.model import Pg, Snapshot, pg_number, pool_of
from ..snapshot.pg_states import ACTIVATING, ACTIVE, UNKNOWN
from ..snapshot.reason_codes import COOLDOWN, DEGRADED, GIVEN_UP, MISPREDICTED
from .batch import Decision, next_batch
from .pg_num_steps import STEP_SECONDS
from .round_state import ThrottleLimits, ThrottleState
from .traffic import OsdTraffic, osd_traffic
from .outcomes import (
    Cooldown, DroppedChange, ExcludedPgs, Exclusion, Items, Rejection, excluded_pgs, exclusions_of,
    restored, still_rejected, stored, with_rejected)
from .execution import Execution, ExecutionUpdate, Stall, verify_batch
from .guards import InactivePools, blocked_pools, cluster_guard, full_osds
from .pending_moves import PendingMoves, SentMove
from .size_check import SizeCorrections, sentence

_SEND_TIMEOUT_SECONDS = 30.0
#: PGs whose pool was blocked for max_wait are left alone for so many seconds at most.
_BLOCKED_SECONDS = 600.0
_OSDS_A_PIECE, _PGS_A_PIECE = 500, 1000   # between two calls of `give_way`
#: The most osdmaps that are read before a batch, if new ones keep coming.
_MOST_MAPS = 3
#: Ratio of all object copies: so many more may be misplaced at sending than in the snapshot,
#: because clients write to PGs that move.
_MISPLACED_GROWTH = 0.0001
#: A PG that has been activating for so many seconds counts as withheld: others take a moment. If
#: its new primary withholds it, nobody reports the PG, which takes longer to find out.
_ACTIVATING_SECONDS = 60.0
_UNREPORTED_SECONDS = 150.0
#: Seconds after which the last report of an OSD does not show whether its PGs are active.
_OLD_REPORT_SECONDS = 30.0
#: For so many seconds after a failover, upmap items show where the data of PGs is that the last mgr
#: has moved, even of degraded ones.
_BELIEVED_SECONDS = 3600.0


class SentBatch(NamedTuple):
    """A batch that was handed over: the snapshot after it, and how much the monitor kept.

    All but the snapshot is empty if nothing was handed over because the batch was out of date.
    """

    snapshot: Snapshot
    moves: int = 0   # of shards
    bytes: int = 0
    handed_over: Sequence[PgChange] = ()


class SentBefore(NamedTuple):
    """Changes that the last mgr has sent lately, by pgid. Times are seconds since the epoch."""

    moved: Dict[str, float]      # when it was moved last, the oldest first
    in_flight: Dict[str, SentMove]   # its last change, if that moves data
    made_way: Dict[str, float]   # when a move was cancelled for steps of pg_num
    #: when a move was cancelled because an OSD withheld the PG, and its target OSDs
    withheld: Dict[str, Tuple[float, AbstractSet[int]]]
    steered: Dict[str, float]    # when its last change chose targets of shards that moved anyway


class UpmapDispatcher:
    """Sends all upmap items of the module. `rejected` is replaced whole, because commands read
    it."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._clock = clock
        self._log = log
        self.pending = PendingMoves()
        self.cooldown = Cooldown()
        self.given_up = Cooldown()   # PGs whose changes have waited too long
        self.made_way = Cooldown()   # PGs whose move was cancelled for steps of pg_num
        self.steered = Cooldown()    # PGs in flight whose targets were chosen as they moved anyway
        self.backoff = Backoff()
        self.rejected: Items = {}
        self.corrections = SizeCorrections()
        #: PG in flight → since when it is seen to activate, in seconds since the epoch
        self._activating: Mapping[str, float] = {}
        #: True if the next round must read PGs: some that were sent are not seen to be active
        self.is_watched = False
        #: PGs with upmap items that this mgr has not seen active yet; None before a snapshot
        self._unseen: Optional[FrozenSet[str]] = None
        self._inactive = InactivePools()
        self._sent_before = SentBefore({}, {}, {}, {}, {})
        self._restored_at = -inf            # seconds since the epoch

    def restore(self, sent: SentBefore, learnt: Mapping[str, Any]) -> None:
        """Takes over from the last mgr. `sent`: by the log of changes. `learnt`: its `to_dict`."""
        now = self._clock()
        gateway = self._gateway
        corrections = self.corrections
        self._sent_before = sent
        self._restored_at = now
        corrections.restore(learnt)
        gateway.measured = corrections.bytes_per_object
        self.cooldown.moved = sent.moved
        self.made_way.moved = sent.made_way
        self.rejected = restored(learnt.get("rejected", ()), now)
        # a PG that was moved longer ago is whole by now, or something else has degraded it since
        since = now - _BELIEVED_SECONDS
        # nor do the items of a steered PG tell where its data was: an OSD was lost before
        gateway.sent_before = {
            pgid: items for pgid, (at, _, items) in sent.in_flight.items()
            if at >= since and pgid not in sent.steered}

    def to_dict(self) -> Dict[str, Any]:
        """Returns measured sizes and rejections, for the key-value store."""
        return {**self.corrections.to_dict(), "rejected": stored(self.rejected)}

    def observe(self, snapshot: Snapshot) -> None:
        """Brings pending moves, rejections and predictions up to date with a newer snapshot."""
        now = self._clock()
        pending = self.pending
        gateway = self._gateway
        corrections = self.corrections
        if self._unseen is None:   # the first snapshot of this mgr
            last = self._sent_before
            self.steered.moved = last.steered
            pending.restore_sending(last.in_flight, snapshot, now)
            # what Ceph rebuilds elsewhere by our choice is no move of ours
            pending.restore_log_recovery(snapshot, last.moved.keys() - last.steered.keys())
            for pgid, (at, osds) in last.withheld.items():
                self._note_withheld(pgid, osds, snapshot, at)
        if now - self._restored_at > _BELIEVED_SECONDS:
            gateway.sent_before = {}
        pending.remove_arrived(snapshot)
        self._observe_activity(snapshot)
        for waits in (self.cooldown, self.given_up, self.made_way):
            waits.observe(now, snapshot.pgs)
        self.steered.observe(now, snapshot.in_flight())
        marks = (topology_of(snapshot.crush_version, snapshot.osds),
                 str(gateway.max_pg_shards()))
        self.rejected = still_rejected(self.rejected, marks, snapshot.pgs, now)
        # stops pools whose shards took more than predicted; snapshots use the measured sizes
        findings = corrections.observe(snapshot, pending.entries)
        gateway.measured = corrections.bytes_per_object
        for found in findings:
            self._log.warning("%s", sentence(found, snapshot.pools[found.pool].name))

    def _observe_activity(self, snapshot: Snapshot) -> None:
        """Notes since when PGs that were sent, or that move, are not seen to be active."""
        entries = self.pending.entries
        pgs = snapshot.pgs
        now = snapshot.taken_at
        before = snapshot.upmap_items if self._unseen is None else self._unseen
        unseen = frozenset([pgid for pgid in piecewise(before, _PGS_A_PIECE)
                            if pgid in pgs and ACTIVE not in pgs[pgid].state])
        self._unseen = unseen
        newest = 0
        if entries:
            newest = max([pg.reported_epoch for pg in piecewise(pgs.values(), _PGS_A_PIECE)],
                         default=0)
        waiting = [pg for pg in snapshot.in_flight().values()
                   if ACTIVATING in pg.state or self.pending.is_unreported(pg, newest)]
        waiting += [pgs[pgid] for pgid in unseen if _is_unheard_of(pgs[pgid], snapshot)]
        unknown = [pgid for pgid in unseen if UNKNOWN in pgs[pgid].state]
        # some PGs have not reported since they were sent
        unreported = [pgid for pgid, entry in entries.items()
                      if pgid in pgs and pgs[pgid].reported_epoch < entry.epoch]
        self.is_watched = bool(waiting or unknown or unreported)
        silent = self._gateway.silent_osds(_OLD_REPORT_SECONDS)
        self._activating = {pg.pgid: min(self._activating.get(pg.pgid, now), now)
                            for pg in waiting if silent.isdisjoint(pg.acting[:1])}

    def withheld(self, snapshot: Snapshot) -> FrozenSet[str]:
        """Returns the PGs that an OSD seems to withhold. It has too many PGs by its own value of
        osd_max_pg_per_osd_hard_ratio. They stay inactive while it is in their up set."""
        found = set()
        for pgid, since in self._activating.items():
            pg = snapshot.pgs.get(pgid)
            if pg is None:
                continue
            is_activating = ACTIVATING in pg.state
            least = _ACTIVATING_SECONDS if is_activating else _UNREPORTED_SECONDS
            if snapshot.taken_at - since >= least:
                found.add(pgid)
        return frozenset(found)

    def lift_rejections(self) -> None:
        """Clears all rejections except those of OSDs that withheld a PG: they still have too many
        PGs."""
        self.rejected = {
            pgid: item for pgid, item in self.rejected.items() if item.withheld_by}

    # -- choosing ------------------------------------------------------------------------------

    def excluded(self, snapshot: Snapshot, settings: Settings) -> ExcludedPgs:
        """Returns the PGs that an automatic plan must leave alone. Any thread may ask."""
        return excluded_pgs(snapshot, full_osds(snapshot), self._exclusions(snapshot, settings),
                            self._clock())

    def _exclusions(self, snapshot: Snapshot, settings: Settings) -> Iterator[Exclusion]:
        for pgid, at in self.cooldown.moved.items():
            yield Exclusion(COOLDOWN, pgid, at, settings.pg_cooldown)
        for pgid, at in self.given_up.moved.items():
            yield Exclusion(GIVEN_UP, pgid, at, settings.max_wait)
        stopped = self.corrections.stopped
        for pg in snapshot.pgs.values() if stopped else ():
            if pg.pool in stopped:
                found = stopped[pg.pool]
                yield Exclusion(MISPREDICTED, pg.pgid, found.found_at, found.seconds)
        yield from exclusions_of(self.rejected)

    def choose(self, execution: Execution, snapshot: Snapshot, settings: Settings,
               max_misplaced_ratio: float) -> Decision:
        """Decides which changes of the execution may go now. Does not change the execution."""
        blocked = blocked_pools(snapshot, self._inactive.observe(snapshot))
        limits = self._limits(snapshot, settings, max_misplaced_ratio, execution.unanswered)
        if execution.kind == UNDO:   # it is for PGs that were moved a moment ago
            limits = limits._replace(cooling={})
        return next_batch(snapshot, execution.wanted, limits, blocked, self.osd_traffic(snapshot),
                          execution.kind)

    def next_round(self, snapshot: Snapshot, settings: Settings,
                   max_misplaced_ratio: float) -> ThrottleState:
        """Returns the state of the throttle before the first change of a batch. Any thread may
        ask."""
        return ThrottleState(snapshot, self._limits(snapshot, settings, max_misplaced_ratio),
                             blocked_pools(snapshot), self.osd_traffic(snapshot))

    def _limits(self, snapshot: Snapshot, settings: Settings, max_misplaced_ratio: float,
                unanswered: Iterable[str] = ()) -> ThrottleLimits:
        now = self._clock()
        moved = self.cooldown.moved
        made_way = self.made_way.moved
        cooling = self.cooldown.seconds_left(now, settings.pg_cooldown)
        for pgid in made_way.keys() & cooling.keys():
            # a move that was cancelled for a pg_num change has copied no data
            if made_way[pgid] >= moved.get(pgid, inf):
                del cooling[pgid]
        withheld_at: List[Tuple[int, int]] = []
        for item in self.rejected.values():
            withheld_at += item.withheld_by
        misplaced = snapshot.misplaced_copies + self.pending.uncounted_copies(snapshot)
        in_flight = self.pending.entries.keys() - unanswered
        return ThrottleLimits(
            settings, max_misplaced_ratio, misplaced, in_flight, cooling,
            self._gateway.max_pg_shards()[1], dict(sorted(withheld_at, reverse=True)),
            self.made_way.seconds_left(now, STEP_SECONDS))

    def accept(self, execution: Execution, decision: Decision) -> None:
        """Takes the changes that are done or dropped by the decision off the execution."""
        # the monitor has kept them although no answer came
        self.cooldown.start([change.pgid for change in decision.done
                             if change.pgid in execution.unanswered], self._clock())
        execution.apply(ExecutionUpdate(done=decision.done, dropped=decision.dropped))
        execution.is_compared = True

    def drop_stopped_pools(self, execution: Execution, snapshot: Snapshot) -> None:
        """Drops changes of pools whose shards have turned out larger than the plan predicted.

        Keeps those of PGs on OSDs that need space, and a few when the pool is tried again.
        """
        stopped = self.corrections.stopped
        if execution.is_motionless or not stopped:
            return
        full = full_osds(snapshot)
        now = self._clock()
        dropped = []
        few = {pool: self.corrections.trial_shards(pool, now) for pool in stopped}
        for change in execution.wanted:
            pool = pool_of(change.pgid)
            if pool not in few or pool not in snapshot.pools:
                continue
            if not full.isdisjoint(change.up_before):
                continue
            if few[pool] < change.shards:
                reason = sentence(stopped[pool], snapshot.pools[pool].name)
                dropped.append(DroppedChange(change, reason))
                continue
            few[pool] -= change.shards
        execution.apply(ExecutionUpdate(dropped=dropped))

    def stopped_sentence(self, snapshot: Snapshot) -> str:
        """Returns why pools are stopped, for people."""
        return "; ".join([sentence(found, snapshot.pools[pool].name)
                          for pool, found in sorted(self.corrections.stopped.items())])

    def drop_stalled(self, execution: Execution, decision: Decision, snapshot: Snapshot,
                     settings: Settings, rebuilding: Container[int]) -> None:
        """Drops the rest of a plan if nothing of it could be sent for `max_wait` seconds.

        Automatic plans leave these PGs alone for as long, and PGs of blocked pools for some
        minutes: such a pool may be whole at any time. `rebuilding`: pools that wait for
        a rebuild; the next plan may move their PGs again at once.
        """
        now = self._clock()
        # a cooldown may be longer than max_wait; automatic plans go on without these PGs
        if execution.name and COOLDOWN in [why.code for _, why in decision.waiting]:
            execution.stall = Stall()
        seconds = execution.stall.observe(now, snapshot.misplaced_copies, decision.holds_up,
                                          settings.sleep_interval)
        if seconds < settings.max_wait:
            return
        waited = f"waited longer than max_wait ({int(settings.max_wait)} s)"
        dropped: List[DroppedChange] = []
        blocked: List[str] = []
        others: List[str] = []
        for change, why in decision.waiting:
            dropped.append(DroppedChange(change, f"{waited}: {why.reason}"))
            if why.code != DEGRADED:
                others.append(change.pgid)
            elif pool_of(change.pgid) not in rebuilding:
                blocked.append(change.pgid)
        execution.apply(ExecutionUpdate(dropped=dropped))
        self.given_up.start(others, now)
        self.given_up.start(blocked, now - max(0.0, settings.max_wait - _BLOCKED_SECONDS))
        execution.waits_for_rebuild = not (blocked or others)

    def has_stalled(self, execution: Execution, snapshot: Snapshot, settings: Settings) -> bool:
        """Returns True if nothing of a plan that was sent completely has arrived for `max_wait`
        seconds. A PG may stay in backfill_toofull or lack an object for ever, and then no other
        plan would be made."""
        # by bytes: Ceph counts no copy as misplaced that moves by log recovery
        seconds = execution.stall.observe(self._clock(), self.pending.bytes_to_come(snapshot), True,
                                          settings.sleep_interval)
        return seconds >= settings.max_wait

    def osd_traffic(self, snapshot: Snapshot) -> OsdTraffic:
        """Returns the traffic from and to every OSD, including our unseen moves."""
        return osd_traffic(snapshot, dict(self.pending.entries), self.pending.arrivals,
                           self.corrections.bytes_per_object)

    # -- sending -------------------------------------------------------------------------------

    def send(self, execution: Execution, batch: Sequence[PgChange], before: Snapshot,
             permit: ContextManager[bool], on_submitted: Callable[[], None]) -> Optional[SentBatch]:
        """Sends the batch and reads the osdmap again, which alone shows what the monitor kept.

        PGs that have moved since `before` wait for the next round. Returns None if sending is not
        permitted any more. The permit is held while the batch is handed over. `on_submitted` is
        called before the wait for answers, which takes up to _SEND_TIMEOUT_SECONDS. Raises
        NotReady.
        """
        batch = self.still_allowed(execution, batch, before)
        if not batch:
            return SentBatch(before)
        now = self._clock()
        moved = moving(execution.kind, batch, before)
        with permit as is_permitted:
            if not is_permitted:
                return None
            # counted before they are sent, so that the throttle counts them even if that fails
            for change in moved:
                self.pending.add(change, before, now)
            if execution.kind == STEER:
                self.steered.start([change.pgid for change in batch], now)
            if moved or execution.kind == STEER:
                self.is_watched = True
            handed_over = self._gateway.submit_upmaps(batch)
        try:
            on_submitted()
            answers = self._gateway.collect_replies(handed_over, _SEND_TIMEOUT_SECONDS)
            snapshot = self._gateway.snapshot()
        except NotReady:   # as while a pool is created: a later snapshot shows the batch
            execution.apply(ExecutionUpdate(unanswered=batch))
            raise
        result = verify_batch(answers, snapshot)
        self._log.info("sent upmaps of %d PGs at epoch %d: %d kept, %d rejected, %d unanswered",
                       len(batch), snapshot.epoch, len(result.sent), len(result.rejected),
                       len(result.unanswered))
        execution.apply(result)
        self._account(execution, moved, result, before, snapshot)
        self._start_waits(execution, result, before, snapshot, now)
        return SentBatch(snapshot, result.sent_moves, result.sent_bytes, batch)

    def still_allowed(self, execution: Execution, batch: Sequence[PgChange],
                      before: Snapshot) -> Sequence[PgChange]:
        """Returns the changes of the batch that the newest osdmap still allows.

        Another osdmap may come while one is read. If they keep coming, a summary must agree on OSDs
        and flags.
        """
        gateway = self._gateway
        is_motionless = execution.is_motionless
        for left in reversed(range(_MOST_MAPS)):
            now = gateway.at_newest_map(before)
            batch = gateway.without_remapped(batch, before)
            if not is_motionless and self._is_disturbed(before, now):
                return ()
            if now is not before:
                batch = _allowed(batch, before, now, is_motionless)
            is_newest = gateway.epoch() == now.epoch
            if not is_newest and left == 0:
                summary = gateway.summary(with_map_settings=True)
                is_newest = has_same_states(now, summary) and _has_no_more_flags(now, summary)
            if is_newest:
                guard = cluster_guard(now, gateway.have_mon_connection(),
                                      gateway.builtin_balancer_active(),
                                      execution.is_unguarded)
                return batch if guard is None else ()
        return ()

    def _is_disturbed(self, before: Snapshot, now: Snapshot) -> bool:
        """Returns True if a full ratio is lower, an OSD has gone down, a pool differs, or clearly
        more copies are misplaced."""
        if _are_limits_lower(before, now) or _is_osd_down(before, now):
            return True
        # PGs of a new or changed pool peer, and copies of a deleted one count no more
        shapes = {number: pool.shape for number, pool in before.pools.items()}
        if shapes != {number: pool.shape for number, pool in now.pools.items()}:
            return True
        grown = self._gateway.misplaced_copies() - before.misplaced_copies
        return grown > _MISPLACED_GROWTH * before.object_copies

    def _account(self, execution: Execution, moved: Sequence[PgChange], result: ExecutionUpdate,
                 before: Snapshot, snapshot: Snapshot) -> None:
        """Updates the pending moves and the rejections by a result. `moved`: the changes of the
        batch that move data. A move that another change cancels is not pending any more."""
        now = self._clock()
        entries = self.pending.entries
        self.pending.confirm(moved, snapshot.epoch)
        added = {change.pgid for change in moved}
        if result.unanswered:
            given_up = added.difference([change.pgid for change in execution.wanted])
            for change in result.unanswered:
                if change.pgid in given_up:
                    entries.pop(change.pgid, None)
        for dropped in result.rejected:
            pgid = dropped.change.pgid
            if pgid in added and before.items_of(pgid) == snapshot.items_of(pgid):
                entries.pop(pgid, None)
            self._log.warning("pg %s stays where it is: %s", pgid, dropped.reason)
        kept = {change.pgid for change in result.sent}
        others = {pgid: item for pgid, item in self.rejected.items()
                  if pgid not in kept or item.withheld_by}
        self.rejected = with_rejected(
            others, result.rejected, topology_of(snapshot.crush_version, snapshot.osds), now)
        withheld = self.withheld(before)
        for change in result.sent:
            pg = before.pgs[change.pgid]
            if takes_back(pg, change.up_after, before.is_positional(pg)):
                entries.pop(pg.pgid, None)
            if pg.pgid in withheld:
                self._note_withheld(
                    pg.pgid, change.lost_by.difference(pg.holders), before, now)

    def _note_withheld(self, pgid: str, osds: AbstractSet[int], snapshot: Snapshot,
                       at: float) -> None:
        """Limits the OSDs that perhaps withheld the PG to HARD_SHARE of their current PG count.

        The limit ends after WITHHELD_SECONDS of outcomes.py, or when the PG limit option changes.
        """
        which: List[str] = []
        limits: List[Tuple[int, int]] = []
        if pgid in self.rejected:
            limits += self.rejected[pgid].withheld_by
        for osd in sorted(osds & snapshot.osds.keys()):
            count = snapshot.osds[osd].pg_shards or sum(
                [osd in pg.up for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE)])
            which.append(f"osd.{osd}, which has {count} PGs,")
            limits.append((osd, int(HARD_SHARE * count)))
        reason = f"{' or '.join(which)} did not let it become active, and it was taken back"
        self.rejected = {**self.rejected, pgid: Rejection(
            reason, str(self._gateway.max_pg_shards()), at, withheld_by=tuple(limits))}

    def _start_waits(self, execution: Execution, result: ExecutionUpdate, before: Snapshot,
                     snapshot: Snapshot, sent_at: float) -> None:
        """Starts the cooldown of PGs that move, also of those whose items were kept in part.

        Starts the backoff if nothing was kept and the topology is the same.
        """
        moved = moving(execution.kind, result.sent, before)
        self.corrections.expect(moved, before)
        pgids = [change.pgid for change in moved]
        for dropped in result.rejected:
            pgid = dropped.change.pgid
            if before.items_of(pgid) != snapshot.items_of(pgid):   # some of its shards may move
                pgids.append(pgid)
        self.cooldown.start(pgids, sent_at)
        if result.sent:
            self.backoff.succeeded()
            return
        # a rejection beside kept changes is about its PG; if nothing was kept it is about the
        # monitor, unless that drops upmap items because OSDs have changed
        topology = topology_of(before.crush_version, before.osds)
        if topology == topology_of(snapshot.crush_version, snapshot.osds):
            self.backoff.failed(self._clock())


def moving(kind: str, batch: Sequence[PgChange], before: Snapshot) -> List[PgChange]:
    """Returns the changes of a batch that start a copy which is not under way, by the PGs in
    `before`. `kind`: of the plan."""
    found: List[PgChange] = []
    if kind in MOTIONLESS:
        return found
    for change in batch:
        pg = before.pgs[change.pgid]
        if not moves_nothing(pg, change.up_after, before.is_positional(pg)):
            found.append(change)
    return found


def _is_unheard_of(pg: Pg, snapshot: Snapshot) -> bool:
    """Returns True if nobody has reported the PG to this mgr, although its OSDs report, and the
    target of an upmap item is its primary.

    A PG that has reported does not count: if it activates with all its OSDs, it may have arrived.
    """
    if pg.immovable is not NO_STATISTICS or pg.acting != pg.up or pg.is_moving:
        return False
    for osd in pg.up:
        if osd in snapshot.osds and not snapshot.osds[osd].has_statistics:
            return False
    return not {osd for _, osd in snapshot.items_of(pg.pgid)}.isdisjoint(pg.up[:1])


def _are_limits_lower(before: Snapshot, now: Snapshot) -> bool:
    """Returns True if a full ratio was lowered."""
    if now.nearfull_ratio < before.nearfull_ratio or now.full_ratio < before.full_ratio:
        return True
    return now.backfillfull_ratio < before.backfillfull_ratio


def _is_osd_down(before: Snapshot, now: Snapshot) -> bool:
    """Returns True if an OSD has gone down, whose PGs are degraded then."""
    for number, osd in before.osds.items():
        if osd.up and not (number in now.osds and now.osds[number].up):
            return True
    return False


def _allowed(batch: Sequence[PgChange], before: Snapshot, now: Snapshot,
             is_motionless: bool) -> List[PgChange]:
    """Returns the changes of the batch that a newer osdmap allows."""
    pools = {pool_of(change.pgid) for change in batch}
    if not is_motionless:
        pools = {pool for pool in pools if _is_placed_alike(pool, before, now)}
    return [change for change in batch
            if pool_of(change.pgid) in pools and _is_allowed(change, before, now)]


def _is_allowed(change: PgChange, before: Snapshot, now: Snapshot) -> bool:
    """Returns True if the change's pool and OSDs are unchanged, no step of pg_num will touch its
    PG, and CRUSH still allows it."""
    number = pool_of(change.pgid)
    ps = pg_number(change.pgid)
    then = before.pools[number]
    pool = now.pools.get(number)
    if pool is None or pool.shape != then.shape or ps >= pool.pg_num:
        return False
    if ps in pool.touched and ps not in then.touched:
        return False
    for osd in change.up_after:
        state = _state(before, osd)
        if state is None or state != _state(now, osd):
            return False
    if pool.rule is None or then.rule is None or now.crush is before.crush:
        return True
    old = then.rule.osds()
    new = pool.rule.osds()
    for osd in change.up_after:
        if old.get(osd) != new.get(osd):
            return False
    return not pool.rule.refusal(change.up_after)


def _is_placed_alike(number: int, before: Snapshot, now: Snapshot) -> bool:
    """Returns False if CRUSH maps a pool's PGs by other weights: it may just have sent others of
    them to the same targets."""
    then = before.pools[number]
    pool = now.pools.get(number)
    if pool is None or pool.rule is None or then.rule is None:
        return True   # _is_allowed decides for each change
    old = then.rule.osds()
    if old != pool.rule.osds():
        return False
    for osd in piecewise(old, _OSDS_A_PIECE):
        if _state(before, osd) != _state(now, osd):
            return False
    return True


def _state(snapshot: Snapshot, number: int) -> Optional[Tuple[bool, bool, float]]:
    osd = snapshot.osds.get(number)
    return None if osd is None else (osd.up, osd.is_in, osd.reweight)


def _has_no_more_flags(snapshot: Snapshot, summary: ClusterSummary) -> bool:
    # None: no monitor has told the flags
    return summary.flags is not None and summary.flags.issubset(snapshot.flags)


def has_same_states(snapshot: Snapshot, summary: ClusterSummary) -> bool:
    """Returns True if no OSD of a summary is up, in or weighted differently than in the
    snapshot."""
    for number, osd in summary.osds.items():
        if _state(snapshot, number) != (osd.up, osd.is_in, osd.reweight):
            return False
    return True
