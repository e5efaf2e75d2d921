"""The one reason for which the cluster, an OSD, a pool or a PG is as it is."""
from __future__ import annotations

from typing import Any, Optional, Sequence

from ...crush.placement import NO_OSD
from ...execution.change_outcomes import WaitingGroup, waiting_groups
from ...execution.guards import blocked_pools
from ...execution.verdict import WaitingChange
from ...observation.refusals import (
    COUNTED, MOST_PAIRS, NEAR, bound_code, fullest_osds, settled_code)
from ...observation.states import BALANCED, MOVING, OFF, STUCK, THROTTLED
from ...observation.too_full import HELD_UP
from ...plan.model import PoolSpace
from ...planner.bound.lower_bound import OsdSet
from ...planner.refusal_census import Census
from ...runtime.formatting import format_bytes, format_deadline, format_percent, plural
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import PG_NUM_CHANGING
from ...snapshot.model import Osd, Pg, Pool
from ...snapshot.reason_codes import NOTHING, REASONS, action
from ..drains import is_blocked, stuck_action
from .advice import WORTH_DOING, domain_advice, pg_num_advice_of
from .facts import describe_bound
from .help import census_rows, help_for, numbers_of, state_action
from .outage import osd_outage
from .reason import ExplainContext, Explanation, counted_text, waiting_rows


def cluster_reason(context: ExplainContext) -> Explanation:
    """The reason of the state that the cluster is in."""
    status, view = context.status, context.view
    fullest = fullest_osds(view, context.settings.device_classes)
    where = ("how even the cluster could be is not known" if view.utilization_bounds is None
             else "no pool has data that could be placed otherwise"
             if context.settings.device_classes is None
             else "no OSD of the device classes that are balanced holds data that could be placed"
                  " otherwise")
    for osd_set, osd, _ in fullest[:1]:
        where = (f"class {osd_set.device_class} under {', '.join(osd_set.takes[:3])}:"
                 f" {_filled(osd, context)}, bound {format_percent(osd_set.bound)}%")
    what = f"{status.state}: {where}"
    helps = state_action(status, view, context.settings, context.now)
    if view.too_full and status.state in HELD_UP:
        return Explanation(what, codes.TOO_FULL, helps, view.too_full[0].sentence())
    if not fullest or status.state not in (OFF, STUCK, BALANCED):   # something holds it up
        rows = waiting_rows(status.waiting)
        if status.state in (THROTTLED, MOVING) and status.reason_code != codes.MOVING and rows:
            return Explanation(what, rows[0]["code"], helps, _wait_text(status.waiting), rows)
        return Explanation(what, status.reason_code, helps, status.reason, rows)
    osd_set, osd, above = fullest[0]
    asked = context.census()
    assert asked is not None   # there is a set, so that bounds are known
    census = asked.of_osd(osd.id, MOST_PAIRS)
    if status.state == OFF or context.rest_code not in COUNTED:
        return Explanation(what, status.reason_code, help_for(status.reason_code, context),
                      f"{status.reason}; {counted_text(census, f'on osd.{osd.id}')}",
                      census_rows(census, context, context.is_settled), census)
    if above < NEAR:   # nothing lower is possible
        code = bound_code(osd_set)
        numbers, found = numbers_of(code, None, context), domain_advice(osd_set, context)
        if code == codes.BOUND_DOMAIN and found is not None and numbers:
            numbers.update(found["figures"])
        return _reason(what, code, describe_bound(osd_set, context.snapshot), **numbers)
    return _counted(what, settled_code(census, context.rest_code), census, f"on osd.{osd.id}",
                    context, osd_set)


def _reason(what: str, code: str, text: str, **numbers: Any) -> Explanation:
    return Explanation(what, code, action(code, numbers), text)


def _filled(osd: Osd, context: ExplainContext) -> str:
    """'osd.13 is at 84.96%', and where it will be if that differs."""
    if not osd.has_statistics:
        return f"osd.{osd.id} has no statistics"
    now = context.view.used_now.get(osd.id, osd.used_bytes) / osd.size_bytes
    then = osd.target_utilization or 0.0
    soon = "" if abs(now - then) < 0.00005 else f" ({format_percent(then)}% when all has arrived)"
    return f"osd.{osd.id} is at {format_percent(now)}%{soon}"


def _counted(what: str, code: str, census: Census, where: str, context: ExplainContext,
             osd_set: Optional[OsdSet]) -> Explanation:
    """The reason that counts have shown."""
    numbers = numbers_of(code, census.of(code), context)
    if code == codes.GRANULARITY and osd_set is not None:
        for found in pg_num_advice_of(census, osd_set, context):
            if found["figures"]["now_ratio"] - found["figures"]["then_ratio"] >= WORTH_DOING:
                numbers.update(found["figures"])
    helps = action(code, numbers)
    if code == codes.IMMOVABLE and numbers.get("pgid"):
        helps = _action_for(context.snapshot.pgs[numbers["pgid"]], context)
    elif code == codes.MIN_GAIN and context.rest_code != codes.MIN_GAIN:
        helps = NOTHING   # the option is not the cause
    return Explanation(what, code, helps, counted_text(census, where),
                  census_rows(census, context, context.is_settled), census)


