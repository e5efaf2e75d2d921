"""When shards that Ceph copies anyway are given other targets: once the topology has changed and
has then been quiet for a while, and before they begin to arrive. planner/steering.py chooses.

PGs that peer then, or serve no client, are planned again once if they are active later.
"""
from __future__ import annotations

from collections import Counter
from typing import (
    Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple)

from ..execution.execution import Execution
from ..execution.guards import blocked_pools
from ..observation.cluster_view import ClusterView
from ..observation.movements import CRUSH, RECOVERY
from ..plan.model import STEER, Plan, Usage, has_begun
from ..plan.options import Steering
from ..planner.steering import BY_STATE, only_lacks_copies, state_obstacle, steered_shards
from ..runtime.formatting import plural
from ..runtime.time_slice import piecewise
from ..runtime.waiting import WaitTimer, doubled
from ..settings import Settings
from ..snapshot.in_flight import PEERED_SECONDS
from ..snapshot.model import Pg, Snapshot, UpmapItems
from ..snapshot.pg_states import BACKFILL_WAIT
from ..snapshot.upmap_items import apply_items
from ..undo.change_log import ChangeRow
from .cluster_guards import is_limited, is_open

#: A topology must stay the same for so many seconds before shards are steered: an OSD that is out
#: may come back, and several OSDs go out one after the other.
QUIET_SECONDS = 30.0
#: At most, from the first of a series of changes: shards begin to arrive meanwhile.
LONGEST_SECONDS = 45.0
#: Each plan but the first makes these waits twice as long, up to this, until a change comes after
#: so many seconds of rest. PGs whose state did not allow it wait as after a change.
_MOST_SECONDS = 600.0
_REST_SECONDS = 120.0
#: A plan that steers is made and sent in so many seconds.
_OVERDUE_SECONDS = 120.0
_PGS_A_PIECE = 200


class Steered(NamedTuple):
    """What plans of kind STEER have chosen, the last one by its figures; JSON-ready by
    `_asdict`. Shards count while their upmap items are in place."""

    at: float = 0.0           # seconds since the epoch
    elsewhere_shards: int = 0   # that come to other OSDs than CRUSH's
    held_shards: int = 0      # that stay where their data is
    #: of the fullest OSD when all has arrived, a ratio, without the plan; 0 if the last mgr has
    #: chosen
    max_utilization_by_crush: float = 0.0
    skipped: Mapping[str, int] = {}   # why PGs keep their targets → how many shards
    left_alone: Mapping[str, str] = {}   # Plan.left_alone


