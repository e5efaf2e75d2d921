"""Finds the one reason why the cluster, an OSD, a pool or a PG is as it is, the counts behind it,
and the action against it."""
from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from ...crush.upmap_check import kept_rule
from ...execution.guards import blocked_pools
from ...execution.outcomes import WaitingGroup, waiting_groups
from ...execution.size_check import sentence
from ...observation.cluster_view import BALANCED, MOVING, OFF, STUCK, THROTTLED
from ...observation.refusals import (
    COUNTED, MOST_PAIRS, NEAR, Fullest, bound_code, fullest_osds, idle_code)
from ...plan.model import PgChange, PoolSpace
from ...planner.bound.lower_bound import OsdSet
from ...planner.refusal_census import Census, RefusalCount
from ...runtime.formatting import format_bytes, format_deadline, format_percent, plural
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import MONITOR_REJECTS_CRUSH
from ...snapshot.model import Osd, Pg, Pool, pool_of
from ...snapshot.operator_weights import full_weight
from ..answer import Row
from ..operations import drain_sentence, is_blocked, stuck_action
from .advice import help_for, pg_num_advice, state_action
from .context import ExplainContext
from .facts import describe_bound, filled, osds_text
from .figures import numbers_of
from .outage import osd_outage, unused_hosts


class Explanation(NamedTuple):
    """The explained thing, the reason, and the action."""

    what: str
    code: str
    action: str
    text: str = ""                    # behind the code: a head for the rows, or a sentence
    rows: Sequence[Row] = ()          # counts, JSON-ready
    census: Optional[Census] = None   # of the rows, if they count refusals
    advice: Sequence[Row] = ()        # against a bound that no move can lower


def _reason(what: str, code: str, text: str, **numbers: Any) -> Explanation:
    return Explanation(what, code, codes.action(code, numbers), text)


def _of_loop(what: str, code: str, text: str, context: ExplainContext) -> Explanation:
    """Returns a reason of the loop, with its figures."""
    return Explanation(what, code, help_for(code, context), text)


# -- the cluster -----------------------------------------------------------------------------------

def cluster_reason(context: ExplainContext) -> Explanation:
    """Returns the reason of the state that the cluster is in."""
    status = context.status
    view = context.view
    fullest = fullest_osds(view, context.settings.device_classes)
    what = f"{status.state}: {_fullest_text(fullest, context)}"
    action = state_action(status, view, context.settings, context.now)
    if context.is_too_full:
        return Explanation(what, codes.TOO_FULL, action, view.too_full[0].sentence())
    if not fullest or status.state not in (OFF, STUCK, BALANCED):
        rows = waiting_rows(status.waiting)
        if rows and status.state in (THROTTLED, MOVING) and status.reason_code != codes.MOVING:
            return Explanation(what, rows[0]["code"], action, _wait_text(status.waiting), rows)
        return Explanation(what, status.reason_code, action, status.reason, rows)
    osd_set, osd, above = fullest[0]
    census = _census_of(osd.id, context)
    where = f"on osd.{osd.id}"
    if status.state == OFF or context.rest_code not in COUNTED:
        return _by_state(_counts(what, census, where, context), context)
    if above < NEAR:   # nothing lower is possible
        code = bound_code(osd_set)
        return _reason(what, code, describe_bound(osd_set, context.snapshot),
                       **numbers_of(code, None, context))
    return _of_census(what, census, where, context, osd_set)


def _fullest_text(fullest: Sequence[Fullest], context: ExplainContext) -> str:
    if fullest:
        osd_set, osd, _ = fullest[0]
        return (f"class {osd_set.name} under {', '.join(osd_set.takes[:3])}:"
                f" {filled(osd, context)}, bound {format_percent(osd_set.bound)}%")
    if context.view.utilization_bounds is None:
        return "how even the cluster could be is not known"
    return "no pool has data that balancing could place otherwise"


def waiting_rows(groups: Sequence[WaitingGroup]) -> List[Row]:
    """Returns the rows of shards that wait, as `status` groups them; JSON-ready."""
    return [{"code": group.code, "count": group.shards, "text": group.waits_for}
            for group in groups]


def _wait_text(groups: Sequence[WaitingGroup]) -> str:
    shards = sum(group.shards for group in groups)
    return f"{plural(shards, 'planned shard waits', 'planned shards wait')}:"


# -- counts ----------------------------------------------------------------------------------------

def _census_of(osd: int, context: ExplainContext, pool: Optional[int] = None) -> Census:
    """Counts why the shards of an OSD, or those of one pool there, stay. The caller knows that
    there are bounds."""
    asked = context.census()
    assert asked is not None
    return asked.of_osd(osd, MOST_PAIRS, pool)


