"""Carries a batch through: has it chosen (throttle.py), sends it, has it verified (execution.py),
and keeps pending moves, rejections and cooldowns."""
from __future__ import annotations

import logging
from math import inf
from typing import (
    AbstractSet, Any, Callable, ContextManager, Dict, FrozenSet, Iterator, List, Mapping,
    NamedTuple, Optional, Sequence, Tuple)

from ..gateway.cluster_summary import ClusterSummary
from ..gateway.gateway import Gateway, NotReady
from ..plan.model import UNDO, PgChange, moves_nothing, takes_back, topology_of
from ..plan.options import HARD_SHARE
from ..runtime.time_slice import piecewise
from ..runtime.waiting import Backoff
from ..settings import Settings
from ..snapshot.immovable_reasons import NO_STATISTICS
from ..snapshot.model import Snapshot, pg_number, pool_of
from ..snapshot.pg_states import ACTIVATING, ACTIVE, UNKNOWN
from ..snapshot.reason_codes import COOLDOWN, DEGRADED, GIVEN_UP, MISPREDICTED
from .throttle import (
    STEP_SECONDS, Decision, OsdTraffic, ThrottleLimits, ThrottleState, next_batch, osd_traffic)
from .outcomes import (
    Cooldown, DroppedChange, ExcludedPgs, Exclusion, Items, Rejection, excluded_pgs, exclusions_of,
    restored, still_rejected, stored, with_rejected)
from .execution import Execution, ExecutionUpdate, Stall, verify_batch
from .guards import InactivePools, blocked_pools, cluster_guard, full_osds
from .pending_moves import PendingMoves
from .size_check import SizeCorrections, sentence

_SEND_TIMEOUT_SECONDS = 30.0
#: Seconds for which PGs are left alone whose pool was blocked for max_wait.
_BLOCKED_SECONDS = 600.0
_OSDS_A_PIECE, _PGS_A_PIECE = 500, 1000   # compared before it gives way again
#: Osdmaps that are read before a batch where one follows the other.
_MOST_MAPS = 3
#: Of all object copies: by how much more may be misplaced at sending than at the look, as clients
#: write to PGs that move.
_MISPLACED_GROWTH = 0.0001
#: Seconds for which a PG is activating until it counts as withheld: others take a moment. Where the
#: OSD is its new primary nobody reports it at all, which takes longer to tell.
_ACTIVATING_SECONDS, _UNREPORTED_SECONDS = 60.0, 150.0
#: Seconds after which the last report of an OSD does not tell whether its PGs are active.
_OLD_REPORT_SECONDS = 30.0
#: For so long after a failover, upmap items are believed to tell where the data of what the last
#: mgr sent is, even where its PG counts as degraded.
_BELIEVED_SECONDS = 3600.0


class SentBatch(NamedTuple):
    """A batch that was handed over: the map that followed it, and how much the monitor kept.
    All but the map is empty where nothing was handed over, since the batch was out of date."""

    snapshot: Snapshot
    moves: int = 0   # of shards
    bytes: int = 0
    handed_over: Sequence[PgChange] = ()


