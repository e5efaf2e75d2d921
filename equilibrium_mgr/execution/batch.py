"""Chooses the batch of a round. Pure: a snapshot and limits in, a decision out.

The plan is advice and the osdmap is the truth. Every change is compared with the newest snapshot. A
change that has become senseless or illegal is dropped with its reason.

Changes that relieve OSDs above nearfull come first. The plan is ordered: the fullest OSDs first,
and changes that free space before those that need it. All other changes keep that order.
"""
from __future__ import annotations

from collections import Counter
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import (
    BALANCE, FREEZE, MOTIONLESS, OF_ITEMS, REPAIR, STEER, PgChange, takes_back)
from ..runtime.time_slice import piecewise
from ..snapshot import reason_codes as codes
from ..snapshot.immovable_reasons import OF_RULE, TRANSIENT, untrusted_state
from ..snapshot.model import Osd, Pg, Snapshot, is_same_placement, pool_of
from ..snapshot.reason_codes import FULL, LIMIT, REASONS
from .checks import binding_reason, first_verdict
from .guards import PoolGuard
from .outcomes import DroppedChange, Verdict, WaitingChange
from .round_state import Candidate, ThrottleLimits, ThrottleState
from .traffic import OsdTraffic, osd_traffic, predicted_utilization

_CHANGES_A_PIECE = 40   # about a millisecond
#: Obstacles of an OSD that end soon. A change waits for these and is dropped for the others.
_TRANSIENT_OBSTACLES = frozenset(("down", "without statistics"))

#: (minus the ratio of the lost shards that leave OSDs above nearfull, place in the plan, change)
_Rank = Tuple[float, int, PgChange]


class Decision(NamedTuple):
    """The wanted changes of this round, by what happens to them."""

    send: List[PgChange]
    done: List[PgChange]                  # in place already
    dropped: List[DroppedChange]          # void or illegal now
    waiting: List[WaitingChange]          # wanted still, with reasons

    @property
    def leading(self) -> Optional[Verdict]:
        """Returns the reason for which most shards wait; None if nothing waits."""
        shards: Counter[str] = Counter()
        first: Dict[str, Verdict] = {}
        for change, verdict in self.waiting:
            shards[verdict.code] += change.shards
            first.setdefault(verdict.code, verdict)
        for code, _ in shards.most_common(1):
            return first[code]
        return None

    @property
    def holds_up(self) -> bool:
        """Returns True if any change waits for a limit or for space, and not for trouble to end."""
        return any(verdict.is_throttle for _, verdict in self.waiting)

    @property
    def full(self) -> List[WaitingChange]:
        """Returns the changes whose target is too full, or has its share by lowered weights."""
        return [row for row in self.waiting if REASONS[row[1].code].kind == FULL]


def next_batch(snapshot: Snapshot, wanted: Sequence[PgChange], limits: ThrottleLimits,
               blocked: Mapping[int, PoolGuard], traffic: Optional[OsdTraffic] = None,
               kind: str = BALANCE) -> Decision:
    """Chooses the changes that may be sent without exceeding a limit.

    `blocked`: pool id → why none of its PGs may be moved. `traffic`: the load of the OSDs with our
    own unseen moves; it grows with the batch. `kind`: of the plan. A change that has to wait does
    not stop those after it.
    """
    if traffic is None:
        traffic = osd_traffic(snapshot, {})
    state = ThrottleState(snapshot, limits, blocked, traffic)
    found = Decision([], [], [], [])
    ranked, urgent = by_urgency(snapshot, traffic, wanted)
    for change in piecewise(ranked, _CHANGES_A_PIECE):
        pg = snapshot.pgs.get(change.pgid)
        if pg is None:
            found.dropped.append(DroppedChange(change, "its pool or PG is gone"))
            continue
        if _is_done(snapshot, pg, change, kind in OF_ITEMS):
            found.done.append(change)
            continue
        if kind in (REPAIR, FREEZE) and pg.immovable in OF_RULE:
            pg = pg._replace(immovable=untrusted_state(pg.state))
        candidate = state.candidate(pg, change, urgent.get(change.pgid), kind == STEER)
        void = _void(snapshot, candidate)
        if void is None and kind in MOTIONLESS and not candidate.adds_no_copy:
            void = "its data has moved meanwhile"
        if void is not None:
            found.dropped.append(DroppedChange(change, void))
            continue
        verdict = first_verdict(state, candidate)
        if verdict is None:
            state.consume(candidate)
            found.send.append(candidate.change)
            continue
        found.waiting.append((change, verdict))
        state.relieved_before.update(candidate.losses)
        _reserve(state, candidate, verdict)
    if kind not in MOTIONLESS and state.changing:
        _leave_time_to_steps(state, found, urgent)
    return found


def _reserve(state: ThrottleState, candidate: Candidate, verdict: Verdict) -> None:
    """Keeps OSDs and misplaced budget for urgent relief that a limit delays."""
    if candidate.relieves is None or candidate.change.pgid in state.limits.cooling:
        return
    if REASONS[verdict.code].kind == LIMIT:
        state.reserved.add(candidate.relieves, candidate.osds, candidate.copies)


