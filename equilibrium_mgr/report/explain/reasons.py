"""The one reason for which the cluster, an OSD, a pool or a PG is as it is."""
from __future__ import annotations

from typing import Optional, Sequence, Tuple

from ...crush.placement import NO_OSD
from ...execution.change_outcomes import waiting_groups
from ...execution.verdict import WaitingChange
from ...execution.guards import blocked_pools
from ...observation.refusals import (
    COUNTED, MOST_PAIRS, NEAR, Fullest, bound_code, fullest_osds, settled_code)
from ...observation.states import BALANCED, MOVING, OFF, STUCK, THROTTLED
from ...observation.too_full import HELD_UP
from ...plan.model import PoolSpace
from ...planner.bound.lower_bound import OsdSet
from ...planner.refusal_census import Census
from ...runtime.formatting import format_bytes, format_deadline, format_percent, plural
from ...snapshot import immovable_reasons as immovable
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd, Pg, Pool
from ...snapshot.reason_codes import NOTHING, action
from .advice import WORTH_DOING, Advice, domain_advice, pg_num_advice_of
from .at_rest import help_for, state_action
from .bound_text import describe_bound
from .census_rows import census_rows, numbers_of
from .drained_osd import drained_reason
from .outage import osd_outage
from .reason import CountRow, ExplainContext, Reason, counted_text, waiting_rows

_SETTLED = (STUCK, BALANCED)


def cluster_reason(context: ExplainContext) -> Reason:
    """The reason of the state that the cluster is in."""
    status, fullest = context.status, fullest_osds(
        context.view, context.settings.device_classes)
    where = _fullest_text(fullest[0], context) if fullest else _no_set(context)
    what = f"{status.state}: {where}"
    if context.view.too_full and status.state in HELD_UP:
        return Reason(what, codes.TOO_FULL, state_action(
            status, context.view, context.settings, context.now),
            context.view.too_full[0].sentence())
    if status.state in (OFF, *_SETTLED) and fullest:
        return _at_rest(what, fullest[0], context)
    return _under_way(what, context)


def _no_set(context: ExplainContext) -> str:
    if context.view.utilization_bounds is None:
        return "how even the cluster could be is not known"
    return ("no OSD of the device classes that are balanced holds data that could be placed"
            " otherwise" if context.settings.device_classes is not None
            else "no pool has data that could be placed otherwise")


def _fullest_text(fullest: Fullest, context: ExplainContext) -> str:
    return (f"class {fullest.osd_set.device_class} under {', '.join(fullest.osd_set.takes[:3])}:"
            f" {_filled(fullest.osd, context)}, bound {format_percent(fullest.osd_set.bound)}%")


def _filled(osd: Osd, context: ExplainContext) -> str:
    """'osd.13 is at 84.96%', and where it will be if that differs."""
    if not osd.has_statistics:
        return f"osd.{osd.id} has no statistics"
    now = context.view.used_now.get(osd.id, osd.used_bytes) / osd.size_bytes
    then = osd.target_utilization or 0.0
    soon = "" if abs(now - then) < 0.00005 else f" ({format_percent(then)}% when all has arrived)"
    return f"osd.{osd.id} is at {format_percent(now)}%{soon}"


def _under_way(what: str, context: ExplainContext) -> Reason:
    """The reason of a state that something holds up, as the loop has it."""
    status = context.status
    helps = state_action(status, context.view, context.settings, context.now)
    rows = waiting_rows(status.waiting)
    if status.state in (THROTTLED, MOVING) and status.reason_code != codes.MOVING and rows:
        return Reason(what, rows[0].code, helps, _wait_text(rows), rows)
    return Reason(what, status.reason_code, helps, status.reason, rows)


def _at_rest(what: str, fullest: Fullest, context: ExplainContext) -> Reason:
    """The reason where nothing is sent: what the counts for the fullest OSD say."""
    status = context.status
    asked = context.census()
    assert asked is not None   # there is a set, so that bounds are known
    census = asked.of_osd(fullest.osd.id, MOST_PAIRS)
    rows = census_rows(census, context, context.is_settled)
    where = f"on osd.{fullest.osd.id}"
    if status.state == OFF or context.rest_code not in COUNTED:
        text = f"{status.reason}; {counted_text(census, where)}"
        return Reason(what, status.reason_code, help_for(status.reason_code, context), text, rows,
                      census)
    if fullest.above < NEAR:
        return _at_bound(what, fullest.osd_set, context)
    return _counted(what, settled_code(census, context.rest_code), census, where, context,
                    fullest.osd_set)


