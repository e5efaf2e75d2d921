"""What helps against a reason: its figures, by what the loop has seen and counted, and its action.

For `status` and health checks, which count nothing themselves, and for `explain`.
"""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Dict, List, Optional

from ...control.balancing_scope import bad_options
from ...control.status import BalancerStatus
from ...execution.guards import BEFORE_QUINCY, pg_num_changes
from ...execution.outcomes import ExcludedPgs
from ...observation.cluster_view import BACKFILL, HELD_UP, STUCK, ClusterView
from ...observation.refusals import fullest_osds
from ...plan.options import FILL_MARGIN, OsdFilter, effective_fill_limit, raised_nearfull_ratio
from ...planner.refusal_census import Census, RefusalCount
from ...runtime.formatting import format_deadline, format_percent
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.operator_weights import BY_REWEIGHT
from ...snapshot.reason_codes import FASTER, NOTHING, REASONS, action
from ..answer import Row
from .outage import find_outage, is_relieved
from .reasons import ExplainContext, count_row, pool_counts


#: Of these the figures of the action take longer than a status may.
_EXPLAIN = "'ceph equilibrium explain' counts what is in the way, and names what helps"
_LONG = (codes.GRANULARITY, codes.IMMOVABLE)
#: What ends only while data is copied.
_BY_COPYING = (codes.DEGRADED, codes.PG_NUM_CHANGING, codes.IN_FLIGHT, codes.SOURCE_FULL,
               codes.NEARFULL_FIRST, codes.MOVING)


def state_action(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                 now: float) -> str:
    """What helps against that for which most shards wait, or against the reason of the state; `now`
    in seconds since the epoch."""
    code, refusals = status.reason_code, status.refusals
    context = None if view is None else ExplainContext(view, status, settings, now=now)
    if context is not None and context.view.too_full and status.state in HELD_UP:
        return help_for(codes.TOO_FULL, context)
    if context is not None and status.progress is not None and status.waiting:
        return help_for(status.waiting[0].code, context, **status.waiting[0].figures())
    if status.progress is not None and code == codes.SWITCHED_OFF:
        return NOTHING
    if status.state == STUCK and code in _LONG:
        return _EXPLAIN
    if context is None:
        return action(code, {**status.reason_numbers, **_paused_drain(status)})
    found = None if refusals is None else refusals.census.of(refusals.code)
    snapshot = context.snapshot
    if refusals is None or found is not None and not (   # the view may be a newer one
            found.example[0] in snapshot.pgs and set(found.pools) <= set(snapshot.pools)
            and {*found.targets, *found.example[1:]} <= set(snapshot.osds)):
        return help_for(code, context)
    if code == codes.MIN_GAIN and refusals.rest_code != codes.MIN_GAIN:
        return NOTHING   # the option is not the cause
    return action(code, numbers_of(code, refusals.census.of(code), context._replace(
        excluded=ExcludedPgs(frozenset(), frozenset(), refusals.excluded_seconds),
        max_pg_shards=refusals.max_pg_shards)))


def help_for(code: str, context: ExplainContext, **more: Any) -> str:
    """The action for a reason of the loop; `more`: figures of what waits for it."""
    status, snapshot = context.status, context.snapshot
    numbers: Dict[str, Any] = dict(status.reason_numbers) if status.reason_code == code else {}
    numbers.update(numbers_of(code, None, context))
    numbers.update({key: value for key, value in more.items() if value is not None})
    numbers.update(_paused_drain(status))
    if status.until_at is not None:
        numbers.setdefault("until", format_deadline(status.until_at))
    if code == codes.STALE_STATISTICS:
        numbers["osd"] = _silent_osd(numbers.get("osd"), context.view)
    elif code == codes.FILL_LIMIT and numbers.get("osd") in snapshot.osds and (
            not snapshot.osds[numbers["osd"]].outbound_bytes):
        numbers["osd"] = None   # nothing leaves it
    elif REASONS[code].actions is FASTER:
        numbers["faster"] = _faster(numbers, context)
    elif code in _BY_COPYING:
        outage = find_outage(status, context.view)
        if code == codes.DEGRADED and outage is not None:
            return str(outage["action"])
        for flag in sorted({"nobackfill", "norecover"}.intersection(snapshot.flags)):
            return action(codes.FLAG, {"flag": flag})
    said = action(code, numbers)   # a pool that is stopped does not go on by itself
    return action(codes.MISPREDICTED, {}) if (
        status.mispredicted and said.startswith(NOTHING)) else said


