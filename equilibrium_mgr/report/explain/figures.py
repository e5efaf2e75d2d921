"""Computes the figures that the action of a reason names, in a table by code."""
from __future__ import annotations

import math
from collections import Counter
from typing import Any, Callable, Dict, Mapping, Optional, Set

from ...control.balancing_scope import bad_options
from ...execution.guards import BEFORE_QUINCY, changing_pg_nums
from ...observation.cluster_view import ClusterView, TooFull
from ...observation.refusals import fullest_osds
from ...plan.options import (
    FILL_MARGIN, HARD_SHARE, effective_fill_limit, raised_nearfull_ratio)
from ...planner.refusal_census import RefusalCount
from ...runtime.formatting import format_deadline, format_percent
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd
from ...snapshot.operator_weights import BY_REWEIGHT, full_weight
from ...snapshot.pg_states import BACKFILL_TOOFULL
from .context import ExplainContext
from .relief import is_relieved


Figures = Dict[str, Any]

#: No max_misplaced_ratio above this is named: clients wait for backfills.
_MOST_MISPLACED = 0.2


def numbers_of(code: str, found: Optional[RefusalCount], context: ExplainContext) -> Figures:
    """Returns the figures of a reason that its action may name; `found`: its count if it has
    one."""
    numbers: Figures = {}
    if found is not None:
        snapshot = context.snapshot
        counts = found.pools
        pgid, source, _ = found.example
        pool = min(counts, key=lambda pool: (-counts[pool], pool))
        numbers.update(
            pgid=pgid,
            pool=snapshot.pools[pool].name,
            device_class=snapshot.osds[source].device_class)
    compute = _FIGURES.get(code)
    if compute is not None:
        numbers.update(compute(found, context))
    elif code in codes.FOR_A_TIME:
        numbers.update(_until(code, context))
    return numbers


def _fill_limit(found: Optional[RefusalCount], context: ExplainContext) -> Figures:
    """Returns the figures for the fill limit. `needed` is a limit that lets a shard go to the
    fullest of the targets at its bound; it is never above `most`."""
    snapshot = context.snapshot
    bounds = context.view.utilization_bounds
    most = effective_fill_limit(0.0, snapshot.backfillfull_ratio)
    limit = effective_fill_limit(context.settings.fill_limit, snapshot.backfillfull_ratio)
    numbers: Figures = {
        "fill": format_percent(limit),
        "most": f"backfillfull less {100.0 * FILL_MARGIN:.0f} points, here {format_percent(most)}%"}
    if limit >= most:
        return numbers
    numbers["lower"] = limit
    if found is not None and bounds is not None:
        shard = snapshot.pgs[found.example[0]].shard_bytes
        highest = max([bounds.utilizations.get(osd, 0.0) + shard / snapshot.osds[osd].size_bytes
                       for osd in found.targets])
        needed = math.ceil(100.0 * highest + 1.0) / 100.0
        numbers["needed"] = f"{min(needed, most):.2f}"
    return numbers