def _counted(what: str, code: str, census: Census, where: str, context: ExplainContext,
             osd_set: Optional[OsdSet]) -> Reason:
    """The reason that counts have shown."""
    numbers = numbers_of(code, census.of(code), context)
    if code == codes.GRANULARITY and osd_set is not None:
        for found in pg_num_advice_of(census, osd_set, context):
            if found.figures["now_ratio"] - found.figures["then_ratio"] >= WORTH_DOING:
                numbers.update(found.figures)
    if code == codes.IMMOVABLE and numbers.get("pgid"):
        pg = context.snapshot.pgs[numbers["pgid"]]
        helps = _action_for(pg, context)
    elif code == codes.MIN_GAIN and context.rest_code != codes.MIN_GAIN:
        helps = NOTHING   # the option is not the cause
    else:
        helps = action(code, numbers)
    return Reason(what, code, helps, counted_text(census, where),
                  census_rows(census, context, context.is_settled), census)


def _action_for(pg: Pg, context: ExplainContext) -> str:
    pool = context.snapshot.pools[pg.pool]
    held = pg.immovable or pool.immovable
    return NOTHING if held is None else held.action(pg.pgid, pool.name)


def _at_bound(what: str, osd_set: OsdSet, context: ExplainContext) -> Reason:
    """The reason where nothing lower is possible."""
    code = bound_code(osd_set)
    numbers = numbers_of(code, None, context)
    found: Optional[Advice] = domain_advice(osd_set, context)
    if code == codes.BOUND_DOMAIN and found is not None and numbers:
        numbers.update(found.figures)
    return Reason(what, code, action(code, numbers), describe_bound(osd_set, context.snapshot))


def osd_reason(osd: Osd, osd_set: Optional[OsdSet], context: ExplainContext) -> Reason:
    """The reason for which an OSD is as full as it is."""
    obstacle, host = osd.unusable_reason(), osd.host or "none"
    bound = "" if osd_set is None else f", bound {format_percent(osd_set.bound)}%"
    what = f"class {osd.device_class}, host {host}: {_filled(osd, context)}{bound}"
    outage = osd_outage(osd, context)
    if outage is not None:
        code, helps, said = outage
        return Reason(f"{said}. {what}", code, helps)
    if osd.drained:
        return drained_reason(osd.id, what, context)
    if obstacle is not None:
        return Reason(what, codes.TARGET_UNAVAILABLE,
                      action(codes.TARGET_UNAVAILABLE, {"osd": osd.id}),
                      f"no shard may go to it: it is {obstacle}")
    deferred = [row for row in context.status.deferred
                if osd.id in set(row[0].up_before) ^ set(row[0].up_after)]
    if deferred:
        return _deferred(what, deferred, context)
    if osd_set is None:
        return Reason(what, codes.BALANCED, action(codes.BALANCED, {}),
                      "no pool that holds data may use it")
    if (osd.target_utilization or 0.0) < osd_set.bound + NEAR:
        return Reason(what, codes.BALANCED, action(codes.BALANCED, {}),
                      "it is not fuller than the bound of its set")
    asked = context.census()
    assert asked is not None
    return _of_census(what, asked.of_osd(osd.id, MOST_PAIRS), f"on osd.{osd.id}", context, osd_set)


def _of_census(what: str, census: Census, where: str, context: ExplainContext,
               osd_set: Optional[OsdSet]) -> Reason:
    """The counted reason; that of the state where moves are allowed and the state sends none."""
    status = context.status
    if census.reason_code in (codes.MIN_GAIN, codes.BALANCED) and not context.is_settled:
        rows = census_rows(census, context, False)
        if census.reason_code == codes.BALANCED:
            return Reason(what, codes.BALANCED, action(codes.BALANCED, {}),
                          counted_text(census, where), rows, census)
        if status.state in _SETTLED:   # of a drain: nothing else is moved
            return Reason(what, codes.SWITCHED_OFF, action(codes.SWITCHED_OFF, {}),
                          f"automatic balancing is off; {counted_text(census, where)}", rows,
                          census)
        return Reason(what, status.reason_code, help_for(status.reason_code, context),
                      f"{status.reason}; {counted_text(census, where)}", rows, census)
    code = (settled_code(census, context.rest_code) if context.is_settled
            else census.reason_code)
    return _counted(what, code, census, where, context, osd_set)


def _deferred(what: str, deferred: Sequence[WaitingChange], context: ExplainContext) -> Reason:
    """The reason of planned moves that the throttle's last decision deferred."""
    groups = waiting_groups([change for change, _ in deferred], deferred, codes.NEXT_BATCH, "")
    rows = waiting_rows(groups)
    first = rows[0]
    return Reason(what, first.code, help_for(first.code, context, limit=first.limit, osd=first.osd,
                                            option=first.option),
                  _wait_text(rows), rows)


def _wait_text(rows: Sequence[CountRow]) -> str:
    shards = sum(row.number for row in rows)
    return f"{plural(shards, 'planned shard')} {'waits' if shards == 1 else 'wait'}:"