def _action_for(pg: Pg, context: ExplainContext) -> str:
    pool = context.snapshot.pools[pg.pool]
    held = pg.immovable or pool.immovable
    return NOTHING if held is None else held.action(pg.pgid, pool.name)


def _of_census(what: str, census: Census, where: str, context: ExplainContext,
               osd_set: Optional[OsdSet]) -> Explanation:
    """The counted reason; that of the state where moves are allowed and the state sends none."""
    status, code = context.status, census.reason_code
    if context.is_settled or code not in (codes.MIN_GAIN, codes.BALANCED):
        return _counted(what, settled_code(census, context.rest_code) if context.is_settled
                        else code, census, where, context, osd_set)
    text, rows = counted_text(census, where), census_rows(census, context, False)
    if code == codes.BALANCED:
        return Explanation(what, code, action(code, {}), text, rows, census)
    if status.state in (STUCK, BALANCED):   # of a drain: nothing else is moved
        code = codes.SWITCHED_OFF
        return Explanation(what, code, action(code, {}), f"automatic balancing is off; {text}", rows,
                      census)
    return Explanation(what, status.reason_code, help_for(status.reason_code, context),
                  f"{status.reason}; {text}", rows, census)


def _deferred(what: str, deferred: Sequence[WaitingChange], context: ExplainContext) -> Explanation:
    """The reason of planned moves that the throttle's last decision deferred."""
    groups = waiting_groups([change for change, _ in deferred], deferred, codes.NEXT_BATCH, "")
    first = groups[0]
    return Explanation(what, first.code, help_for(first.code, context, limit=first.limit, osd=first.osd,
                                             option=first.option),
                  _wait_text(groups), waiting_rows(groups))


def _wait_text(groups: Sequence[WaitingGroup]) -> str:
    shards = sum(group.shards for group in groups)
    return f"{plural(shards, 'planned shard')} {'waits' if shards == 1 else 'wait'}:"


def osd_reason(osd: Osd, osd_set: Optional[OsdSet], context: ExplainContext) -> Explanation:
    """The reason for which an OSD is as full as it is."""
    bound = "" if osd_set is None else f", bound {format_percent(osd_set.bound)}%"
    what = (f"class {osd.device_class}, host {osd.host or 'none'}: {_filled(osd, context)}{bound}")
    outage, obstacle = osd_outage(osd, context), osd.unusable_reason()
    if outage is not None:
        code, helps, said = outage
        return Explanation(f"{said}. {what}", code, helps)
    if osd.drained:
        return _drained_reason(osd.id, what, context)
    if obstacle is not None:
        return _reason(what, codes.TARGET_UNAVAILABLE, f"no shard may go to it: it is {obstacle}",
                       osd=osd.id)
    deferred = [row for row in context.status.deferred
                if osd.id in set(row[0].up_before) ^ set(row[0].up_after)]
    if deferred:
        return _deferred(what, deferred, context)
    if osd_set is None:
        return _reason(what, codes.BALANCED, "no pool that holds data may use it")
    if (osd.target_utilization or 0.0) < osd_set.bound + NEAR:
        return _reason(what, codes.BALANCED, "it is not fuller than the bound of its set")
    asked = context.census()
    assert asked is not None
    return _of_census(what, asked.of_osd(osd.id, MOST_PAIRS), f"on osd.{osd.id}", context, osd_set)


def _drained_reason(osd: int, what: str, context: ExplainContext) -> Explanation:
    """Why an OSD that is being drained still has shards."""
    status, drains = context.status, context.status.drains
    left = drains.remaining.get(osd)
    if osd in drains.down:
        return _reason(what, codes.TARGET_UNAVAILABLE,
                       f"it is being drained; {drains.down_sentence}", osd=osd)
    if left is None or not left.shards:
        rest = "" if left is None else ", and no shard is left"
        return _reason(what, codes.BALANCED, f"it is being drained{rest}")
    said = (f"it is being drained: {plural(left.shards, 'shard')}, {format_bytes(left.bytes)} left,"
            f" {left.leaving} on their way")
    if drains.drains.is_paused:
        return Explanation(what, codes.SWITCHED_OFF, "'ceph equilibrium drain add"
                      f" osd.{osd}' goes on", f"{said}; paused by 'ceph equilibrium off'")
    if drains.cooling(osd):
        said += f"; {drains.cooling_sentence}"
    stuck = sorted((one for one in drains.held if one.osd == osd), key=lambda one: -one.shards)
    said += "".join(f"; {one.shards} cannot leave: {REASONS[one.code].stuck}, such as pg"
                    f" {one.example}" for one in stuck)
    if is_blocked(status):
        return Explanation(what, status.reason_code,
                      state_action(status, context.view, context.settings, context.now),
                      f"{status.reason}; {said}")
    if not stuck:
        return _reason(what, codes.MOVING, said)
    return Explanation(what, codes.CANNOT_LEAVE, stuck_action(stuck[0], context.settings), said)