def _paused_drain(status: BalancerStatus) -> Dict[str, Any]:
    """What the action of `off` has where a drain with shards left is paused: `drained`, the names
    as they were given."""
    drains = status.drains
    names = sorted({name for osd, name in drains.drains.names.items()
                    if osd not in drains.empty_osds})
    return {"drained": " ".join(names)} if drains.drains.is_paused and names else {}


def _faster(numbers: Dict[str, Any], context: ExplainContext) -> Optional[str]:
    """What lets more be copied at a time: ours where OSDs are idle, Ceph's own limit where shards
    in flight wait for that, be it at the OSD that is waited for or at half of them all."""
    osd, moves = numbers.get("osd"), context.view.movements
    release, limit = context.snapshot.osd_release, float(numbers.get("limit") or 0.0)
    busy = {one for move in moves if move.is_running for one in (move.source, move.target)}
    if any(not move.is_running for move in moves if osd in (move.source, move.target)) or (
            osd is None and 2 * len(busy) > len(context.snapshot.osds)):
        if release and release not in BEFORE_QUINCY:
            return "osd osd_mclock_profile high_recovery_ops"
        running = Counter(move.target for move in moves if move.is_running)
        return f"osd osd_max_backfills {max(running.values(), default=1) + 1}" if release else None
    if not limit or numbers.get("halved"):
        return None
    more = max(2.0 * limit, 0.02 * float(numbers.get("own") or 0.0))
    return (f"mgr mgr/equilibrium/{numbers.get('option')}"
            f" {more if limit >= 1.0 else min(more, 1.0):g}")


def _silent_osd(osd: Optional[int], view: ClusterView) -> Optional[int]:
    """The OSD that is to be restarted; None where most of those that are up and in are silent:
    that is not the fault of one of them."""
    stale = view.stale_osds | view.snapshot.stale_osds
    alive = [one.id for one in view.snapshot.osds.values() if one.up and one.is_in]
    return None if 2 * len(stale.intersection(alive)) > len(alive) else osd


def numbers_of(code: str, found: Optional[RefusalCount],
               context: ExplainContext) -> Dict[str, Any]:
    """The figures of a reason that its action may name; `found`: its count where it has one."""
    snapshot, settings, view = context.snapshot, context.settings, context.view
    numbers: Dict[str, Any] = {}
    if found is not None:
        numbers.update(pgid=found.example[0], pool=pool_counts(found.pools, snapshot)[0]["name"],
                       device_class=snapshot.osds[found.example[1]].device_class)
    if REASONS[code].option in ("fill_limit", "max_upmap_items", "min_gain", "pg_cooldown"):
        numbers.update(option=REASONS[code].option,
                       limit=getattr(settings, REASONS[code].option))
    if code == codes.FILL_LIMIT:   # `needed`: to their bound and by one shard more, up to the most
        most, limit = (effective_fill_limit(wanted, snapshot.backfillfull_ratio)
                       for wanted in (0.0, settings.fill_limit))
        numbers.update(limit=limit, most=f"backfillfull less {100.0 * FILL_MARGIN:.0f} points,"
                       f" here {format_percent(most)}%")
        bounds = view.utilization_bounds
        if found is not None and bounds is not None and limit < most:
            size = snapshot.pgs[found.example[0]].shard_bytes
            highest = max(bounds.utilizations.get(osd, 0.0) + size / snapshot.osds[osd].size_bytes
                          for osd in found.targets)
            numbers["needed"] = f"{min(math.ceil(100.0 * highest + 1.0) / 100.0, most):.2f}"
    elif code == codes.UPMAP_ITEMS:
        numbers["needed"] = 0 if settings.max_upmap_items == 1.0 else 1
    elif code == codes.PG_COUNT:   # `needed`: a tenth above what the fullest of the targets has
        allowed = context.max_pg_shards[0]
        numbers.update(option="mon_max_pg_per_osd", limit=allowed or None)
        if found is not None:
            counts = [sum(int(shards.get(osd, 0)) for shards in view.counts.soon.values())
                      for osd in (*found.targets, found.example[1])]
            numbers.update(limit=allowed, needed=math.ceil(1.1 * max(allowed, *counts)) + 1)
    elif code == codes.REWEIGHT:
        held = [snapshot.osds[osd] for osd in (found.targets if found else ())
                if snapshot.osds[osd].share < 1.0]
        for least in sorted(held, key=lambda one: (one.share, one.id))[:1]:
            numbers.update({"osd": least.id} if least.held_by == BY_REWEIGHT else {
                "held_osd": least.id, "weight": f"{least.device_size / (1 << 40):.5f}"})
    elif code == codes.POOL_EXCLUDED:
        chosen, pools = settings.pool_ids, sorted(found.pools) if found else []
        left_out = [snapshot.pools[pool].name for pool in pools
                    if chosen is not None and pool not in chosen]
        numbers.update({"pool": left_out[0] if left_out else None}
                       if chosen is not None and (left_out or not pools)
                       else {"option": "device_classes"})
    elif code == codes.OSD_EXCLUDED:
        numbers["option"] = _excluding_option(found, context)
    elif code == codes.NEARFULL:
        numbers.update(needed=raised_nearfull_ratio(snapshot.backfillfull_ratio),
                       limit=snapshot.nearfull_ratio)
    elif code in (codes.BOUND_CAPACITY, codes.BOUND_DOMAIN):
        osd_set = fullest_osds(view, settings.device_classes)[0].osd_set
        if osd_set.bound >= snapshot.nearfull_ratio:   # the class where OSDs have to be nearfull
            numbers["full_class"] = osd_set.device_class
    elif code in (codes.COOLDOWN, codes.GIVEN_UP):
        left = context.excluded.seconds
        numbers.update(option="pg_cooldown", limit=settings.pg_cooldown, until=format_deadline(
            context.now + left) if left and context.now else None)
    elif code == codes.STALE_STATISTICS:
        stale = sorted(view.stale_osds | snapshot.stale_osds)
        numbers["osd"] = _silent_osd(stale[0], view) if stale else None
    elif code == codes.TOO_FULL:
        for entry in view.too_full[:1]:
            helped = entry.state == BACKFILL and is_relieved(
                snapshot.osds[entry.osd], context.status)
            numbers.update(command=entry.command(snapshot.full_ratio), osd=entry.osd,
                           relieved=entry.osd if helped else None)
    elif code == codes.MISPLACED_LIMIT:
        numbers.update(option="max_misplaced_ratio", limit=view.max_misplaced_ratio,
                       halved=pg_num_changes(snapshot))
    elif code == codes.BAD_OPTION:
        bad = bad_options(settings, snapshot)
        numbers["option"] = bad[0].option if bad else None
    return numbers