def _counts(what: str, census: Census, where: str, context: ExplainContext) -> Explanation:
    """Returns the sum of a census, as in '36 shards on osd.13 x 13 targets:', with one row for each
    code, JSON-ready: the number of pairs of a shard and a target."""
    text = f"no shard {where} has a target"
    if census.pairs:
        counted = plural(census.shards, "shard")
        if census.counted < census.shards:
            counted += f" (the first {census.counted} of {census.shards})"
        text = f"{counted} {where} x {census.pairs / census.counted:.0f} targets:"
    rows = [{"code": found.code, "count": found.pairs, "text": _counted_text(found, context)}
            for found in census.counts]
    return Explanation(what, census.reason_code, codes.NOTHING, text, rows, census)


def _counted_text(found: RefusalCount, context: ExplainContext) -> str:
    """Returns why no plan makes the moves that have a code: the check that rejects them, or for
    allowed moves that they gain too little or are not planned yet."""
    said = codes.REASONS[found.code].counted
    if not said:
        if context.is_idle:
            return "allowed, but gains less than min_gain, or than moving it costs"
        return "allowed, and would be more even"
    pgid, source, _ = found.example
    pg = context.snapshot.pgs[pgid]
    pool = context.snapshot.pools[pg.pool]
    figures = {
        "option": "pool_ids",
        "domain": _domain_text(pg, source, pool),
        "trouble": pg.immovable or pool.immovable or "not now",
        **numbers_of(found.code, found, context)}
    return said.format(**figures)


def _domain_text(pg: Pg, osd: int, pool: Pool) -> str:
    """Says that the failure domain of a target has all shards of the PG that it may have. `osd`:
    where the shard is."""
    domains = pool.rule.block_at(pg.up.index(osd)).domains if pool.rule is not None else ()
    if not domains:
        return "the CRUSH rule does not allow it"
    last = domains[-1]
    return f"the {last.type_name} holds its {plural(last.shards_per_bucket, 'shard')} of the PG"


def _by_state(found: Explanation, context: ExplainContext) -> Explanation:
    """Returns the reason of the state, with the counts. Moves of the plan under way have their own
    reasons."""
    if context.status.progress is not None:
        return found._replace(code=codes.MOVING, action=codes.action(codes.MOVING, {}),
                              text=f"the plan under way makes other moves; {found.text}")
    code = context.status.reason_code
    return found._replace(code=code, action=help_for(code, context),
                          text=f"{context.status.reason}; {found.text}")


def _of_census(what: str, census: Census, where: str, context: ExplainContext,
               osd_set: Optional[OsdSet], pool: Optional[Pool] = None) -> Explanation:
    """Returns the counted reason with its action, and advice on pg_num; or the reason of the state,
    if that is why allowed moves are not made. `pool`: the pool whose free space is explained.

    MIN_GAIN in a census means that moves are allowed and would gain, but are not planned.
    """
    found = _counts(what, census, where, context)
    code = census.reason_code
    if context.is_idle:
        code = idle_code(census, context.rest_code)
    elif code == codes.MIN_GAIN:
        if context.status.state not in (STUCK, BALANCED):
            return _by_state(found, context)
        # a drain has moved all that it can; nothing else is moved
        return found._replace(
            code=codes.SWITCHED_OFF, action=codes.action(codes.SWITCHED_OFF, {}),
            text=f"automatic balancing is off; {found.text}")
    elif code == codes.BALANCED:
        return found
    numbers = numbers_of(code, census.of(code), context)
    action = codes.action(code, numbers)
    if code == codes.IMMOVABLE:
        action = action_for(context.snapshot.pgs[numbers["pgid"]], context)
    elif code == codes.MIN_GAIN and context.rest_code != codes.MIN_GAIN:
        action = codes.NOTHING   # the option is not the cause
    advice: List[Row] = []
    is_at_end = context.is_idle or code == codes.GRANULARITY
    if osd_set is not None and is_at_end and action.startswith(codes.NOTHING):
        advice = pg_num_advice(osd_set, context, pool)
    for one in advice:
        if one["figures"]["then_ratio"] is not None:
            action = codes.action(codes.GRANULARITY, one["figures"])
    return found._replace(code=code, action=action, advice=advice)