def pool_reason(pool: Pool, now: PoolSpace, soon: PoolSpace, osd_set: Optional[OsdSet],
                context: ExplainContext) -> Explanation:
    """The reason for which a pool can take no more than it can. `soon`: when all has arrived;
    counted are the targets of the OSD that limits the pool then, `osd_set` is its set."""
    snapshot, limiting = context.snapshot, soon.limiting_osd
    free, later = format_bytes(now.free_bytes), format_bytes(soon.free_bytes)
    what = f"pool {pool.name} can take {free} more"
    what += f" ({later} when all has arrived)" if later != free else ""
    if now.limiting_osd is not None:
        what += f"; full first: {_filled(snapshot.osds[now.limiting_osd], context)}"
    if pool.immovable:
        code = (codes.RULE_UNKNOWN if pool.rule is None else codes.PG_NUM_CHANGING
                if pool.immovable == PG_NUM_CHANGING else codes.IMMOVABLE)
        return Explanation(what, code, pool.immovable.action("PGID", pool.name),
                      f"none of its PGs can be moved: {pool.immovable}")
    if pool.id in context.status.mispredicted:
        return _reason(what, codes.MISPREDICTED, "its shards took more than predicted")
    guard = blocked_pools(snapshot).get(pool.id)
    if guard is not None:
        return Explanation(what, codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason)
    deferred = [row for row in context.status.deferred
                if row[0].pgid in snapshot.pgs and snapshot.pgs[row[0].pgid].pool == pool.id]
    if deferred:
        return _deferred(what, deferred, context)
    asked = context.census()
    if limiting is None or asked is None or osd_set is None:
        return _reason(what, codes.BALANCED, "no OSD with statistics holds any of it")
    return _of_census(what, asked.of_osd(limiting, MOST_PAIRS, pool.id), f"of it on osd.{limiting}",
                      context, osd_set)


def pg_reason(pg: Pg, context: ExplainContext) -> Explanation:
    """The reason for which a PG stays where it is: what holds it whatever is planned, what defers
    its planned moves, or what refuses any."""
    pool, pgid = context.snapshot.pools[pg.pool], pg.pgid
    what = (f"pg {pgid} of pool {pool.name}, {format_bytes(pg.shard_bytes)} a shard:"
            f" {', '.join(_shard(osd, context) for osd in pg.up)}")
    for entry in context.view.too_full:
        if pgid in entry.pgids:
            return Explanation(what, codes.TOO_FULL, help_for(codes.TOO_FULL, context),
                          entry.sentence())
    if pg.immovable:
        return Explanation(what, codes.RULE_UNKNOWN if pool.rule is None else codes.IMMOVABLE,
                      _action_for(pg, context), f"it cannot be moved: {pg.immovable}")
    if pg.is_moving:
        return Explanation(what, codes.IN_FLIGHT, help_for(codes.IN_FLIGHT, context), "it is moving")
    if pgid in context.rejected:
        return _reason(what, codes.REJECTED, context.rejected[pgid].reason)
    guard = blocked_pools(context.snapshot).get(pool.id)
    if guard is not None:
        return Explanation(what, codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason)
    alone, left = context.excluded.codes.get(pgid), context.excluded.seconds_left.get(pgid)
    if alone is not None:
        return _reason(what, alone, "automatic plans leave it alone until then",
                       until=format_deadline(context.now + left) if left and context.now else None)
    deferred = [row for row in context.status.deferred if row[0].pgid == pgid]
    if deferred:
        return _deferred(what, deferred, context)
    asked = context.census()
    if asked is None:
        return _reason(what, codes.NOT_READY, "how even the cluster could be is not known")
    return _of_census(what, asked.of_pg(pg, MOST_PAIRS), f"of pg {pgid}", context, None)


def _shard(number: int, context: ExplainContext) -> str:
    osd = context.snapshot.osds.get(number)
    if number == NO_OSD or osd is None or not osd.has_statistics:
        return "no OSD" if number == NO_OSD else f"osd.{number}"
    used = context.view.used_now.get(number, osd.used_bytes)
    return f"osd.{number} {format_percent(used / osd.size_bytes)}%"