def _max_upmap_items(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    limit = context.settings.max_upmap_items
    return {"limit": limit, "needed": int(limit != 1.0)}


def _pg_count(found: Optional[RefusalCount], context: ExplainContext) -> Figures:
    """Returns the figures for the limit of PG shards. `needed`: an
    osd_max_pg_per_osd_hard_ratio that allows a tenth more than the OSD with most of them has."""
    mean, allowed = context.max_pg_shards
    numbers: Figures = {"limit": allowed}
    if found is None or not mean:
        return numbers
    most = allowed
    for osd in (*found.targets, found.example[1]):
        shards = [int(of_pool.get(osd, 0)) for of_pool in context.view.counts.soon.values()]
        most = max(most, sum(shards))
    tenths = math.ceil(10.0 * (1.1 * most + 1) / (HARD_SHARE * mean))
    numbers["needed"] = tenths / 10.0
    return numbers


def _reweight(found: Optional[RefusalCount], context: ExplainContext) -> Figures:
    osds = context.snapshot.osds
    if found is None:
        return {}
    lowest = min([osds[osd] for osd in found.targets], key=lambda osd: (osd.share, osd.id))
    if lowest.share >= 1.0:
        return {}
    return weight_figures(lowest)


def weight_figures(osd: Osd) -> Figures:
    """Returns the figures of the command that gives the OSD its whole size again."""
    if osd.held_by == BY_REWEIGHT:
        return {"osd": osd.id}
    return {"osd": None, "held_osd": osd.id, "weight": full_weight(osd)}


def _pool_excluded(found: Optional[RefusalCount], context: ExplainContext) -> Figures:
    chosen = context.settings.pool_ids
    if chosen is None:
        return {"option": "device_classes"}
    if found is None:
        return {}
    left_out = [pool for pool in found.pools if pool not in chosen]
    if not left_out:
        return {"option": "device_classes"}
    return {"pool": context.snapshot.pools[min(left_out)].name}


def _osd_excluded(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    return {"option": excluding_option(context.settings)}


def excluding_option(settings: Settings) -> str:
    """Returns the name of the first option that is set and filters OSDs; `not_buckets` if none
    is."""
    for name in ("to_buckets", "not_buckets", "from_buckets"):
        if getattr(settings, name) is not None:
            return name
    return "not_buckets"


def _nearfull(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    return {"needed": raised_nearfull_ratio(context.snapshot.backfillfull_ratio)}


def _bound(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    """Returns `full_class`: the OSD set of the fullest OSD, if the bound of that set is at or above
    nearfull_ratio."""
    fullest = fullest_osds(context.view, context.settings.device_classes)
    if not fullest or fullest[0].osd_set.bound < context.snapshot.nearfull_ratio:
        return {}
    return {"full_class": fullest[0].osd_set.name}


def _until(code: str, context: ExplainContext) -> Figures:
    left = context.excluded.seconds_of(code)
    if not left:
        return {}
    return {"until": format_deadline(context.now + left)}


def _stale_statistics(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    view = context.view
    stale = view.stale_osds | view.snapshot.stale_osds
    if not stale or are_most_silent(view):
        return {"osd": None}
    return {"osd": min(stale)}


def are_most_silent(view: ClusterView) -> bool:
    """Returns True if most OSDs that are up and in do not report: no single OSD is at fault."""
    alive = view.snapshot.alive
    stale = view.stale_osds | view.snapshot.stale_osds
    return 2 * len(stale & alive) > len(alive)


def _too_full(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    snapshot = context.snapshot
    view = context.view
    if not view.too_full:
        return {}
    entry = view.too_full[0]
    numbers: Figures = {
        "command": entry.command(snapshot.full_ratio),
        "osd": entry.osd,
        "faster": _room_by_limit(entry, context)}
    osd = snapshot.osds[entry.osd]
    if entry.state == BACKFILL_TOOFULL and is_relieved(osd, context.status, view):
        numbers["relieved"] = entry.osd
    return numbers


def _room_by_limit(entry: TooFull, context: ExplainContext) -> Optional[str]:
    """Returns the option that lets the plan make room on an OSD; None if the misplaced limit is not
    in the way, or would have to allow for too much that is misplaced."""
    view = context.view
    status = context.status
    needed = _needed_misplaced(view, 0.01)
    if needed > _MOST_MISPLACED:
        return None
    if codes.MISPLACED_LIMIT not in [group.code for group in status.waiting]:
        return None
    if not any(entry.osd in change.up_before for change in status.wanted):
        return None
    option = "max_misplaced_ratio"
    if view.snapshot.osds[entry.osd].reaches(view.snapshot.backfillfull_ratio):
        option = "urgent_misplaced_ratio"
    return f"mgr mgr/equilibrium/{option} {needed:g}"


def _needed_misplaced(view: ClusterView, own: float) -> float:
    """Returns the limit that lets a shard of `own` copies go in addition to the misplaced copies;
    ratios."""
    return math.ceil(100.0 * (1.1 * view.misplaced_ratio + own)) / 100.0


def _misplaced_limit(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    return {"option": "max_misplaced_ratio",
            "limit": context.view.max_misplaced_ratio,
            "halved": bool(changing_pg_nums(context.snapshot))}


def _bad_option(_: Optional[RefusalCount], context: ExplainContext) -> Figures:
    bad = bad_options(context.settings, context.snapshot)
    if not bad:
        return {"option": None}
    return {"option": bad[0].option}


_FIGURES: Mapping[str, Callable[[Optional[RefusalCount], ExplainContext], Figures]] = {
    codes.FILL_LIMIT: _fill_limit,
    codes.UPMAP_ITEMS: _max_upmap_items,
    codes.PG_COUNT: _pg_count,
    codes.REWEIGHT: _reweight,
    codes.POOL_EXCLUDED: _pool_excluded,
    codes.OSD_EXCLUDED: _osd_excluded,
    codes.NEARFULL: _nearfull,
    codes.BOUND_CAPACITY: _bound,
    codes.BOUND_DOMAIN: _bound,
    codes.STALE_STATISTICS: _stale_statistics,
    codes.TOO_FULL: _too_full,
    codes.MISPLACED_LIMIT: _misplaced_limit,
    codes.BAD_OPTION: _bad_option,
}


# -- what copies faster ----------------------------------------------------------------------------

def faster(numbers: Mapping[str, Any], context: ExplainContext) -> Optional[str]:
    """Returns the option, with its value, that lets more be copied at a time; None if none helps.

    It is Ceph's limit of backfills at an OSD if a shard to or from the OSD of the reason waits for
    one, or if the reason names no OSD and more than half of the OSDs copy already.
    Otherwise it is the limit of this module that holds the moves back, doubled.
    """
    osd = numbers.get("osd")
    view = context.view
    busy: Set[Optional[int]] = set()
    for move in view.movements:
        ends = (move.source, move.target)
        if move.is_running:
            busy.update(ends)
        elif osd is not None and osd in ends:
            return _more_backfills(view)
    if osd is None and 2 * len(busy) > len(view.snapshot.osds):
        return _more_backfills(view)
    return _higher_limit(numbers, view)


def _more_backfills(view: ClusterView) -> Optional[str]:
    """Returns Ceph's option that lets an OSD copy more at a time.

    Returns None if it is set already, or if the release of the OSDs is unknown. Before Quincy also
    if osd_max_backfills is above 1 on rotating disks.
    """
    release = view.snapshot.osd_release
    is_set = view.copying_options.get
    if release and release not in BEFORE_QUINCY:
        if is_set("osd_mclock_profile") == "high_recovery_ops":
            return None
        return "osd osd_mclock_profile high_recovery_ops"
    targets = Counter([move.target for move in view.movements if move.is_running])
    most = max(targets.values(), default=1)
    if not release or view.stacked_backfills or is_set("osd_max_backfills", most) > most:
        return None
    return f"osd osd_max_backfills {most + 1}"


def _higher_limit(numbers: Mapping[str, Any], view: ClusterView) -> Optional[str]:
    """Returns our option with a higher limit; None if no limit is known or none would do."""
    limit = float(numbers.get("limit") or 0.0)
    if not limit or numbers.get("halved"):
        return None
    option = str(numbers.get("option"))
    own = 0.01 * float(numbers.get("own") or 0.0)
    more = 2.0 * max(limit, own)
    if option.endswith("misplaced_ratio"):
        snapshot = view.snapshot
        needed = _needed_misplaced(view, own)
        if needed > limit and any(
                osd.reaches(snapshot.backfillfull_ratio) for osd in snapshot.osds.values()):
            return f"mgr mgr/equilibrium/urgent_misplaced_ratio {min(needed, 1.0):g}"
        more = min(more, max(limit, _MOST_MISPLACED))
        if needed > more or more == limit:   # others misplace most of that, or it is high
            return None
    if limit < 1.0:   # a ratio
        more = min(more, 1.0)
    return f"mgr mgr/equilibrium/{option} {more:g}"
