"""A census of refusals as rows for people and JSON, and the figures that its action needs."""
from __future__ import annotations

import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

from ...control.balancing_scope import bad_options
from ...execution.guards import pg_num_changes
from ...observation.cluster_view import ClusterView
from ...observation.refusals import fullest_osds
from ...observation.too_full import BACKFILL
from ...plan.osd_filter import OsdFilter
from ...plan.options import FILL_MARGIN, effective_fill_limit, raised_nearfull_ratio
from ...planner.refusal_census import Census, RefusalCount
from ...runtime.formatting import format_deadline, format_percent
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot
from ...snapshot.operator_weights import BY_REWEIGHT
from ...snapshot.reason_codes import REASONS
from .outage import is_relieved
from .reason import CountRow, ExplainContext, pool_counts

_ALLOWED = {True: "allowed, but gains less than min_gain, or than moving it costs",
            False: "allowed, and would be more even"}


def census_rows(census: Census, context: ExplainContext, settled: bool) -> Tuple[CountRow, ...]:
    """One for each code. `settled`: a plan has found nothing to do."""
    return tuple(_row(found, context, settled) for found in census.counts)


def _row(found: RefusalCount, context: ExplainContext, settled: bool) -> CountRow:
    numbers = numbers_of(found.code, found, context)
    text = REASONS[found.code].counted or _ALLOWED[settled]
    if found.code == codes.BALANCED and not all(
            context.snapshot.pools[pool].stored_bytes for pool in found.pools):
        text += ", or the shard is empty"
    figures = {"domain": _domain(found, context.snapshot), "trouble": _trouble(found, context),
               "fill": format_percent(_fill(context)), "limit": "", "option": "pool_ids", **numbers}
    return CountRow(found.code, found.pairs, text.format(**figures), numbers.get("option"),
                    numbers.get("limit"), None, found.useful,
                    pool_counts(found.pools, context.snapshot))


def numbers_of(code: str, found: Optional[RefusalCount],
               context: ExplainContext) -> Dict[str, Any]:
    """The figures of a reason that its action may name; `found`: its count where it has one."""
    numbers: Dict[str, Any] = {}
    if found is not None:
        pgid, source, _ = found.example
        pools = pool_counts(found.pools, context.snapshot)
        numbers.update(pgid=pgid, pool=pools[0][1],
                       device_class=context.snapshot.osds[source].device_class)
    by_code = _NUMBERS.get(code)
    if by_code is not None:
        numbers.update(by_code(found, context))
    return numbers


def _fill(context: ExplainContext) -> float:
    return effective_fill_limit(context.settings.fill_limit, context.snapshot.backfillfull_ratio)


