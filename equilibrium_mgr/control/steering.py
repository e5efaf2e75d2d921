"""When shards that Ceph copies anyway are given other targets: once the topology has changed and
has then been quiet for a while, and before they begin to arrive. planner/steering.py chooses.

PGs that peer then, or serve no client, are planned again once if they are active later.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Set

from ..plan.model import Plan, Usage, has_begun
from ..plan.options import Steering
from ..planner.steering import PASSING, only_lacks_copies, steered_shards
from ..runtime.formatting import named, plural
from ..runtime.time_slice import piecewise
from ..runtime.waiting import WaitTimer, doubled
from ..settings import Settings
from ..snapshot.model import Pg, Snapshot, UpmapItems
from ..snapshot.pg_states import ACTIVE, UNSTEERABLE, has_any
from ..snapshot.upmap_items import apply_items
from .cluster_guards import is_open

#: A topology must stay the same for so many seconds before shards are steered: an OSD that is out
#: may come back, and several OSDs go out one after the other.
QUIET_SECONDS = 30.0
#: At most, from the first of a series of changes: shards begin to arrive meanwhile.
LONGEST_SECONDS = 45.0
#: The longest wait before PGs are planned again whose state did not allow it. It begins with
#: QUIET_SECONDS, and is twice as long each further time without a change of the topology.
_LONGEST_AGAIN_SECONDS = 600.0
_PGS_A_PIECE = 200
_REASONS_NAMED = 2   # before a sentence only counts the rest


class Steered(NamedTuple):
    """What the last plan of kind STEER has chosen; JSON-ready by `_asdict`."""

    at: float             # seconds since the epoch
    elsewhere_shards: int   # that come to other OSDs than CRUSH's
    held_shards: int      # that stay where their data is
    max_utilization: float            # of the fullest OSD when all has arrived, a ratio
    max_utilization_by_crush: float   # the same without the plan
    skipped: Mapping[str, int] = {}   # why PGs keep their targets → how many shards
    left_alone: Mapping[str, str] = {}   # Plan.left_alone


class SteeringTrigger:
    """Compares the topology from snapshot to snapshot. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._topology: Any = None
        self._planned: Any = None   # the topology of the last plan
        self._is_changed = False    # and nobody has planned for that yet
        self._quiet = WaitTimer()
        self._series = WaitTimer()
        #: PGs that the plan for the last change left alone for a state that passes
        self._left: FrozenSet[str] = frozenset()
        self._ready: FrozenSet[str] = frozenset()   # of these, PGs whose state allows it now
        self._asked: FrozenSet[str] = frozenset()   # the same as the last plan was asked for them
        self._again = WaitTimer()
        self._again_count = 0    # plans for these since the last change
        self._steered: FrozenSet[str] = frozenset()   # pgids whose targets were chosen
        self._choice: Optional[Steered] = None
        #: the options of the last plan: steer_recovery, hold_placement
        self._options = (False, False)
        #: OSD that was down or out at the last snapshot → uuid of its disk
        self._absent: Dict[int, str] = {}
        #: OSDs that have come back, and to which PGs are still on their way: they may have data
        self._returned: FrozenSet[int] = frozenset()
        #: of the last snapshot: pgids in flight, and upmap items
        self._moving: FrozenSet[str] = frozenset()
        self._items: Mapping[str, UpmapItems] = {}
        #: the same of the last one before the change
        self._moved_before: FrozenSet[str] = frozenset()
        self._items_before: Mapping[str, UpmapItems] = {}

    def observe(self, snapshot: Snapshot, topology: Any, now: float) -> None:
        """Notes whether the topology has changed, and which PGs moved before."""
        moving = frozenset(snapshot.in_flight())
        self._steered &= moving
        self._note_returned(snapshot)
        is_new_mgr = self._topology is None
        if is_new_mgr and _is_rebuilding(snapshot):
            # perhaps the last mgr has not steered it, and what moved before it is not known
            self._begin_change(moving, {}, now)
        elif not is_new_mgr and topology != self._topology:
            self._begin_change(self._moving - self._steered, self._items, now)
        self._topology = topology
        self._note_ready(snapshot, now)
        self._moving = moving
        self._items = snapshot.upmap_items

    def _begin_change(self, moved_before: FrozenSet[str], items: Mapping[str, UpmapItems],
                      now: float) -> None:
        """Notes that the topology has changed. `items`: upmap items before."""
        if not self._is_changed:
            self._moved_before = moved_before
            self._items_before = items
            self._series.begin(now, LONGEST_SECONDS)
        self._quiet.begin(now, QUIET_SECONDS)
        self._is_changed = True

    def _note_ready(self, snapshot: Snapshot, now: float) -> None:
        """Notes which PGs that were left alone may be steered now: each is planned again once."""
        ready = frozenset([pgid for pgid in self._left if _is_ready(snapshot.pgs.get(pgid))])
        if ready and not self._ready:
            self._again.begin(now, doubled(
                QUIET_SECONDS, _LONGEST_AGAIN_SECONDS, self._again_count))
        self._ready = ready

    def _note_returned(self, snapshot: Snapshot) -> None:
        """Notes which OSDs have come back with their disk."""
        targets: Set[int] = set()
        for pg in piecewise(snapshot.in_flight().values(), _PGS_A_PIECE):
            targets.update(pg.up)
        absent: Dict[int, str] = {}
        returned = set(self._returned)
        for osd in snapshot.osds.values():
            if not osd.up or snapshot.is_out(osd.id):
                absent[osd.id] = osd.uuid
            elif self._absent.get(osd.id) == osd.uuid:
                returned.add(osd.id)
        self._absent = absent
        self._returned = frozenset(returned & targets)

    def seconds_left(self, settings: Settings, now: float) -> Optional[float]:
        """Returns the seconds until shards may be steered, 0 or less if they may be now; None if
        nothing has changed, or nobody wants it now."""
        if not settings.steers or not is_open(settings, now):
            return None   # drains are planned outside the window, too
        if not self._is_changed:   # nothing else waits for PGs that are planned again
            is_due = self._ready and self._again.seconds_left(now) <= 0.0
            return 0.0 if is_due else None
        return min(self._quiet.seconds_left(now), self._series.seconds_left(now))

    def is_due(self, settings: Settings, now: float) -> bool:
        """Returns True if a plan is to be made that steers shards."""
        left = self.seconds_left(settings, now)
        return left is not None and left <= 0.0

    def is_wanted(self, settings: Settings, now: float) -> bool:
        """Returns True if the last plan may still be carried out: none of its options has been
        switched off, and the window is open."""
        if not settings.steers or not is_open(settings, now):
            return False
        recovery, placement = self._options
        return settings.steer_recovery >= recovery and settings.hold_placement >= placement

    def begin_plan(self, settings: Settings, snapshot: Snapshot) -> Steering:
        """Notes that a plan is asked for, and returns which shards it may steer."""
        self._planned = self._topology
        self._asked = frozenset() if self._is_changed else self._ready
        self._options = settings.steer_recovery, settings.hold_placement
        return Steering(settings.steer_recovery, settings.hold_placement,
                        self._at_rest(snapshot), self._returned)

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

    def take_up(self, plan: Plan, snapshot: Snapshot, now: float) -> None:
        """Ends the change that a plan was made for, unless another has come since. `snapshot`:
        before the plan."""
        self._is_changed = self._topology != self._planned
        if self._asked:
            self._again_count += 1
            self._left -= self._asked
        else:
            self._again_count = 0
            self._left = frozenset([pgid for pgid, why in plan.left_alone.items()
                                    if why.startswith(PASSING)])
        self._ready = frozenset()
        self._steered |= {change.pgid for change in plan.changes}
        if plan.changes:
            elsewhere, held = steered_shards(plan, snapshot)
            skipped = {why.removeprefix("PG: "): shards for why, shards in plan.skipped.items()}
            self._choice = Steered(now, elsewhere, held, _highest(plan.after),
                                   _highest(plan.before), skipped, plan.left_alone)

    def reason(self) -> str:
        """Returns what was chosen, as a clause for the history."""
        choice = self._choice
        if choice is None:
            return ""
        parts: List[str] = []
        if choice.elsewhere_shards:
            parts.append(plural(choice.elsewhere_shards, "shard that is copied anyway goes",
                                "shards that are copied anyway go") + " where there is room")
        if choice.held_shards:
            parts.append(plural(choice.held_shards, "shard stays where its data is",
                                "shards stay where their data is"))
        return " and ".join(parts) + skipped_text(choice.skipped)

    def forget_choice(self) -> None:
        """Notes that nothing of the plan could be sent."""
        self._choice = None

    @property
    def choice(self) -> Optional[Steered]:
        """Returns what was chosen, while one of its PGs is on its way; else None."""
        return self._choice if self._steered else None


def _is_ready(pg: Optional[Pg]) -> bool:
    """Returns True if the state of a PG allows to steer its shards, and none has begun to
    arrive."""
    if pg is None or ACTIVE not in pg.state or has_any(pg.state, UNSTEERABLE):
        return False
    return pg.is_moving and not has_begun(pg)


def _is_rebuilding(snapshot: Snapshot) -> bool:
    """Returns True if a PG lacks copies, which Ceph rebuilds, and none of its shards moves."""
    for pg in piecewise(snapshot.in_flight().values(), _PGS_A_PIECE):
        if only_lacks_copies(pg, snapshot.pools[pg.pool]):
            return True
    return False


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
    return (f"; {shards} left to CRUSH because of their PG at that time:"
            f" {named(counts, _REASONS_NAMED)}")
