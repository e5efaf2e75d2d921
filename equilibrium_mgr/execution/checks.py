"""The checks of the throttle: each is one reason why a wanted change has to wait.

Each check takes the state of the round and a candidate, and returns a Verdict with its figures if
the change has to wait, else None. The first Verdict counts, so the order of CHECKS is the order in
which reasons are named: conditions of the pool, the PG and its OSDs, then reservations for urgent
changes, then the limits. `explain PGID OSD` asks all except those of a batch.
"""
from __future__ import annotations

from typing import Callable, NamedTuple, Optional, Tuple

from ..plan.options import raised_nearfull_ratio, upmap_pairs_left
from ..runtime.formatting import format_deadline, format_percent
from ..snapshot import reason_codes as codes
from ..snapshot.immovable_reasons import OF_MOTION, OF_PG_NUM, Immovable
from ..snapshot.model import Osd, Snapshot
from ..snapshot.operator_weights import held_sentence
from ..snapshot.pg_states import ACTIVE, ACTIVITIES, SHORT, has_any
from .guards import TRANSIENT_RECHECK_SECONDS, PoolGuard
from .outcomes import Verdict
from .round_state import Candidate, ThrottleState


def pool_is_blocked(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays changes of a pool that has inactive or degraded PGs or shares OSDs with one
    (guards.blocked_pools), except relief of full OSDs (relieve_while_degraded)."""
    guard = state.blocked.get(candidate.pg.pool)
    if guard is None or _is_relief(state, guard, candidate):
        return None
    seconds = TRANSIENT_RECHECK_SECONDS if guard.transient else None
    return Verdict(codes.DEGRADED, guard.reason, {"pool_id": candidate.pg.pool}, seconds=seconds)


def _is_relief(state: ThrottleState, guard: PoolGuard, candidate: Candidate) -> bool:
    """Returns True if the change may go although PGs are degraded: it only empties full OSDs."""
    if guard.inactive or not state.settings.relieve_while_degraded:
        return False
    pg_state = candidate.pg.state
    return state.is_relief(candidate) and ACTIVE in pg_state and not has_any(pg_state, SHORT)


def pg_is_immovable(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a PG that must not be moved for now (snapshot/immovable_reasons.py, TRANSIENT)."""
    immovable = binding_reason(state.snapshot, candidate)
    if not immovable:
        return None
    return Verdict(immovable.code, immovable, {"trouble": immovable})


def binding_reason(snapshot: Snapshot, candidate: Candidate) -> Optional[Immovable]:
    """Returns why the PG must not be moved, if that binds the change.

    A change that copies nothing may go although the PG must not be copied. If it only drops upmap
    items, it may go during a pg_num change as well: steps of pg_num drop items themselves, and wait
    until the PG is clean.
    """
    change = candidate.change
    immovable = candidate.pg.immovable
    if not candidate.moves_nothing:
        return immovable
    if immovable in OF_MOTION:
        return None
    drops_only = set(change.items) <= set(snapshot.items_of(change.pgid))
    return None if drops_only and immovable in OF_PG_NUM else immovable


def pg_is_in_flight(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a PG that moves: its sources hold shards of it until it has arrived."""
    pgid = candidate.change.pgid
    if not candidate.pg.is_moving and pgid not in state.limits.in_flight:
        return None
    return Verdict(codes.IN_FLIGHT, numbers={"pgid": pgid})


def target_cannot_take(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays for a target that is down, out, destroyed, drained or without statistics
    (Osd.unusable_reason)."""
    for osd in candidate.gains:
        obstacle = state.snapshot.osds[osd].unusable_reason()
        if obstacle is not None:
            return Verdict(codes.TARGET_UNAVAILABLE, numbers={"osd": osd, "obstacle": obstacle})
    return None


def osd_is_silent(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays for an OSD whose statistics are too old to be trusted (snapshot/osds.py)."""
    for osd in candidate.osds:
        if osd in state.snapshot.stale_osds:
            return Verdict(codes.STALE_STATISTICS, numbers={"osd": osd})
    return None


def pg_is_busy(_state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a PG that Ceph scrubs, repairs or snap-trims."""
    states = candidate.pg.state.split("+")
    for busy, activity in ACTIVITIES.items():
        if busy in states:
            return Verdict(codes.BUSY, numbers={
                "pgid": candidate.change.pgid, "activity": activity})
    return None


def pg_is_cooling(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a PG for pg_cooldown if it was moved a short while ago, unless a shard leaves an OSD
    above nearfull_ratio or one that is being drained."""
    seconds = state.limits.cooling.get(candidate.change.pgid, 0.0)
    if seconds <= 0.0:
        return None
    for osd_id in candidate.losses:
        osd = state.snapshot.osds.get(osd_id)
        if osd is not None and (osd.drained or osd.exceeds(state.snapshot.nearfull_ratio)):
            return None
    ends_at = state.snapshot.taken_at + seconds
    return Verdict(codes.COOLDOWN, numbers={
        "pgid": candidate.change.pgid, "ends_at": ends_at, "time": format_deadline(ends_at)})


def is_reserved_for_relief(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a change that relieves nothing while relief of an OSD above nearfull_ratio waits. It
    must not take a slot at the OSDs of that relief, nor the misplaced budget that it needs."""
    reserved = state.reserved
    if candidate.relieves is not None or reserved.first is None:
        return None
    first = reserved.sharing(candidate.osds)
    if first is None:
        if state.moves_left > 0 and _leaves_budget(state, candidate):
            return None
        first = reserved.first
    return Verdict(codes.NEARFULL_FIRST, numbers={"osd": first})


def _leaves_budget(state: ThrottleState, candidate: Candidate) -> bool:
    """Returns True if the misplaced budget is enough for the change and for waiting relief."""
    copies = candidate.copies
    misplaced = state.misplaced_copies_for(candidate) + copies + state.reserved.copies
    return not copies or misplaced <= state.allowed_copies_for(candidate)


def osd_is_needed_by_steps(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays for an OSD that steps of pg_num need next, because backfills take turns there. Urgent
    relief may go. A PG that was cancelled for such a step waits for STEP_SECONDS at most."""
    if candidate.relieves is not None:
        return None
    pgid = candidate.change.pgid
    for osd in candidate.osds + candidate.pg.acting[:1]:
        if osd in state.needed_by_steps:
            pool = state.needed_by_steps[osd].name
            return Verdict(codes.PG_NUM_CHANGING,
                           f"osd.{osd} is needed as pg_num of pool '{pool}' changes")
    if state.changing and pgid in state.limits.made_way:
        return Verdict(codes.PG_NUM_CHANGING,
                       f"pg {pgid} has made way as pg_num of pool '{state.changing[0]}' changes")
    return None


def target_is_full(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays for a target that is nearfull, or that would pass fill_limit or the share of its
    lowered weight, once all incoming shards are there and before any has left."""
    for osd_id in candidate.gains:
        verdict = _fullness_of(state, candidate, state.snapshot.osds[osd_id])
        if verdict is not None:
            return verdict
    return None


def _fullness_of(state: ThrottleState, candidate: Candidate, osd: Osd) -> Optional[Verdict]:
    snapshot = state.snapshot
    if osd.reaches(snapshot.nearfull_ratio):
        return Verdict(codes.NEARFULL, numbers={
            "osd": osd.id, "device_class": osd.device_class,
            "needed": raised_nearfull_ratio(snapshot.backfillfull_ratio)})
    peak = state.peak_bytes(osd, candidate)
    if peak > state.fill_limit * osd.size_bytes:
        return Verdict(codes.FILL_LIMIT, numbers={
            "osd": osd.id, "peak_bytes": peak, "fill_limit_ratio": state.fill_limit})
    most = state.share_bytes.get(osd.id)
    # statistics are not exact to half a shard
    if most is not None and peak - state.shard_bytes(candidate, osd.id) // 2 > most:
        return Verdict(codes.REWEIGHT, numbers={
            "osd": osd.id, "held": held_sentence(osd)})
    return None


def moves_of_round_are_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a change if the batch would have more than max_moves_per_round shard moves. The first
    change may be larger, and urgent_misplaced_ratio lets relief of OSDs above backfillfull exceed
    the limit."""
    most = state.settings.max_moves_per_round
    if state.moves_left == most or candidate.change.shards <= state.moves_left:
        return None
    if state.emergency_osd(candidate) is not None:
        return None
    return Verdict(codes.MAX_MOVES, numbers={"max_moves": most})


def misplaced_budget_is_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a change if more than max_misplaced_ratio less a margin would be misplaced with it.
    For relief of OSDs above backfillfull the limit is urgent_misplaced_ratio, if that is higher.

    PGs that wait for space do not count against relief of full_osds. If nothing is misplaced, one
    change may go although it alone exceeds the limit.
    """
    copies = candidate.copies
    allowed = state.allowed_copies_for(candidate)
    misplaced = state.misplaced_copies_for(candidate)
    if misplaced <= 0 or copies <= 0 or misplaced + copies <= allowed:
        return None
    most = state.max_copies_for(candidate)
    all_copies = max(1, state.snapshot.object_copies)
    is_urgent = most > state.max_misplaced_copies
    numbers = {
        "misplaced_copies": misplaced,
        "copies": copies,
        "limit_ratio": most / all_copies,
        "limit": format_percent(most / all_copies),
        # of all copies: the most that may be misplaced when it goes
        "fits_ratio": max(0.0, allowed - copies) / all_copies,
        "misplaced": format_percent(misplaced / all_copies),
        "own": format_percent(copies / all_copies),
        "option": "urgent_misplaced_ratio" if is_urgent else "max_misplaced_ratio"}
    code = codes.MISPLACED_ONE_PG if copies > allowed else codes.MISPLACED_LIMIT
    return Verdict(code, numbers=numbers)


def backfills_of_osd_are_used_up(state: ThrottleState,
                                 candidate: Candidate) -> Optional[Verdict]:
    """Delays a change if max_backfills_per_osd shards are in flight to one of its targets, or as
    many from one of its sources. If urgent_misplaced_ratio is set, any number may leave an OSD
    above backfillfull. A change alone at its OSDs may go."""
    most = state.settings.max_backfills_per_osd
    if not most or _is_alone(state, candidate):
        return None
    traffic = state.traffic
    emergency = state.emergency_osd(candidate)
    rows = [(osd, traffic.of(osd).shards_in, "coming") for osd in candidate.gains]
    rows += [(osd, traffic.of(osd).shards_out, "leaving") for osd in candidate.losses
             if osd != emergency]
    for osd, shards, direction in rows:
        if shards >= most:
            return Verdict(codes.MAX_BACKFILLS, numbers={
                "osd": osd, "shards": shards, "max_shards": most, "direction": direction})
    return None


def traffic_of_osd_is_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a change if more bytes than max_transit_ratio of an OSD's size would be on their way
    to it, or from it. One change may exceed that if nothing else is in flight at its OSDs."""
    osd = state.osd_above_transit_limit(candidate)
    if osd is None or _is_alone(state, candidate):
        return None
    return Verdict(codes.MAX_TRANSIT,
                   numbers={"osd": osd, "max_ratio": state.settings.max_transit_ratio})


def _is_alone(state: ThrottleState, candidate: Candidate) -> bool:
    """Returns True if nothing else is in flight at the OSDs of the change. PGs that wait for space
    do not count against relief of a full OSD."""
    is_relief = state.is_relief(candidate)
    for osd in candidate.osds:
        load = state.traffic.of(osd)
        stuck = state.stuck_shards[osd] if is_relief else 0
        if load.shards_in + load.shards_out > stuck:
            return False
    return True


def target_would_be_fullest(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays for a target that also loses a shard and, while it holds both, would be the fullest of
    its device class. It loses one that is on its way, or one that has to wait although the plan
    sends it earlier."""
    for osd_id in candidate.gains:
        osd = state.snapshot.osds[osd_id]
        highest = state.max_utilization[osd.device_class] * osd.size_bytes
        gives_too = state.traffic.of(osd_id).shards_out > 0 or osd_id in state.relieved_before
        if gives_too and state.peak_bytes(osd, candidate) > highest:
            return Verdict(codes.SOURCE_FULL,
                           numbers={"osd": osd_id, "device_class": osd.device_class})
    return None


def upmap_items_are_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays a change that adds pairs of upmap items if the osdmap would have more than
    max_upmap_items."""
    added = state.added_pairs(candidate.change)
    pairs = state.upmap_pairs
    left = upmap_pairs_left(state.settings.max_upmap_items, len(state.snapshot.pgs), pairs)
    if left is None or added <= 0 or added <= left:
        return None
    return Verdict(codes.UPMAP_ITEMS, numbers={"pairs": pairs, "max_pairs": pairs + left})


def target_has_too_many_pgs(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Delays for a target with so many PG shards that it may soon withhold PGs.

    The limit is HARD_SHARE, a ratio, of mon_max_pg_per_osd times osd_max_pg_per_osd_hard_ratio. An
    OSD that has withheld a PG has a lower limit for a day (outcomes.py).
    """
    limits = state.limits
    if not limits.max_pg_shards and not limits.withheld_at:
        return None
    for osd in candidate.gains:
        most = limits.withheld_at.get(osd, limits.max_pg_shards)
        count = state.pg_shards(osd)
        if count + 1 > most > 0:
            numbers = {"osd": osd, "shards": count, "max_shards": most}
            text = ""
            if osd in limits.withheld_at:
                numbers["withholds"] = osd
                text = (f"osd.{osd} may have withheld a PG as it has too many, and gets none"
                        f" before it has fewer than {most}")
            return Verdict(codes.PG_COUNT, text, numbers)
    return None


class Check(NamedTuple):
    """One reason to wait."""

    name: str   # as `explain PGID OSD` shows it
    ask: Callable[[ThrottleState, Candidate], Optional[Verdict]]
    of_batch: bool = False   # depends on the rest of the batch: it has no answer for one move alone


_MOVABLE = Check("movable", pg_is_immovable)
_TARGET = Check("OSD", target_cannot_take)
_STATISTICS = Check("statistics", osd_is_silent)
_FILL_LIMIT = Check("fill_limit", target_is_full)
_UPMAP_ITEMS = Check("max_upmap_items", upmap_items_are_used_up)
_PGS_PER_OSD = Check("PGs per OSD", target_has_too_many_pgs)
#: In the order in which they run.
CHECKS: Tuple[Check, ...] = (
    Check("health", pool_is_blocked),
    _MOVABLE,
    Check("in flight", pg_is_in_flight),
    _TARGET,
    _STATISTICS,
    Check("scrub", pg_is_busy),
    Check("pg_cooldown", pg_is_cooling),
    Check("relief first", is_reserved_for_relief, of_batch=True),
    Check("pg_num", osd_is_needed_by_steps),
    _FILL_LIMIT,
    Check("max_moves_per_round", moves_of_round_are_used_up, of_batch=True),
    Check("max_misplaced_ratio", misplaced_budget_is_used_up),
    Check("max_backfills_per_osd", backfills_of_osd_are_used_up),
    Check("max_transit_ratio", traffic_of_osd_is_used_up),
    Check("fullest meanwhile", target_would_be_fullest),
    _UPMAP_ITEMS,
    _PGS_PER_OSD)


#: A change that moves nothing waits until it is known where the PG's data is, and for nothing else:
#: it fills no OSD, copies nothing, and misplaces nothing.
_CHECKS_WITHOUT_MOTION: Tuple[Check, ...] = (_MOVABLE,)


#: A change that redirects shards adds no copy and misplaces nothing, but fills its targets.
_CHECKS_OF_STEERING: Tuple[Check, ...] = (
    _MOVABLE, _TARGET, _STATISTICS, _FILL_LIMIT, _UPMAP_ITEMS, _PGS_PER_OSD)


def binding_checks(candidate: Candidate) -> Tuple[Check, ...]:
    """Returns the checks that bind a change. No other function decides that."""
    if candidate.moves_nothing:
        return _CHECKS_WITHOUT_MOTION
    return _CHECKS_OF_STEERING if candidate.redirects else CHECKS


def first_verdict(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Returns why the change has to wait, or None if it may go now."""
    for check in binding_checks(candidate):
        verdict = check.ask(state, candidate)
        if verdict is not None:
            return verdict
    return None