def _fill_limit(found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    """`needed` lets OSDs be filled to their bound and by one shard more; None beyond the most."""
    most = effective_fill_limit(0.0, context.snapshot.backfillfull_ratio)
    numbers: Dict[str, Any] = {
        "option": "fill_limit", "limit": _fill(context),
        "most": f"backfillfull less {100.0 * FILL_MARGIN:.0f} points, here {format_percent(most)}%"}
    bounds = context.view.utilization_bounds
    if found is None or bounds is None:
        return numbers
    snapshot = context.snapshot
    size = snapshot.pgs[found.example[0]].shard_bytes
    highest = max(bounds.utilizations.get(osd, 0.0) + size / snapshot.osds[osd].size_bytes
                  for osd in found.targets)
    needed = math.ceil(100.0 * highest + 1.0) / 100.0
    if _fill(context) < most:
        numbers["needed"] = f"{min(needed, most):.2f}"
    return numbers


def _upmap_items(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    limit = context.settings.max_upmap_items
    return {"option": "max_upmap_items", "limit": limit, "needed": 0 if limit == 1.0 else 1}


def _pg_count(found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    """`needed` is a tenth above the PG shards that the fullest of the targets has."""
    most = context.max_pg_shards[0]
    if found is None:
        return {"option": "mon_max_pg_per_osd", "limit": most or None}
    counts = dict.fromkeys(found.targets + (found.example[1],), 0)
    for shards in context.view.shards_soon.values():
        for osd in counts:
            counts[osd] += int(shards.get(osd, 0))
    return {"option": "mon_max_pg_per_osd", "limit": most,
            "needed": math.ceil(1.1 * max(most, max(counts.values()))) + 1}


def _reweight(found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    held = [context.snapshot.osds[osd] for osd in (found.targets if found else ())
            if context.snapshot.osds[osd].share < 1.0]
    if not held:
        return {}
    osd = min(held, key=lambda o: (o.share, o.id))
    if osd.held_by == BY_REWEIGHT:
        return {"osd": osd.id}
    return {"held_osd": osd.id, "weight": f"{osd.device_size / (1 << 40):.5f}"}


def _excluded(found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    chosen = context.settings.pool_ids
    pools = sorted(found.pools) if found else []
    if chosen is not None and (not pools or any(pool not in chosen for pool in pools)):
        name = [context.snapshot.pools[pool].name for pool in pools if pool not in chosen]
        return {"pool": name[0] if name else None}
    return {"option": "device_classes"}


def _osd_excluded(found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    """The option that leaves out the source of the example, or else its target."""
    options, settings = context.plan_options(), context.settings
    if found is None:
        return {"option": "not_buckets" if settings.from_buckets is None else "from_buckets"}
    _, source, target = found.example
    is_source = options.sources is not None and source not in options.sources
    chosen = (OsdFilter(sources=settings.from_buckets).scope(context.snapshot.crush).sources
              if is_source else
              OsdFilter(targets=settings.to_buckets).scope(context.snapshot.crush).targets)
    if chosen is None or (source if is_source else target) in chosen:
        return {"option": "not_buckets"}
    return {"option": "from_buckets" if is_source else "to_buckets"}


def _nearfull(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    return {"needed": raised_nearfull_ratio(context.snapshot.backfillfull_ratio),
            "limit": context.snapshot.nearfull_ratio}


def _cooldown(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    left = context.excluded.seconds
    return {"option": "pg_cooldown", "limit": context.settings.pg_cooldown,
            "until": format_deadline(context.now + left) if left and context.now else None}


def _stale(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    stale = sorted(context.view.stale_osds | context.snapshot.stale_osds)
    return {"osd": silent_osd(stale[0], context.view) if stale else None}


def silent_osd(osd: Optional[int], view: ClusterView) -> Optional[int]:
    """The OSD that is to be restarted; None where most of those that are up and in are silent:
    that is not the fault of one of them."""
    stale = view.stale_osds | view.snapshot.stale_osds
    alive = [one.id for one in view.snapshot.osds.values() if one.up and one.is_in]
    return None if 2 * len(stale.intersection(alive)) > len(alive) else osd


def _too_full(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    for entry in context.view.too_full:
        return {"command": entry.command(context.snapshot.full_ratio), "osd": entry.osd,
                "relieved": entry.osd if entry.state == BACKFILL and is_relieved(
                    context.snapshot.osds[entry.osd], context.status) else None}
    return {}


def _min_gain(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    return {"option": "min_gain", "limit": context.settings.min_gain}


def _bound(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    """The class where OSDs have to be nearfull; none where there is room."""
    osd_set = fullest_osds(context.view, context.settings.device_classes)[0].osd_set
    return ({"full_class": osd_set.device_class}
            if osd_set.bound >= context.snapshot.nearfull_ratio else {})


def _misplaced(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    changing = pg_num_changes(context.snapshot)
    return {"option": "max_misplaced_ratio", "limit": context.view.max_misplaced_ratio,
            "halved": changing}


def _bad_option(_found: Optional[RefusalCount], context: ExplainContext) -> Dict[str, Any]:
    bad = bad_options(context.settings, context.snapshot)
    return {"option": bad[0].option if bad else None}


_NUMBERS: Mapping[str, Callable[[Optional[RefusalCount], ExplainContext], Dict[str, Any]]] = {
    codes.FILL_LIMIT: _fill_limit, codes.UPMAP_ITEMS: _upmap_items, codes.PG_COUNT: _pg_count,
    codes.REWEIGHT: _reweight, codes.POOL_EXCLUDED: _excluded, codes.OSD_EXCLUDED: _osd_excluded,
    codes.NEARFULL: _nearfull, codes.BOUND_CAPACITY: _bound, codes.BOUND_DOMAIN: _bound,
    codes.COOLDOWN: _cooldown, codes.GIVEN_UP: _cooldown, codes.STALE_STATISTICS: _stale,
    codes.TOO_FULL: _too_full, codes.MIN_GAIN: _min_gain, codes.MISPLACED_LIMIT: _misplaced,
    codes.BAD_OPTION: _bad_option}


def _trouble(found: RefusalCount, context: ExplainContext) -> str:
    pg = context.snapshot.pgs[found.example[0]]
    return pg.immovable or context.snapshot.pools[pg.pool].immovable or "not now"


def _domain(found: RefusalCount, snapshot: Snapshot) -> str:
    """The innermost failure domain of the rule, as in 'the host holds its 1 shard of the PG'."""
    pg = snapshot.pgs[found.example[0]]
    rule = snapshot.pools[pg.pool].rule
    domains = rule.block_at(pg.up.index(found.example[1])).domains if rule is not None else []
    if not domains:
        return "the CRUSH rule does not allow it"
    most = domains[-1].shards_per_bucket
    shards = "shard" if most == 1 else "shards"
    return f"the {domains[-1].type_name} holds its {most} {shards} of the PG"