def _held_up(what: str, pool: Optional[Pool], waits: Callable[[PgChange], bool],
             context: ExplainContext) -> Optional[Explanation]:
    """Returns why the module sends no moves of the pool, or why the throttle deferred planned moves
    in its last decision; None if neither is so."""
    guard = blocked_pools(context.snapshot).get(pool.id) if pool is not None else None
    planned = context.status.wanted
    if guard is not None and (not planned or any(map(waits, planned))):
        return _of_loop(what, codes.DEGRADED, guard.reason, context)
    deferred = [row for row in context.status.deferred if waits(row[0])]
    if not deferred:
        return None
    groups = waiting_groups([change for change, _ in deferred], deferred, codes.NEXT_BATCH, "")
    first = groups[0]
    action = help_for(first.code, context, limit=first.limit, osd=first.osd, option=first.option)
    return Explanation(what, first.code, action, _wait_text(groups), waiting_rows(groups))


# -- an OSD ----------------------------------------------------------------------------------------

def osd_reason(osd: Osd, osd_set: Optional[OsdSet], context: ExplainContext) -> Explanation:
    """Returns why an OSD is as full as it is."""
    view = context.view
    number = osd.id
    what = f"class {osd.device_class}, host {osd.host or 'none'}: {filled(osd, context)}"
    if osd_set is not None:
        what += f", bound {format_percent(osd_set.bound)}%"
    outage = osd_outage(osd, context.status, view)
    obstacle = osd.unusable_reason()
    if outage is not None:
        code, action, said = outage
        return Explanation(f"{said}. {what}", code, action)
    if osd.drained:
        return _drained_reason(number, what, context)
    if obstacle is not None:
        return _unusable_reason(osd, what, obstacle)
    if context.is_too_full:
        first = view.too_full[0]
        if first.osd == number:
            return _of_loop(what, codes.TOO_FULL, first.sentence(), context)
    held_up = _held_up(
        what, None, lambda change: number in change.gained_by | change.lost_by, context)
    if held_up is not None:
        return held_up
    if osd_set is None:
        return _unused_reason(osd, what, context)
    highest = osd_set.bound + NEAR
    if (osd.target_utilization or 0.0) < highest:
        low = "no fuller than the bound of its set, or by less than half a point"
        if view.utilization_now(number) >= highest:
            return _reason(what, codes.MOVING, f"data leaves it, and then it is {low}")
        return _reason(what, codes.BALANCED, f"it is {low}")
    return _of_census(what, _census_of(number, context), f"on osd.{number}", context, osd_set)


def _unusable_reason(osd: Osd, what: str, obstacle: str) -> Explanation:
    """Returns the reason of an OSD that is out, destroyed or without statistics."""
    code = codes.TARGET_UNAVAILABLE
    if obstacle == "without statistics":
        code = codes.STALE_STATISTICS
    out = None
    if osd.up and obstacle == "out":
        out = osd.id
    return _reason(what, code, f"no shard may go to it: it is {obstacle}", osd=osd.id, out=out)


def _unused_reason(osd: Osd, what: str, context: ExplainContext) -> Explanation:
    """Returns why no pool places data on an OSD."""
    crush = context.snapshot.crush
    if not any(crush.subtree(bucket).weights.get(osd.id) for bucket in crush.buckets):
        return Explanation(
            what, codes.REWEIGHT, f"{codes.NOTHING}; 'ceph osd crush reweight osd.{osd.id}"
            f" {full_weight(osd)}' gives it data", "its CRUSH weight is 0")
    for host in unused_hosts(context.snapshot):
        if osd.id in host["osds"]:
            return _reason(what, codes.BALANCED, host["sentence"])
    return _reason(what, codes.BALANCED, "no pool that holds data may use it")


def _drained_reason(osd: int, what: str, context: ExplainContext) -> Explanation:
    """Returns why an OSD that is being drained still has shards."""
    status = context.status
    drains = context.status.drains
    said = f"it is being drained; {drain_sentence(drains)}"
    if drains.drains.is_paused:
        return _of_loop(what, codes.SWITCHED_OFF, said, context)
    if is_blocked(status):
        action = state_action(status, context.view, context.settings, context.now)
        return Explanation(what, status.reason_code, action, f"{status.reason}; {said}")
    stuck = [one for one in drains.stuck if one.osd == osd]
    if stuck:
        most = max(stuck, key=lambda one: one.shards)
        why = codes.REASONS[most.code].stuck
        return Explanation(what, codes.CANNOT_LEAVE, stuck_action(most, context.settings),
                           f"{said}: {why}, such as pg {most.example}")
    left = drains.remaining.get(osd)
    if left is not None and left.shards:
        return _reason(what, codes.MOVING, said)
    return _reason(what, codes.BALANCED, said)


# -- a pool ----------------------------------------------------------------------------------------