class SteeringTrigger:
    """Compares the topology from snapshot to snapshot. Times are seconds since the epoch."""

    def __init__(self) -> None:
        #: what was chosen, also by the last mgr; it counts while such PGs are on their way
        self.choice = Steered()
        self._sent: Dict[str, ChangeRow] = {}   # by pgid: the changes that `choice` counts
        self._topology: Any = None
        self._planned: Any = None   # the topology of the last plan
        self._is_changed = False    # and nobody has planned for that yet
        self._quiet = WaitTimer()
        self._series = WaitTimer()
        self._rest = WaitTimer()
        self._plan_count = 0   # since the first change after a rest
        self._due_at = 0.0     # seconds since the epoch, 0: not known
        #: PGs that the plan for the last change left alone for a state that passes
        self._left: FrozenSet[str] = frozenset()
        self._ready: FrozenSet[str] = frozenset()   # of these, PGs whose state allows it now
        self._asked: FrozenSet[str] = frozenset()   # the same as the last plan was asked for them
        self._steered: FrozenSet[str] = frozenset()   # pgids whose targets were chosen
        #: the options of the last plan: steer_recovery, hold_placement
        self._options = (False, False)
        #: OSD → uuid of its disk, of OSDs that have been up and in
        self._disks: Dict[int, str] = {}
        self._present: Mapping[int, str] = {}   # the same, of those up and in at the last snapshot
        self._back_at: Dict[int, float] = {}    # when OSDs have come back with their disk
        #: (OSD that has come back, PG on its way to it since): the OSD may have data of the PG
        self._returned: FrozenSet[Tuple[int, str]] = frozenset()
        #: of the last snapshot: pgids in flight, and upmap items
        self._moving: FrozenSet[str] = frozenset()
        self._items: Mapping[str, UpmapItems] = {}
        #: the same of the last one before the change
        self._moved_before: FrozenSet[str] = frozenset()
        self._items_before: Mapping[str, UpmapItems] = {}

    def observe(self, snapshot: Snapshot, topology: Any, now: float) -> None:
        """Notes whether the topology has changed, and which PGs moved before."""
        in_flight = snapshot.in_flight()
        moving = frozenset(in_flight)
        self._steered &= moving
        self._count(snapshot)
        self._note_returned(snapshot, in_flight, now)
        if self._topology is None:   # a new mgr: perhaps the last one has not steered a rebuild
            if any(only_lacks_copies(pg, snapshot.pools[pg.pool])
                   for pg in piecewise(in_flight.values(), _PGS_A_PIECE)):
                self._begin_change(moving, {}, now)   # nobody knows what moved before it
        elif topology != self._topology:
            self._begin_change(self._moving - self._steered, self._items, now)
        self._topology = topology
        self._note_ready(in_flight, now)
        self._moving = moving
        self._items = snapshot.upmap_items

    def note_sent(self, rows: Sequence[ChangeRow], snapshot: Snapshot) -> None:
        """Notes changes of a plan of kind STEER that were sent. `snapshot`: after that."""
        self._sent.update({row.pgid: row for row in rows})
        self._count(snapshot)

    def restore(self, logged: Sequence[ChangeRow]) -> None:
        """Takes over from the last mgr. `logged`: what it has sent, the oldest first."""
        for row in logged:
            if row.kind == STEER and row.begun_at == logged[-1].begun_at:
                self._sent[row.pgid] = row
                self.choice = Steered(row.at)
        self._steered = frozenset(self._sent)

    def _count(self, snapshot: Snapshot) -> None:
        """Counts the shards whose upmap items are in place."""
        held = elsewhere = 0
        for row in self._sent.values():
            new = [target for _, target in set(row.after).difference(row.before)]
            if set(row.after).issubset(snapshot.items_of(row.pgid)):
                held += len(row.held)
                elsewhere += len(set(new).difference(row.held))
        self.choice = self.choice._replace(elsewhere_shards=elsewhere, held_shards=held)

    def _begin_change(self, moved_before: FrozenSet[str], items: Mapping[str, UpmapItems],
                      now: float) -> None:
        """Notes that the topology has changed. `items`: upmap items before."""
        if self._rest.seconds_left(now) <= 0.0:
            self._plan_count = 0
        self._rest.begin(now, _REST_SECONDS)
        if not self._is_changed:
            self._moved_before = moved_before
            self._items_before = items
            self._begin_wait(self._series, LONGEST_SECONDS, now)
        self._begin_wait(self._quiet, QUIET_SECONDS, now)
        self._is_changed = True

    def _begin_wait(self, timer: WaitTimer, seconds: float, now: float) -> None:
        """Begins a wait, which is longer after several plans without a rest."""
        timer.begin(now, doubled(seconds, _MOST_SECONDS, max(0, self._plan_count - 1)))

    def _note_ready(self, in_flight: Mapping[str, Pg], now: float) -> None:
        """Notes which PGs that were left alone may be steered now: each is planned again once."""
        ready = frozenset([pgid for pgid in self._left.intersection(in_flight)
                           if _is_ready(in_flight[pgid])])
        if ready and not self._ready and not self._is_changed:
            self._begin_wait(self._quiet, QUIET_SECONDS, now)
        self._ready = ready

    def _note_returned(self, snapshot: Snapshot, in_flight: Mapping[str, Pg], now: float) -> None:
        """Notes which OSDs have come back, and which PGs are on their way to them since: those that
        come within PEERED_SECONDS.

        An OSD that was never up has no data. It exists, down and out, before its first start
        (OSDMonitor::do_osd_create).
        """
        present = {osd.id: osd.uuid for osd in snapshot.osds.values()
                   if osd.up and not snapshot.is_out(osd.id)}
        if self._topology is None:   # nobody knows which have never been up
            self._present = present
            self._disks = {osd.id: osd.uuid for osd in snapshot.osds.values()}
        for number in present.keys() - self._present.keys():
            if self._disks.get(number) == present[number]:
                self._back_at[number] = now
        self._present = present
        self._disks.update(present)
        recent = {number for number, at in self._back_at.items() if now - at < PEERED_SECONDS}
        returned: Set[Tuple[int, str]] = set()
        for pg in piecewise(in_flight.values(), _PGS_A_PIECE):
            coming = [(number, pg.pgid) for number in snapshot.transfers(pg)[0]]
            returned.update([one for one in coming if one[0] in recent or one in self._returned])
        self._returned = frozenset(returned)

    def seconds_left(self, settings: Settings, now: float) -> Optional[float]:
        """Returns the seconds until shards may be steered, 0 or less if they may be now; None if
        nothing has changed, or nobody wants it now."""
        if not _may_steer(settings, now):
            return None
        quiet = self._quiet.seconds_left(now)
        if self._is_changed:
            return min(quiet, self._series.seconds_left(now))
        # nothing else waits for PGs that are planned again
        return 0.0 if self._ready and quiet <= 0.0 else None

    def due_at(self, settings: Settings, now: float, is_sending: bool) -> Optional[float]:
        """Returns when shards are steered, seconds since the epoch; None if nothing waits for that,
        or if that should have been done _OVERDUE_SECONDS ago. `is_sending`: a plan is being
        sent."""
        left = self.seconds_left(settings, now)
        if is_sending:
            left = 0.0
        if left is None:
            self._due_at = 0.0
            return None
        if left > 0.0 or not self._due_at:
            self._due_at = now + left
        if now > self._due_at + _OVERDUE_SECONDS:
            return None
        return self._due_at

    def is_due(self, settings: Settings, now: float) -> bool:
        """Returns True if a plan is to be made that steers shards."""
        left = self.seconds_left(settings, now)
        return left is not None and left <= 0.0

    def is_wanted(self, settings: Settings, now: float) -> bool:
        """Returns True if the last plan may still be carried out: none of its options has been
        switched off, and the window is open."""
        recovery, placement = self._options
        has_options = settings.steer_recovery >= recovery and settings.hold_placement >= placement
        return has_options and _may_steer(settings, now)

    def begin_plan(self, settings: Settings, snapshot: Snapshot, now: float) -> Steering:
        """Notes that a plan is asked for, and returns which shards it may steer."""
        self._plan_count += 1
        self._begin_wait(self._series, LONGEST_SECONDS, now)   # of changes while it is made
        self._planned = self._topology
        self._asked = frozenset() if self._is_changed else self._ready
        self._options = settings.steer_recovery, settings.hold_placement
        returned = frozenset([pgid for _, pgid in self._returned])
        return Steering(*self._options, self._at_rest(snapshot), returned,
                        _classes_held_up(settings, snapshot))

    def _at_rest(self, snapshot: Snapshot) -> FrozenSet[str]:
        """Returns the PGs that only the change has moved. They rested before, and nobody but the
        monitors has changed their upmap items since. Also those whose targets were chosen."""
        found = []
        for pgid in piecewise(self._moving - self._moved_before, _PGS_A_PIECE):
            pg = snapshot.pgs.get(pgid)
            before = self._items_before.get(pgid, ())
            if pgid in self._steered or pg is not None and _only_drops(snapshot, pg, before):
                found.append(pgid)
        return frozenset(found)

    def give_up(self) -> None:
        """Ends the change that the last plan was made for, without a plan."""
        self._is_changed = self._topology != self._planned
        self._left = self._ready = frozenset()

    def take_up(self, plan: Plan, snapshot: Snapshot, now: float) -> None:
        """Ends the change that a plan was made for, unless another has come since. `snapshot`:
        before the plan."""
        self._is_changed = self._topology != self._planned
        if self._asked:
            self._left -= self._asked
        else:
            self._left = frozenset([pgid for pgid, why in plan.left_alone.items()
                                    if why.startswith(BY_STATE)])
        self._ready = frozenset()
        if not self._steered:   # what was chosen before is over
            self._sent = {}
        self._steered |= {change.pgid for change in plan.changes}
        if plan.changes:
            self.choice = Steered(now, 0, 0, _highest(plan.before), plan.skipped, plan.left_alone)
            self._count(snapshot)