class UpmapDispatcher:
    """The only sender of upmap items. `rejected` is replaced whole: commands read it."""

    def __init__(self, gateway: Gateway, clock: Callable[[], float], log: logging.Logger) -> None:
        self._gateway = gateway
        self._clock = clock
        self._log = log
        self.pending = PendingMoves()
        self.cooldown = Cooldown()
        self.given_up = Cooldown()   # PGs whose changes have waited too long
        self.made_way = Cooldown()   # PGs taken back before they moved, for steps of pg_num
        self.backoff = Backoff()
        self.rejected: Items = {}
        self.corrections = SizeCorrections()
        #: PG in flight → since when it is seen to activate, in seconds since the epoch
        self._activating: Mapping[str, float] = {}
        #: whether PGs have to be looked at, whatever else is to be done: of what was sent some are
        #: not seen to be active
        self.is_watched = False
        #: PGs with upmap items that this mgr has not seen active yet; None before the first look
        self._unseen: Optional[FrozenSet[str]] = None
        #: PG that the last mgr has taken back → (when, OSDs of which one has withheld it)
        self._taken_back: Mapping[str, Tuple[float, AbstractSet[int]]] = {}
        self._inactive = InactivePools()
        #: pgid → when the last mgr sent it, and the osdmap's epoch before that; None after a look
        self._recovered: Optional[Mapping[str, Tuple[float, int]]] = None
        self._restored_at = -inf   # seconds since the epoch

    def restore(self, moved: Mapping[str, float], sent: Mapping[str, Tuple[float, int]],
                learnt: Mapping[str, Any],
                taken_back: Mapping[str, Tuple[float, AbstractSet[int]]]) -> None:
        """Takes over from the last mgr: the PGs that it has `moved` lately (pgid → when, the oldest
        first), those of them that it has not sent anything else since (the same, with the epoch of
        the osdmap before), its `to_dict`, and what it has taken back that an OSD
        withheld (pgid → when, where it was to go)."""
        self.is_watched, self._taken_back = bool(sent), taken_back
        self.corrections.restore(learnt)
        self._gateway.measured = self.corrections.bytes_per_object
        self._recovered = sent
        self.cooldown.restore(moved)
        self.pending.sent_before = frozenset(moved)
        # what was sent longer ago is whole by now, or was degraded by something else since
        self._restored_at = self._clock()
        self.rejected = restored(learnt.get("rejected", ()), self._restored_at)
        since = self._restored_at - _BELIEVED_SECONDS
        self._gateway.sent_before = frozenset([pgid for pgid, at in moved.items() if at >= since])

    def to_dict(self) -> Dict[str, Any]:
        """What was measured of sizes, and what the monitor rejected, for the key-value store."""
        return {**self.corrections.to_dict(), "rejected": stored(self.rejected)}

    def observe(self, snapshot: Snapshot) -> None:
        """Brings pending moves, rejections and predictions up to date with a newer snapshot."""
        if self._recovered is not None:
            self.pending.restore_sending(self._recovered, snapshot, self._clock())
            self.pending.restore_log_recovery(snapshot)
            self._recovered = None
        if self._clock() - self._restored_at > _BELIEVED_SECONDS:
            self._gateway.sent_before = frozenset()
        self.pending.remove_arrived(snapshot)
        newest = max([pg.reported_epoch for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE)],
                     default=0) if self.pending.entries else 0
        waiting = [pg for pg in snapshot.in_flight().values() if ACTIVATING in pg.state
                   or self.pending.is_unreported(pg, newest)]
        self._unseen = frozenset([
            pgid for pgid in piecewise(
                snapshot.upmap_items if self._unseen is None else self._unseen, _PGS_A_PIECE)
            if pgid in snapshot.pgs and ACTIVE not in snapshot.pgs[pgid].state])
        # nobody has reported it to this mgr, though its OSDs report, and an item leads to its
        # primary. One that activates with all its OSDs in the acting set may have arrived: it stays
        waiting += [pg for pg in (snapshot.pgs[pgid] for pgid in sorted(self._unseen))
                    if pg.immovable is NO_STATISTICS and pg.acting == pg.up and not pg.is_moving
                    and all(snapshot.osds[osd].has_statistics
                            for osd in pg.up if osd in snapshot.osds)
                    and any(osd in pg.up[:1]
                            for _, osd in snapshot.items_of(pg.pgid))]
        self.is_watched = bool(waiting) or any(
            UNKNOWN in snapshot.pgs[pgid].state for pgid in self._unseen) or any(
            # of what is pending some has not reported since
            pgid in snapshot.pgs and snapshot.pgs[pgid].reported_epoch < entry.epoch
            for pgid, entry in self.pending.entries.items())
        silent, now = self._gateway.silent_osds(_OLD_REPORT_SECONDS), snapshot.taken_at
        self._activating = {pg.pgid: min(self._activating.get(pg.pgid, now), now)
                            for pg in waiting if silent.isdisjoint(pg.acting[:1])}
        for waits in (self.cooldown, self.given_up, self.made_way):
            waits.observe(self._clock(), snapshot.pgs)
        for pgid, (at, osds) in self._taken_back.items():
            self._note_withheld(pgid, osds, snapshot, at)
        self._taken_back = {}
        self.rejected = still_rejected(
            self.rejected, (topology_of(snapshot.crush_version, snapshot.osds),
                            str(self._gateway.max_pg_shards())), snapshot.pgs, self._clock())
        # pools whose shards took more than predicted are stopped; snapshots use what was measured
        findings = self.corrections.observe(snapshot, self.pending.entries)
        self._gateway.measured = self.corrections.bytes_per_object
        for found in findings:
            self._log.warning("%s", sentence(found, snapshot.pools[found.pool].name))

    def withheld(self, snapshot: Snapshot) -> FrozenSet[str]:
        """PGs that an OSD withholds, as it has too many (osd_max_pg_per_osd_hard_ratio by its own
        value): they are inactive until their upmap items are taken back."""
        return frozenset(pgid for pgid, since in self._activating.items()
                         if pgid in snapshot.pgs and snapshot.taken_at - since >= (
                             _ACTIVATING_SECONDS if ACTIVATING in snapshot.pgs[pgid].state
                             else _UNREPORTED_SECONDS))

    def lift_rejections(self) -> None:
        """Has all be tried again, but for OSDs that withheld PGs: these have too many still."""
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
        """Decides what of the execution may go now; changes nothing of it."""
        blocked = blocked_pools(snapshot, self._inactive.observe(snapshot))
        limits = self._limits(snapshot, settings, max_misplaced_ratio)._replace(
            in_flight=self.pending.entries.keys() - execution.unanswered.keys())
        if execution.kind == UNDO:   # who asks for it wants what has just been moved back
            limits = limits._replace(cooling={})
        return next_batch(snapshot, execution.wanted, limits, blocked, self.osd_traffic(snapshot),
                          execution.kind)

    def next_round(self, snapshot: Snapshot, settings: Settings,
                   max_misplaced_ratio: float) -> ThrottleState:
        """What the checks of a batch of which nothing is chosen yet read. Any thread may ask."""
        return ThrottleState(snapshot, self._limits(snapshot, settings, max_misplaced_ratio),
                             blocked_pools(snapshot), self.osd_traffic(snapshot))

    def _limits(self, snapshot: Snapshot, settings: Settings,
                max_misplaced_ratio: float) -> ThrottleLimits:
        now, moved, made_way = self._clock(), self.cooldown.moved, self.made_way.moved
        return ThrottleLimits(
            settings, max_misplaced_ratio,
            snapshot.misplaced_copies + self.pending.uncounted_copies(snapshot),
            dict(self.pending.entries),
            # what has made way since it was sent has not moved
            {pgid: left for pgid, left in self.cooldown.seconds_left(
                now, settings.pg_cooldown).items()
             if made_way.get(pgid, -inf) < moved.get(pgid, inf)},
            self._gateway.max_pg_shards()[1], dict(sorted(
                [pair for item in self.rejected.values() for pair in item.withheld_by],
                reverse=True)), self.made_way.seconds_left(now, STEP_SECONDS))

    def accept(self, execution: Execution, decision: Decision) -> None:
        """Removes the changes that a decision found done or void from the execution."""
        # done after all, though no answer came
        self.cooldown.start([change.pgid for change in decision.done
                             if change.pgid in execution.unanswered], self._clock())
        execution.apply(ExecutionUpdate(done=decision.done, dropped=decision.dropped))
        execution.is_compared = True

    def drop_stopped_pools(self, execution: Execution, snapshot: Snapshot) -> None:
        """Drops changes of pools whose shards have turned out larger than the plan had them, except
        of PGs on OSDs that need room, and a few once the pool is tried again."""
        stopped = self.corrections.stopped
        if execution.is_motionless or not stopped:
            return
        full, now, dropped = full_osds(snapshot), self._clock(), []
        few = {pool: self.corrections.trial_shards(pool, now) for pool in stopped}
        for change in execution.wanted:
            pool = pool_of(change.pgid)
            if pool not in few or pool not in snapshot.pools or not (
                    full.isdisjoint(change.up_before)):
                continue
            if few[pool] < change.shards:
                dropped.append(DroppedChange(
                    change, sentence(stopped[pool], snapshot.pools[pool].name)))
                continue
            few[pool] -= change.shards
        execution.apply(ExecutionUpdate(dropped=dropped))

    def stopped_sentence(self, snapshot: Snapshot) -> str:
        """Why pools are stopped, for people."""
        return "; ".join(sentence(found, snapshot.pools[pool].name)
                         for pool, found in sorted(self.corrections.stopped.items()))

    def drop_stalled(self, execution: Execution, decision: Decision, snapshot: Snapshot,
                     settings: Settings) -> None:
        """Drops the rest of a plan of which nothing could be sent for `max_wait` seconds; automatic
        plans leave these PGs alone for as long, but for those of blocked pools: for some minutes,
        since such a pool may be whole at any time."""
        now = self._clock()
        # which may be longer than max_wait; automatic plans go on without these PGs
        if execution.name and any(why.code == COOLDOWN for _, why in decision.waiting):
            execution.stall = Stall()
        seconds = execution.stall.seconds(now, snapshot.misplaced_copies, decision.holds_up,
                                          settings.sleep_interval)
        if seconds < settings.max_wait:
            return
        waited = f"waited longer than max_wait ({int(settings.max_wait)} s)"
        execution.apply(ExecutionUpdate(dropped=[
            DroppedChange(change, f"{waited}: {deferral.reason}")
            for change, deferral in decision.waiting]))
        earlier = now - max(0.0, settings.max_wait - _BLOCKED_SECONDS)
        for is_blocked, begin in ((False, now), (True, earlier)):
            self.given_up.start([change.pgid for change, why in decision.waiting
                                 if (why.code == DEGRADED) == is_blocked], begin)

    def has_stalled(self, execution: Execution, snapshot: Snapshot, settings: Settings) -> bool:
        """True where a plan has been sent whole and nothing of it has arrived for `max_wait`
        seconds. A PG may stay in backfill_toofull or lack an object for ever, and no other plan
        would be made."""
        # by bytes: of what moves by log recovery Ceph counts nothing as misplaced
        seconds = execution.stall.seconds(self._clock(), self.pending.bytes_to_come(snapshot), True,
                                          settings.sleep_interval)
        return seconds >= settings.max_wait

    def osd_traffic(self, snapshot: Snapshot) -> OsdTraffic:
        """Traffic from and to every OSD, our unseen moves included."""
        return osd_traffic(snapshot, dict(self.pending.entries), self.pending.arrivals,
                           self.corrections.bytes_per_object)

    # -- sending -------------------------------------------------------------------------------

    def send(self, execution: Execution, batch: Sequence[PgChange], before: Snapshot,
             permit: ContextManager[bool], on_submitted: Callable[[], None]) -> Optional[SentBatch]:
        """Sends the batch and reads the map again, which alone tells what came of it.

        What has moved since `before` was read waits for the next round. None where sending was not
        permitted any more: the permit is held while the batch is handed over, not while a monitor
        is waited for. `on_submitted` is called before the answers are waited for, which takes up to
        _SEND_TIMEOUT_SECONDS. Raises NotReady.
        """
        batch = self.still_allowed(batch, before, execution.is_motionless)
        if not batch:
            return SentBatch(before)
        now = self._clock()
        with permit as is_permitted:
            if not is_permitted:
                return None
            # whatever happens from here on, the budget knows of it
            for change in moving(batch, before):
                self.pending.add(change, before, now)
                self.is_watched = True
            handed_over = self._gateway.submit_upmaps(batch)
        try:
            on_submitted()
            answers = self._gateway.collect_replies(handed_over, _SEND_TIMEOUT_SECONDS)
            snapshot = self._gateway.snapshot()
        except NotReady:   # as while a pool is created: what came of the batch shows later
            execution.apply(ExecutionUpdate(unanswered=batch))
            raise
        result = verify_batch(answers, snapshot)
        self._log.info("sent upmaps of %d PGs at epoch %d: %d kept, %d rejected, %d unanswered",
                       len(batch), snapshot.epoch, len(result.sent), len(result.rejected),
                       len(result.unanswered))
        execution.apply(result)
        self._account(execution, moving(batch, before), result, before, snapshot)
        self._start_waits(result, before, snapshot, now)
        return SentBatch(snapshot, result.sent_moves, result.sent_bytes, batch)

    def still_allowed(self, batch: Sequence[PgChange], before: Snapshot,
                      is_motionless: bool) -> Sequence[PgChange]:
        """What of the batch the newest osdmap allows as that of `before` did. Another one may come
        while one is read; where that goes on, a summary has to agree on OSDs and flags."""
        for left in reversed(range(_MOST_MAPS)):
            now = self._gateway.at_newest_map(before)
            batch = self._gateway.without_remapped(batch, before)
            if not is_motionless and (_is_disturbed(before, now) or (
                    self._gateway.misplaced_copies() - before.misplaced_copies
                    > _MISPLACED_GROWTH * before.object_copies)):   # others have moved PGs
                break
            if now is not before:
                alike = {pool for pool in {pool_of(change.pgid) for change in batch}
                         if is_motionless or _is_placed_alike(pool, before, now)}
                batch = [change for change in batch if pool_of(change.pgid) in alike
                         and _is_allowed(change, before, now)]
            if self._gateway.epoch() == now.epoch or left == 0 and _has_same_osds(
                    now, self._gateway.summary(with_map_settings=True)):
                return batch if cluster_guard(
                    now, self._gateway.have_mon_connection(),
                    self._gateway.builtin_balancer_active(), is_motionless) is None else ()
        return ()

    def _account(self, execution: Execution, moved: Sequence[PgChange], result: ExecutionUpdate,
                 before: Snapshot, snapshot: Snapshot) -> None:
        """Brings the pending moves and the rejections in line with a result. `moved`: what of the
        batch moves data; a move that the rest takes back is pending no more."""
        self.pending.confirm(moved, snapshot.epoch)
        wanted = {change.pgid for change in execution.wanted} if result.unanswered else ()
        added = {change.pgid for change in moved}
        for change in result.unanswered:
            if change.pgid in added and change.pgid not in wanted:  # given up
                self.pending.entries.pop(change.pgid, None)
        for change in result.sent:
            pg = before.pgs[change.pgid]
            if takes_back(pg, change.up_after, before.is_positional(pg)):
                self.pending.entries.pop(change.pgid, None)
        for dropped in result.rejected:
            if dropped.change.pgid in added and _is_as_before(
                    dropped.change.pgid, before, snapshot):
                self.pending.entries.pop(dropped.change.pgid, None)
            self._log.warning("pg %s stays where it is: %s", dropped.change.pgid, dropped.reason)
        kept = {change.pgid for change in result.sent}
        self.rejected = with_rejected(
            {pgid: item for pgid, item in self.rejected.items()
             if pgid not in kept or item.withheld_by},
            result.rejected, topology_of(snapshot.crush_version, snapshot.osds), self._clock())
        for change in [one for one in result.sent if one.pgid in self.withheld(before)]:
            self._note_withheld(
                change.pgid, change.lost_by.difference(before.pgs[change.pgid].holders), before,
                self._clock())

    def _note_withheld(self, pgid: str, osds: AbstractSet[int], snapshot: Snapshot,
                       at: float) -> None:
        """The OSDs that a PG was to go to, of which one has withheld it, get no other before they
        have fewer than HARD_SHARE of what they have, until the option is another by which they go,
        or for WITHHELD_SECONDS of outcomes.py."""
        has = {osd: snapshot.osds[osd].pg_shards or sum(
            [osd in pg.up for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE)])
               for osd in sorted(osds) if osd in snapshot.osds}
        earlier = self.rejected[pgid].withheld_by if pgid in self.rejected else ()
        self.rejected = {**self.rejected, pgid: Rejection(
            " or ".join(f"osd.{osd}, which has {count} PGs," for osd, count in has.items())
            + " did not let it become active, and it was taken back",
            str(self._gateway.max_pg_shards()), at, withheld_by=(
                *earlier, *((osd, int(HARD_SHARE * count)) for osd, count in has.items())))}

    def _start_waits(self, result: ExecutionUpdate, before: Snapshot, snapshot: Snapshot,
                     sent_at: float) -> None:
        """Starts the cooldown of what was moved, and the backoff where nothing was."""
        moved = moving(result.sent, before)
        self.corrections.expect(moved, before)
        self.cooldown.start([change.pgid for change in moved]
                            + [dropped.change.pgid for dropped in result.rejected
                               if not _is_as_before(dropped.change.pgid, before, snapshot)],
                            sent_at)
        if result.sent:
            self.backoff.succeeded()
        # a single rejection is the PG's, a whole batch of them the monitor's, unless it drops
        # upmaps since OSDs have changed meanwhile
        elif topology_of(before.crush_version, before.osds) == topology_of(
                snapshot.crush_version, snapshot.osds):
            self.backoff.failed(self._clock())