def pool_reason(pool: Pool, now: PoolSpace, soon: PoolSpace, osd_set: Optional[OsdSet],
                context: ExplainContext) -> Explanation:
    """Returns why a pool can take no more than it can.

    `soon`: its space when all has arrived. The census is of the OSD that limits the pool then;
    `osd_set` is the set of that OSD.
    """
    snapshot = context.snapshot
    limiting = soon.limiting_osd
    free = format_bytes(now.free_bytes)
    later = format_bytes(soon.free_bytes)
    what = f"pool {pool.name} can take {free} more"
    if later != free:
        what += f" ({later} when all has arrived)"
    if now.limiting_osd is not None:
        what += f"; full first: {filled(snapshot.osds[now.limiting_osd], context)}"
    if pool.immovable:
        return Explanation(what, _immovable_code(pool), pool.immovable.action("PGID", pool.name),
                           f"none of its PGs can be moved: {pool.immovable}")
    mispredicted = context.status.mispredicted.get(pool.id)
    if mispredicted is not None:
        return _reason(what, codes.MISPREDICTED, sentence(mispredicted, pool.name))
    held_up = _held_up(what, pool, lambda change: pool_of(change.pgid) == pool.id, context)
    if held_up is not None:
        return held_up
    if limiting is None or osd_set is None:
        return _reason(what, codes.BALANCED, "no OSD with statistics holds any of it")
    census = _census_of(limiting, context, pool.id)
    return _of_census(what, census, f"of it on osd.{limiting}", context, osd_set, pool)


def _immovable_code(pool: Pool) -> str:
    if pool.rule is None:
        return codes.RULE_UNKNOWN
    return codes.IMMOVABLE


# -- a PG ------------------------------------------------------------------------------------------

def pg_line(pg: Pg, context: ExplainContext) -> str:
    """Returns one line about a PG, and about the OSDs that it is on."""
    snapshot = context.snapshot
    shards = []
    for number in pg.up:
        osd = snapshot.osds.get(number)
        if osd is None or not osd.has_statistics:
            shards.append(osds_text([number]))
        else:
            shards.append(f"osd.{number} {format_percent(context.view.utilization_now(number))}%")
    return (f"pg {pg.pgid} of pool {snapshot.pools[pg.pool].name},"
            f" {format_bytes(pg.shard_bytes)} a shard: {', '.join(shards)}")


def action_for(pg: Pg, context: ExplainContext) -> str:
    """Returns the action that lets an immovable PG move; nothing to do if the PG is movable."""
    snapshot = context.snapshot
    pool = snapshot.pools[pg.pool]
    immovable = pg.immovable or pool.immovable
    if immovable is None:
        return codes.NOTHING
    steps = None
    if immovable == MONITOR_REJECTS_CRUSH:
        steps = kept_rule(snapshot.crush, snapshot.crush.rules[pool.rule_id], pg.up)
    if steps is None:
        return immovable.action(pg.pgid, pool.name)
    return (f"give pool {pool.name} an equivalent rule whose upmap items monitors keep: {steps};"
            f" 'ceph osd set norebalance', 'ceph osd pool set {pool.name} crush_rule RULE', 'ceph"
            " equilibrium freeze' until nothing is remapped, 'ceph osd unset norebalance' and 'ceph"
            " equilibrium on': it copies what balancing needs")


def pg_reason(pg: Pg, context: ExplainContext) -> Explanation:
    """Returns why a PG stays where it is: nothing may move it, the throttle defers its planned
    moves, or the planner rejects every move."""
    pool = context.snapshot.pools[pg.pool]
    pgid = pg.pgid
    what = pg_line(pg, context)
    for entry in context.view.too_full:
        if pgid in entry.pgids:
            return _of_loop(what, codes.TOO_FULL, entry.sentence(), context)
    if pg.immovable:
        return Explanation(what, _immovable_code(pool), action_for(pg, context),
                           f"it cannot be moved: {pg.immovable}")
    if pg.is_moving:
        return _of_loop(what, codes.IN_FLIGHT, "it is moving", context)
    rejected = context.rejected.get(pgid)
    if rejected is not None:
        if rejected.withheld_by:
            osd, _ = rejected.withheld_by[0]
            return _reason(what, codes.PG_COUNT, rejected.reason, withholds=osd)
        return _reason(what, codes.REJECTED, rejected.reason)
    held_up = _held_up(what, pool, lambda change: change.pgid == pgid, context)
    if held_up is not None:
        return held_up
    excluded = context.excluded
    alone = excluded.codes.get(pgid)
    left = excluded.seconds_left.get(pgid)
    if alone is not None:
        until = None
        if left:
            until = format_deadline(context.now + left)
        return _reason(what, alone, "automatic plans leave it alone for now", until=until)
    asked = context.census()
    if asked is None:
        return _reason(what, codes.NOT_READY, "how even the cluster could be is not known")
    return _of_census(what, asked.of_pg(pg, MOST_PAIRS), f"of pg {pgid}", context, None)