def _pool_text(pool: Pool, now: PoolSpace, soon: PoolSpace, context: ExplainContext) -> str:
    """What a pool can take now, and when all has arrived where that differs."""
    free, later = format_bytes(now.free_bytes), format_bytes(soon.free_bytes)
    what = f"pool {pool.name} can take {free} more"
    if later != free:
        what += f" ({later} when all has arrived)"
    if now.limiting_osd is not None:
        what += f"; full first: {_filled(context.snapshot.osds[now.limiting_osd], context)}"
    return what


def pool_reason(pool: Pool, now: PoolSpace, soon: PoolSpace, osd_set: Optional[OsdSet],
                context: ExplainContext) -> Reason:
    """The reason for which a pool can take no more than it can. `soon`: when all has arrived;
    counted are the targets of the OSD that limits the pool then, `osd_set` is its set."""
    what, limiting = _pool_text(pool, now, soon, context), soon.limiting_osd
    if pool.immovable:
        code = (codes.RULE_UNKNOWN if pool.rule is None else codes.PG_NUM_CHANGING
                if pool.immovable == immovable.PG_NUM_CHANGING else codes.IMMOVABLE)
        return Reason(what, code, pool.immovable.action("PGID", pool.name),
                      f"none of its PGs can be moved: {pool.immovable}")
    if pool.id in context.status.mispredicted:
        return Reason(what, codes.MISPREDICTED, action(codes.MISPREDICTED, {}),
                      "its shards took more than predicted")
    guard = blocked_pools(context.snapshot).get(pool.id)
    if guard is not None:
        return Reason(what, codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason)
    deferred = [row for row in context.status.deferred if _pool_of(row, context) == pool.id]
    if deferred:
        return _deferred(what, deferred, context)
    asked = context.census()
    if limiting is None or asked is None or osd_set is None:
        return Reason(what, codes.BALANCED, action(codes.BALANCED, {}),
                      "no OSD with statistics holds any of it")
    census = asked.of_osd(limiting, MOST_PAIRS, pool.id)
    return _of_census(what, census, f"of it on osd.{limiting}", context, osd_set)


def _pool_of(row: WaitingChange, context: ExplainContext) -> Optional[int]:
    pg = context.snapshot.pgs.get(row[0].pgid)
    return pg.pool if pg is not None else None


def pg_reason(pg: Pg, context: ExplainContext) -> Reason:
    """The reason for which a PG stays where it is."""
    pool = context.snapshot.pools[pg.pool]
    what = (f"pg {pg.pgid} of pool {pool.name}, {format_bytes(pg.shard_bytes)} a shard:"
            f" {', '.join(_shard(osd, context) for osd in pg.up)}")
    held = _pg_obstacle(pg, pool, context)
    if held is not None:
        return Reason(what, held[0], held[1], held[2])
    deferred = [row for row in context.status.deferred if row[0].pgid == pg.pgid]
    if deferred:
        return _deferred(what, deferred, context)
    asked = context.census()
    if asked is None:
        return Reason(what, codes.NOT_READY, action(codes.NOT_READY, {}),
                      "how even the cluster could be is not known")
    return _of_census(what, asked.of_pg(pg, MOST_PAIRS), f"of pg {pg.pgid}", context, None)


def _pg_obstacle(pg: Pg, pool: Pool, context: ExplainContext) -> Optional[Tuple[str, str, str]]:
    """(code, action, sentence) of what holds a PG whatever is planned, or None."""
    for entry in context.view.too_full:
        if pg.pgid in entry.pgids:
            return (codes.TOO_FULL, help_for(codes.TOO_FULL, context),
                    entry.sentence())
    if pg.immovable:
        code = codes.RULE_UNKNOWN if pool.rule is None else codes.IMMOVABLE
        return code, _action_for(pg, context), f"it cannot be moved: {pg.immovable}"
    if pg.is_moving:
        return codes.IN_FLIGHT, help_for(codes.IN_FLIGHT, context), "it is moving"
    if pg.pgid in context.rejected:
        return codes.REJECTED, action(codes.REJECTED, {}), context.rejected[pg.pgid].reason
    guard = blocked_pools(context.snapshot).get(pool.id)
    if guard is not None:
        return codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason
    alone = context.excluded.codes.get(pg.pgid)
    if alone is None:
        return None
    left = context.excluded.seconds_left.get(pg.pgid)
    until = format_deadline(context.now + left) if left and context.now else None
    return alone, action(alone, {"until": until}), "automatic plans leave it alone until then"


def _shard(number: int, context: ExplainContext) -> str:
    osd = context.snapshot.osds.get(number)
    if number == NO_OSD or osd is None or not osd.has_statistics:
        return "no OSD" if number == NO_OSD else f"osd.{number}"
    used = context.view.used_now.get(number, osd.used_bytes)
    return f"osd.{number} {format_percent(used / osd.size_bytes)}%"