def reason_of(plan: Plan, snapshot: Snapshot) -> str:
    """Returns what a plan of kind STEER chooses, as a clause for the history. `snapshot`: before
    it."""
    elsewhere, held = steered_shards(plan, snapshot)
    parts: List[str] = []
    if elsewhere:
        parts.append(plural(elsewhere, "shard that is copied anyway is to go where there is room",
                            "shards that are copied anyway are to go where there is room"))
    if held:
        parts.append(plural(held, "shard is to stay where its data is",
                            "shards are to stay where their data is"))
    return " and ".join(parts) + skipped_text(plan.skipped)


def _may_steer(settings: Settings, now: float) -> bool:
    """Returns True if an option asks for steering, and the window is open: drains are planned
    outside it, too."""
    return settings.steers and is_open(settings, now)


def holds_placement(settings: Settings) -> bool:
    """Returns True if shards that CRUSH moves are kept where their data is, at any time of day."""
    return settings.active and settings.hold_placement and not is_limited(settings)


def plan_before_steering(execution: Optional[Execution], view: Optional[ClusterView],
                         settings: Settings, now: float) -> str:
    """Returns the plan with a name that keeps shards from being steered; else empty text. These
    shards have not begun to arrive, and do not move since before the plan. `now`: seconds since the
    epoch."""
    if execution is None or view is None or not _may_steer(settings, now):
        return ""
    for move in view.movements:
        if move.origin in (CRUSH, RECOVERY) and move.state == BACKFILL_WAIT:
            if move.pgid not in execution.moved_before:
                return execution.name
    return ""


