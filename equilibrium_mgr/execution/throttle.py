"""Every reason for which a wanted change has to wait, as one list of checks.

Each check takes the state of the round and a candidate, and returns a Verdict or None. The first
Verdict counts, so the order of CHECKS is the order in which reasons are named: first conditions of
the pool, the PG and its OSDs, then reservations for urgent changes, then the limits.
"""
from __future__ import annotations

from typing import Callable, Optional, Tuple

from ..plan.options import HARD_SHARE, raised_nearfull_ratio, upmap_pairs_left
from ..runtime.formatting import format_deadline, format_percent
from ..snapshot import immovable_reasons, reason_codes as codes
from ..snapshot.operator_weights import held_sentence
from .guards import TRANSIENT_RECHECK_SECONDS, PoolGuard
from .throttle_state import Candidate, ThrottleState
from .verdict import Verdict

Check = Callable[[ThrottleState, Candidate], Optional[Verdict]]

#: States of a PG that is read or rewritten anyway; a move meanwhile would make both slower.
_BUSY_STATES = {"scrubbing": "scrubbed", "repair": "repaired", "snaptrim": "snap-trimmed"}


def pool_is_blocked(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Pools with inactive or degraded PGs, or a changing pg_num, and those on the same OSDs, wait
    (guards.blocked_pools); relief of full OSDs is let through (relieve_while_degraded)."""
    guard = state.blocked.get(candidate.pg.pool)
    if guard is None or _is_relief(state, guard, candidate):
        return None
    return Verdict(codes.PG_NUM_CHANGING if guard.unsettled else codes.DEGRADED, guard.reason,
                   {"pool_id": candidate.pg.pool},
                   seconds=TRANSIENT_RECHECK_SECONDS if guard.transient else None)


def pg_is_immovable(_state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A PG that must not be moved for now (snapshot/immovable_reasons.py, TRANSIENT)."""
    immovable = candidate.pg.immovable
    if not immovable or (candidate.moves_nothing and immovable in immovable_reasons.OF_MOTION):
        return None
    return Verdict(immovable.code, immovable, {"trouble": immovable})


def pg_is_in_flight(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A PG is moved once at a time: until it has arrived, its sources hold the only copies."""
    pgid = candidate.change.pgid
    if not candidate.pg.is_moving and pgid not in state.limits.in_flight:
        return None
    return Verdict(codes.IN_FLIGHT, numbers={"pgid": pgid})


def target_cannot_take(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A target that is down, out, destroyed or without statistics (Osd.unusable_reason)."""
    for osd in candidate.gains:
        obstacle = state.snapshot.osds[osd].unusable_reason()
        if obstacle is not None:
            return Verdict(codes.TARGET_UNAVAILABLE, numbers={"osd": osd, "obstacle": obstacle})
    return None


def osd_is_silent(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """An OSD whose statistics are too old to be trusted (snapshot/osds.py)."""
    for osd in candidate.gains + candidate.losses:
        if osd in state.snapshot.stale_osds:
            return Verdict(codes.STALE_STATISTICS, numbers={"osd": osd})
    return None


def pg_is_busy(_state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A PG that Ceph scrubs, repairs or snap-trims."""
    states = candidate.pg.state.split("+")
    for busy, activity in _BUSY_STATES.items():
        if busy in states:
            return Verdict(codes.BUSY, numbers={
                "pgid": candidate.change.pgid, "activity": activity})
    return None


def pg_is_cooling(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """pg_cooldown: a PG that was moved a short while ago stays, unless an OSD above nearfull_ratio
    loses a shard by the change."""
    seconds = state.limits.cooling.get(candidate.change.pgid, 0.0)
    if seconds <= 0.0:
        return None
    for osd_id in candidate.losses:
        osd = state.snapshot.osds.get(osd_id)
        if osd is not None and osd.exceeds(state.snapshot.nearfull_ratio):
            return None
    ends_at = state.snapshot.taken_at + seconds
    return Verdict(codes.COOLDOWN, numbers={
        "pgid": candidate.change.pgid, "ends_at": ends_at, "time": format_deadline(ends_at)})


def is_reserved_for_relief(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A change that only evens out, while relief of an OSD above nearfull_ratio waits: it must not
    take a slot at the OSDs of that relief, nor the misplaced budget that the relief needs."""
    reserved = state.reserved
    if candidate.relieves is not None or reserved.first is None:
        return None
    first, copies = reserved.sharing(candidate.gains + candidate.losses), candidate.copies
    if first is None and state.moves_left > 0 and (
            not copies or state.misplaced_copies + copies + reserved.copies
            <= state.allowed_copies_for(candidate)):
        return None
    return Verdict(codes.NEARFULL_FIRST,
                   numbers={"osd": reserved.first if first is None else first})


def target_is_full(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A target that is nearfull, or would pass fill_limit or the share that its weights leave it
    while everything that comes is there and nothing that leaves is gone."""
    snapshot = state.snapshot
    for osd_id in candidate.gains:
        osd = snapshot.osds[osd_id]
        if osd.reaches(snapshot.nearfull_ratio):
            return Verdict(codes.NEARFULL, numbers={
                "osd": osd_id, "device_class": osd.device_class,
                "needed": raised_nearfull_ratio(snapshot.backfillfull_ratio)})
        peak = state.peak_bytes(osd, candidate)
        if peak > state.fill_limit * osd.size_bytes:
            return Verdict(codes.FILL_LIMIT, numbers={
                "osd": osd_id, "peak_bytes": peak, "fill_limit_ratio": state.fill_limit})
        most = state.share_bytes.get(osd_id)
        # statistics are not exact to half a shard
        if most is not None and peak - state.shard_bytes(candidate, osd_id) // 2 > most:
            return Verdict(codes.REWEIGHT, numbers={
                "osd": osd_id, "peak_bytes": peak, "share_bytes": most,
                "held": held_sentence(osd)})
    return None


def moves_of_round_are_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_moves_per_round: shard moves of one batch. A first change may be larger than that, and
    urgent_misplaced_ratio lets relief of OSDs above backfillfull pass it."""
    most = state.settings.max_moves_per_round
    if state.moves_left == most or candidate.change.shards <= state.moves_left or (
            state.emergency_osd(candidate) is not None):
        return None
    return Verdict(codes.MAX_MOVES, numbers={"max_moves": most})


def misplaced_budget_is_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_misplaced_ratio, less a margin; for relief of OSDs above backfillfull
    urgent_misplaced_ratio where that is more. Where nothing is misplaced one change may go although
    it alone is above the limit."""
    copies, allowed = candidate.copies, state.allowed_copies_for(candidate)
    if (state.misplaced_copies <= 0 or copies <= 0
            or state.misplaced_copies + copies <= allowed):
        return None
    most = state.max_copies_for(candidate)
    limit = most / max(1, state.snapshot.object_copies)
    numbers = {"misplaced_copies": state.misplaced_copies, "copies": copies,
               "limit_ratio": limit, "limit": format_percent(limit),
               "misplaced": _share_of_copies(state, state.misplaced_copies),
               "own": _share_of_copies(state, copies),
               "option": ("urgent_misplaced_ratio" if most > state.max_misplaced_copies
                          else "max_misplaced_ratio")}
    return Verdict(codes.MISPLACED_ONE_PG if copies > allowed else codes.MISPLACED_LIMIT,
                   numbers=numbers)


def backfills_of_osd_are_used_up(state: ThrottleState,
                                 candidate: Candidate) -> Optional[Verdict]:
    """max_backfills_per_osd: shards in flight to an OSD; as many may be in flight from it, but for
    an OSD above backfillfull that urgent_misplaced_ratio is for."""
    most, emergency = state.settings.max_backfills_per_osd, state.emergency_osd(candidate)
    for direction, osds in (("coming", candidate.gains), ("leaving", candidate.losses)):
        for osd in osds if most else ():
            if direction == "leaving" and osd == emergency:
                continue
            load = state.traffic.of(osd)
            shards = load.shards_in if direction == "coming" else load.shards_out
            if shards >= most:
                return Verdict(codes.MAX_BACKFILLS, numbers={
                    "osd": osd, "shards": shards, "max_shards": most, "direction": direction})
    return None


def traffic_of_osd_is_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_transit_ratio: bytes on their way to an OSD, or from it, as a ratio of its size. One
    change may pass it where nothing else is in flight at its OSDs."""
    osd = state.osd_above_transit_limit(candidate)
    if osd is None or _is_alone(state, candidate):
        return None
    return Verdict(codes.MAX_TRANSIT,
                   numbers={"osd": osd, "max_ratio": state.settings.max_transit_ratio})


def target_would_be_fullest(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """A target that also loses a shard holds both for a while: the change waits where that would
    make it the fullest of its device class."""
    for osd_id in candidate.gains:
        osd = state.snapshot.osds[osd_id]
        highest = state.max_utilization[osd.device_class] * osd.size_bytes
        if (state.traffic.of(osd_id).shards_out
                and state.peak_bytes(osd, candidate) > highest):
            return Verdict(codes.SOURCE_FULL,
                           numbers={"osd": osd_id, "device_class": osd.device_class})
    return None


def upmap_items_are_used_up(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """max_upmap_items: pairs of upmap items in the osdmap, for changes that add some."""
    added, pairs = state.added_pairs(candidate.change), state.upmap_pairs
    left = upmap_pairs_left(state.settings.max_upmap_items, len(state.snapshot.pgs), pairs)
    if left is None or added <= 0 or added <= left:
        return None
    return Verdict(codes.UPMAP_ITEMS, numbers={"pairs": pairs, "max_pairs": pairs + left})


def target_has_too_many_pgs(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """mon_max_pg_per_osd. An OSD that others have taken above it may get up to HARD_SHARE (a ratio)
    of the PG shards at which OSDs refuse more (osd_max_pg_per_osd_hard_ratio)."""
    soft, hard = state.limits.max_pg_shards
    for osd in candidate.gains if soft else ():
        count, most, option = state.pg_shards(osd), soft, "mon_max_pg_per_osd"
        if count > most and hard:
            most = int(HARD_SHARE * hard)
            if most != soft:
                option = "osd_max_pg_per_osd_hard_ratio"
        if count + 1 > most:
            return Verdict(codes.PG_COUNT, numbers={
                "osd": osd, "shards": count, "max_shards": most, "option": option})
    return None


#: In the order in which they run.
CHECKS: Tuple[Check, ...] = (
    pool_is_blocked, pg_is_immovable, pg_is_in_flight, target_cannot_take, osd_is_silent,
    pg_is_busy, pg_is_cooling, is_reserved_for_relief, target_is_full, moves_of_round_are_used_up,
    misplaced_budget_is_used_up, backfills_of_osd_are_used_up, traffic_of_osd_is_used_up,
    target_would_be_fullest, upmap_items_are_used_up, target_has_too_many_pgs)


#: A change that moves nothing waits for what tells where the PG's data is, and for nothing else:
#: it makes no OSD fuller, copies nothing, and adds nothing that is misplaced.
_CHECKS_WITHOUT_MOTION: Tuple[Check, ...] = (pg_is_immovable,)


def binding_checks(candidate: Candidate) -> Tuple[Check, ...]:
    """The checks that bind a change: the only place that decides it."""
    return _CHECKS_WITHOUT_MOTION if candidate.moves_nothing else CHECKS


def deferral_of(state: ThrottleState, candidate: Candidate) -> Optional[Verdict]:
    """Returns the first reason for which the change has to wait, or None."""
    for check in binding_checks(candidate):
        deferral = check(state, candidate)
        if deferral is not None:
            return deferral
    return None


def _is_relief(state: ThrottleState, guard: PoolGuard, candidate: Candidate) -> bool:
    """True where the change may go although PGs are degraded, as it empties full OSDs alone."""
    states = candidate.pg.state.split("+")
    return (not guard.inactive and bool(candidate.losses)
            and all(osd in state.relievable_osds for osd in candidate.losses)
            and "active" in states and not {"degraded", "undersized"} & set(states))


def _share_of_copies(state: ThrottleState, copies: int) -> str:
    """Object copies in per cent of all, as the misplaced ratio counts them."""
    return format_percent(copies / max(1, state.snapshot.object_copies))


def _is_alone(state: ThrottleState, candidate: Candidate) -> bool:
    """True where nothing else is in flight at the OSDs of the change."""
    loads = [state.traffic.of(osd) for osd in candidate.gains + candidate.losses]
    return not any(load.shards_in or load.shards_out for load in loads)