def _excluding_option(found: Optional[RefusalCount], context: ExplainContext) -> str:
    """The option that leaves out the source of the example, or else its target."""
    settings, crush = context.settings, context.snapshot.crush
    if found is None:
        return "not_buckets" if settings.from_buckets is None else "from_buckets"
    _, source, target = found.example
    sources = context.plan_options().sources
    is_source = sources is not None and source not in sources
    chosen = (OsdFilter(sources=settings.from_buckets).scope(crush).sources if is_source
              else OsdFilter(targets=settings.to_buckets).scope(crush).targets)
    if chosen is None or (source if is_source else target) in chosen:
        return "not_buckets"
    return "from_buckets" if is_source else "to_buckets"


def census_rows(census: Census, context: ExplainContext, settled: bool) -> List[Row]:
    """One for each code. `settled`: a plan has found nothing to do."""
    rows: List[Row] = []
    snapshot = context.snapshot
    for found in census.counts:
        numbers = numbers_of(found.code, found, context)
        text = REASONS[found.code].counted or (
            "allowed, but gains less than min_gain, or than moving it costs" if settled
            else "allowed, and would be more even")
        if found.code == codes.BALANCED and not all(
                snapshot.pools[pool].stored_bytes for pool in found.pools):
            text += ", or the shard is empty"
        pg = snapshot.pgs[found.example[0]]
        pool = snapshot.pools[pg.pool]
        domain = "the CRUSH rule does not allow it"
        for one in (pool.rule.block_at(pg.up.index(found.example[1])).domains[-1:]   # innermost
                    if pool.rule is not None else ()):
            most = one.shards_per_bucket
            domain = (f"the {one.type_name} holds its {most} {'shard' if most == 1 else 'shards'}"
                      " of the PG")
        fill = effective_fill_limit(context.settings.fill_limit, snapshot.backfillfull_ratio)
        figures = {"limit": "", "option": "pool_ids", **numbers, "domain": domain,
                   "trouble": pg.immovable or pool.immovable or "not now",
                   "fill": format_percent(fill)}
        rows.append(count_row(
            found.code, found.pairs, text.format(**figures), numbers.get("option"),
            numbers.get("limit"), useful=found.useful, pools=pool_counts(found.pools, snapshot)))
    return rows