def _classes_held_up(settings: Settings, snapshot: Snapshot) -> FrozenSet[str]:
    """Returns the device classes in which balancing cannot go on, or not everywhere."""
    buckets = settings.from_buckets, settings.to_buckets, settings.not_buckets
    if is_limited(settings) or buckets != (None, None, None):
        return frozenset([osd.device_class for osd in snapshot.osds.values()])
    found: Set[str] = set()
    for pool_id in blocked_pools(snapshot):
        for block in snapshot.pools[pool_id].blocks:
            found.update([snapshot.osds[number].device_class for number in block.osds
                          if number in snapshot.osds])
    return frozenset(found)


def _is_ready(pg: Pg) -> bool:
    """Returns True if the state of a PG in flight allows to steer its shards, and none has begun to
    arrive."""
    return not (state_obstacle(pg) or has_begun(pg))


def _only_drops(snapshot: Snapshot, pg: Pg, before: UpmapItems) -> bool:
    """Returns True if a PG has the upmap items of before, except pairs that monitors drop: without
    effect, to an OSD that is out, or all of them if the rule forbids where they lead."""
    present = snapshot.items_of(pg.pgid)
    if not set(present) <= set(before):
        return False
    if not present and before:
        rule = snapshot.pools[pg.pool].rule
        if rule is None or rule.refusal(apply_items(pg.raw, before, snapshot.is_out)):
            return True
    for source, target in set(before).difference(present):
        has_effect = source in pg.raw and target not in pg.raw
        if has_effect and not snapshot.is_out(target):
            return False
    return True


def _highest(usage: Usage) -> float:
    """Returns the highest utilization of any class."""
    return max([found.max for found in usage.classes.values()], default=0.0)


def skipped_text(skipped: Mapping[str, int]) -> str:
    """Returns why PGs keep their targets, as a further clause; empty without such PGs. `skipped`:
    as Steered."""
    if not skipped:
        return ""
    shards = plural(sum(skipped.values()), "shard was", "shards were")
    counts = [f"{why} ({count})" for why, count in Counter(skipped).most_common()]
    return f"; {shards} left to CRUSH because of their PG at that time: {', '.join(counts)}"