def _leave_time_to_steps(state: ThrottleState, found: Decision, urgent: Mapping[str, int]) -> None:
    """Delays a batch that has fewer PGs than we have in flight, while a pg_num changes.

    Each osdmap makes PGs peer, and the steps of pg_num wait for that. So fewer osdmaps, of more
    changes each, let them get on. A batch with an urgent or cancelling change is not delayed.
    """
    snapshot = state.snapshot
    for change in found.send:
        is_erasure = snapshot.pools[pool_of(change.pgid)].erasure
        cancels = takes_back(snapshot.pgs[change.pgid], change.up_after, is_erasure)
        if cancels or change.pgid in urgent:
            return
    if len(found.send) >= len(state.limits.in_flight):
        return
    verdict = Verdict(
        codes.PG_NUM_CHANGING, f"as pg_num of pool '{state.changing[0]}' changes, more is sent"
        " when half of what is on its way has arrived")
    found.waiting[:0] = [(change, verdict) for change in found.send]
    found.send.clear()


def by_urgency(snapshot: Snapshot, traffic: OsdTraffic, wanted: Sequence[PgChange]
               ) -> Tuple[List[PgChange], Dict[str, int]]:
    """Returns (the changes in the order in which they are checked; pgid of an urgent change → the
    OSD above nearfull that it relieves).

    As many changes are urgent as bring the OSDs below nearfull again, after all that is in flight.
    """
    overfull: Dict[int, float] = {}
    for osd in snapshot.osds:
        utilization = predicted_utilization(snapshot, traffic.of(osd), osd)
        if utilization > snapshot.nearfull_ratio:
            overfull[osd] = utilization
    if not overfull:
        return list(wanted), {}
    leaving: Dict[int, List[_Rank]] = {osd: [] for osd in overfull}
    for place, change in enumerate(wanted):
        losses = _losses(snapshot, change)
        relieved = [osd for osd in losses if osd in leaving]
        for osd in relieved:
            leaving[osd].append((-len(relieved) / len(losses), place, change))
    urgent: Dict[str, int] = {}
    first: List[PgChange] = []
    for osd in sorted(overfull, key=lambda o: (-overfull[o], o)):
        excess = (overfull[osd] - snapshot.nearfull_ratio) * snapshot.osds[osd].size_bytes
        for _, _, change in sorted(leaving[osd], key=lambda row: row[:2]):
            if excess <= 0.0:
                break
            pgid = change.pgid
            pg = snapshot.pgs[pgid]
            relief = snapshot.shard_bytes(pg, osd, pg.up)
            excess -= relief
            if pgid not in urgent and relief > 0:
                urgent[pgid] = osd
                first.append(change)
    return first + [change for change in wanted if change.pgid not in urgent], urgent


def _losses(snapshot: Snapshot, change: PgChange) -> Tuple[int, ...]:
    """Returns the OSDs that lose a shard by the change."""
    pg = snapshot.pgs.get(change.pgid)
    if pg is None or len(pg.up) != len(change.up_after):
        return ()
    return snapshot.changed_shards(pg, change.up_after)[1]


def _is_done(snapshot: Snapshot, pg: Pg, change: PgChange, is_of_items: bool) -> bool:
    """Returns True if the PG is where the change wants it. `is_of_items`: it must be there by the
    same upmap items."""
    if not is_same_placement(pg.up, change.up_after, snapshot.is_positional(pg)):
        return False
    if not is_of_items and change.up_before != change.up_after:
        return True
    return snapshot.items_of(change.pgid) == change.items


def _void(snapshot: Snapshot, candidate: Candidate) -> Optional[str]:
    """Returns why the change no longer makes sense, or None."""
    change = candidate.change
    pg = candidate.pg
    pool = snapshot.pools[candidate.pg.pool]
    immovable = binding_reason(snapshot, candidate)
    if immovable is None and not is_same_placement(pg.raw, change.raw, pool.erasure):
        return "CRUSH maps the PG differently now"
    if immovable is None and not is_same_placement(pg.up, change.up_before, pool.erasure):
        return "somebody else has moved the PG"
    if pool.rule is None or len(change.up_after) != pool.size:
        return "the pool's rule or size has changed"
    broken = pool.rule.refusal(change.up_after)
    if broken:
        return f"no longer legal: {broken}"
    for osd in change.up_after:
        if osd in change.up_before:
            continue
        target = snapshot.osds.get(osd)
        obstacle = "gone" if target is None else _obstacle(target, candidate.moves_nothing)
        if obstacle:
            return f"osd.{osd} is {obstacle}"
    return immovable if immovable not in TRANSIENT else None


def _obstacle(target: Osd, holds_data: bool) -> Optional[str]:
    """Returns why an OSD will not take a shard soon, or None.

    `holds_data`: it holds the shard already. Then only Ceph's own obstacle counts: a pair of upmap
    items has no effect if its target is out.
    """
    if holds_data:
        return None if target.is_in and target.reweight > 0.0 else "out"
    obstacle = target.unusable_reason()
    return obstacle if obstacle not in _TRANSIENT_OBSTACLES else None