def moving(batch: Sequence[PgChange], before: Snapshot) -> List[PgChange]:
    """The changes that copy shards, with the PGs as they were in `before`."""
    return [change for change in batch for pg in (before.pgs[change.pgid],)
            if not moves_nothing(pg, change.up_after, before.is_positional(pg))]


def _is_as_before(pgid: str, before: Snapshot, now: Snapshot) -> bool:
    """True where nothing has come of a change; else some of its shards may move."""
    return before.items_of(pgid) == now.items_of(pgid)


def _is_disturbed(before: Snapshot, now: Snapshot) -> bool:
    """True where what binds all that moves is another: limits of fullness were lowered, an OSD has
    gone down, whose PGs are degraded, or a pool was made, changed or deleted: its PGs peer, and
    the misplaced limit is of the copies that are left."""
    return (now.nearfull_ratio < before.nearfull_ratio
            or now.backfillfull_ratio < before.backfillfull_ratio
            or now.full_ratio < before.full_ratio
            or any(osd.up and not (number in now.osds and now.osds[number].up)
                   for number, osd in before.osds.items())
            or {number: pool.shape for number, pool in before.pools.items()}
            != {number: pool.shape for number, pool in now.pools.items()})


def _is_allowed(change: PgChange, before: Snapshot, now: Snapshot) -> bool:
    """True where the change's pool and OSDs are what they were, no step of pg_num is to touch its
    PG, and CRUSH still allows it."""
    number, ps = pool_of(change.pgid), pg_number(change.pgid)
    then, pool = before.pools[number], now.pools.get(number)
    if pool is None or pool.shape != then.shape or ps >= pool.pg_num or (
            ps in pool.touched and ps not in then.touched):
        return False
    if any(_state(before, osd) is None or _state(before, osd) != _state(now, osd)
           for osd in change.up_after):
        return False
    if pool.rule is None or then.rule is None or now.crush is before.crush:
        return True
    old, new = then.rule.osds(), pool.rule.osds()
    return all(old.get(osd) == new.get(osd) for osd in change.up_after) and not (
        pool.rule.refusal(change.up_after))


def _is_placed_alike(number: int, before: Snapshot, now: Snapshot) -> bool:
    """False where CRUSH places a pool's PGs by other weights: it may just have sent others of them
    to the same targets."""
    then, pool = before.pools[number], now.pools.get(number)
    if pool is None or pool.rule is None or then.rule is None:
        return True   # by what is asked of each change
    old = then.rule.osds()
    return old == pool.rule.osds() and all(
        _state(before, osd) == _state(now, osd) for osd in piecewise(old, _OSDS_A_PIECE))


def _state(snapshot: Snapshot, number: int) -> Optional[Tuple[bool, bool, float]]:
    osd = snapshot.osds.get(number)
    return None if osd is None else (osd.up, osd.is_in, osd.reweight)


def _has_same_osds(snapshot: Snapshot, summary: ClusterSummary) -> bool:
    """True where no OSD is up, in or weighted otherwise by a newer map, which has no more flags."""
    return summary.flags is not None and summary.flags.issubset(snapshot.flags) and all(
        _state(snapshot, number) == (osd.up, osd.is_in, osd.reweight)
        for number, osd in summary.osds.items())
