"""Finds the action against the reason of the loop's state, against waiting that ends nothing, and
against a bound that no move can lower.

`status`, health checks and `explain` show it.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ...control.status import BalancerStatus
from ...execution.outcomes import ExcludedPgs, Refusals
from ...observation.cluster_view import BALANCED, STUCK, ClusterView
from ...observation.movements import HALTING, SlowOsd, slow_osds
from ...observation.refusals import NEAR, fullest_osds
from ...plan.options import PgShardLimits
from ...planner.bound.lower_bound import OsdSet
from ...runtime.formatting import format_bytes, format_deadline, format_percent, named, plural
from ...settings import Settings
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd, Pool, Snapshot
from ...snapshot.operator_weights import BY_REWEIGHT, full_weight
from ..answer import Row
from .context import ExplainContext
from .figures import Figures, are_most_silent, faster, numbers_of, weight_figures
from .outage import find_outage, places
from .relief import MOST_NAMED, crush_crowds_out


#: Advice is given for a gain, or a distance from the bound, of this much utilization: 3 points.
WORTH_DOING = 0.03
#: More PGs are worth all that moves for them if they multiply what a pool can take by this.
_WORTH_MORE = 1.1
#: Whole shards explain a distance to the bound of at most this many of them.
_ABOUT_ONE = 1.5
#: A shard is small enough below this ratio of the smallest OSD.
_FINE = 0.005
#: Limits of the advice: factor of pg_num, and PG shards per OSD if Ceph has no limit.
_MOST_TIMES = 32
_MOST_SHARDS = 250
#: The figures of these actions take longer to compute than `status` may.
_LONG = (codes.GRANULARITY, codes.IMMOVABLE)
_EXPLAIN = "'ceph equilibrium explain' counts what is in the way, and names what helps"
#: These reasons end only while data is copied.
_BY_COPYING = (codes.DEGRADED, codes.PG_NUM_CHANGING, codes.IN_FLIGHT, codes.SOURCE_FULL,
               codes.NEARFULL_FIRST, codes.MOVING)


def state_action(status: BalancerStatus, view: Optional[ClusterView], settings: Settings,
                 now: float) -> str:
    """Returns the action against the reason why most shards wait, or against the reason of the
    state, or the action that makes incoming data fit. `now`: seconds since the epoch."""
    plan = status.steering_waits_for
    if plan:
        return codes.GIVE_WAY.format(plan=plan)
    if view is not None:
        context = ExplainContext(view, status, settings, now=now)
        return with_room(_state_action(context), status, view)
    if status.progress is not None and status.reason_code == codes.SWITCHED_OFF:
        return codes.NOTHING
    return codes.action(status.reason_code, {**status.reason_numbers, **_paused_drain(status)})


def _state_action(context: ExplainContext) -> str:
    status = context.status
    code = context.status.reason_code
    is_executing = status.progress is not None
    if is_executing and crush_crowds_out(status, context.view):
        return codes.FREEZE
    if context.is_too_full:
        return help_for(codes.TOO_FULL, context)
    if is_executing and status.waiting:
        group = status.waiting[0]
        return help_for(group.code, context, **group.figures())
    if is_executing and code == codes.SWITCHED_OFF:
        return codes.NOTHING
    if status.state == STUCK and code in _LONG:
        return _EXPLAIN
    if _is_worth_explaining(context):
        return _EXPLAIN
    if status.refusals is None:
        return help_for(code, context)
    return _counted_action(status.refusals, context)


def _counted_action(refusals: Refusals, context: ExplainContext) -> str:
    """Returns the action of an idle state, with the figures that were counted then."""
    status = context.status
    code = status.reason_code
    if code == codes.MIN_GAIN and refusals.rest_code != codes.MIN_GAIN:
        return codes.NOTHING   # the option is not the cause
    limits = PgShardLimits()
    if status.decided_on is not None:
        limits = status.decided_on.max_pg_shards
    excluded = ExcludedPgs({"": code}, {"": refusals.excluded_seconds})
    then = context._replace(excluded=excluded, max_pg_shards=limits)
    try:
        return codes.action(code, numbers_of(code, refusals.census.of(code), then))
    except KeyError:   # the view may be newer, without the PG, a pool or an OSD of the counts
        return help_for(code, context)


def _is_worth_explaining(context: ExplainContext) -> bool:
    """Returns True if whole shards or lowered weights keep the fullest OSD of an idle cluster
    clearly above the bound of its set: `explain` has advice against both."""
    if context.status.state != BALANCED or not context.settings.active:
        return False
    fullest = fullest_osds(context.view, context.settings.device_classes)
    if fullest and fullest[0].above >= WORTH_DOING:
        return True
    for advice in weights_advice(context):
        figures = advice["figures"]
        if figures["bound_ratio"] - figures["proven_ratio"] >= WORTH_DOING:
            return True
    return False


def help_for(code: str, context: ExplainContext, **more: Any) -> str:
    """Returns the action for a reason of the loop; `more`: figures of the shards that wait."""
    status = context.status
    osds = context.snapshot.osds
    numbers: Figures = {}
    if status.reason_code == code:
        numbers.update(status.reason_numbers)
    numbers.update(numbers_of(code, None, context))
    numbers.update({key: value for key, value in more.items() if value is not None})
    numbers.update(_paused_drain(status))
    if status.until_at is not None:
        numbers.setdefault("until", format_deadline(status.until_at))
    osd = osds.get(numbers.get("osd", -1))
    if code == codes.STALE_STATISTICS and are_most_silent(context.view):
        numbers["osd"] = None
    elif code == codes.FILL_LIMIT and osd is not None and not osd.outbound_bytes:
        numbers["osd"] = None   # nothing leaves it
    elif code == codes.REWEIGHT and osd is not None:
        numbers.update(weight_figures(osd))
    elif codes.REASONS[code].actions is codes.FASTER:
        numbers["faster"] = faster(numbers, context)
    elif code in _BY_COPYING:
        ended = _copying_again(code, context)
        if ended:
            return ended
    return codes.action(code, numbers)


def _copying_again(code: str, context: ExplainContext) -> str:
    """Returns the action against an outage or a flag that stops copies; empty text if none does."""
    flags = HALTING.intersection(context.snapshot.flags)
    if code == codes.DEGRADED:
        outage = find_outage(context.status, context.view)
        if outage is not None:
            return str(outage["action"])
        flags -= {"norebalance"}   # Ceph recovers lost copies all the same
    if not flags:
        return ""
    return codes.action(codes.FLAG, {"flag": min(flags)})


def _paused_drain(status: BalancerStatus) -> Dict[str, Any]:
    """Returns `drained` for the action of `off`: the names, as given, of a paused drain that has
    shards left."""
    drains = status.drains
    names = {name for osd, name in drains.drains.names.items() if osd not in drains.empty_osds}
    if not names or not drains.drains.is_paused:
        return {}
    return {"drained": " ".join(sorted(names))}


# -- available space -------------------------------------------------------------------------------

def with_room(action: str, status: BalancerStatus, view: ClusterView) -> str:
    """Returns the action, or a better one if the first only waits.

    Waiting does not help an OSD that incoming data fills above backfillfull_ratio, nor a class
    whose bound is above nearfull_ratio: they need available space. Nor does it help if most OSDs do
    not report, or one copies slowly.
    """
    if not action.startswith(codes.NOTHING):
        return action
    if are_most_silent(view):   # the figures are old
        return codes.action(codes.STALE_STATISTICS, {})
    slow = slow_osds(view.rates, view.movements, view.snapshot)
    if slow and not action.startswith(f"{codes.NOTHING} here"):
        return _compare_disk(slow[0])
    snapshot = view.snapshot
    found = status.will_not_fit(view)
    fits = not found or found[0].ratio_name == "nearfull_ratio"
    highest = snapshot.backfillfull_ratio
    if fits:
        highest = snapshot.nearfull_ratio
    for name, bound in view.bounds.items():
        if bound >= highest:
            return f"{_more_room(name, snapshot)}: no placement is below {format_percent(bound)}%"
    if fits:
        return action
    worst = found[0].osd
    device_class = found[0].device_class
    add = _more_room(device_class, snapshot)
    planned = view.planned(status.wanted).used[worst]
    if planned < snapshot.backfillfull_ratio * snapshot.osds[worst].size_bytes:
        return (f"nothing; the plan under way moves what is too much off osd.{worst}; {add} if"
                " its %SOON does not fall")
    out = [str(osd.id) for osd in _out(device_class, snapshot) if osd.up]
    if out:
        return f"'ceph osd in {' '.join(out)}' brings back room that is out; or {add}"
    return f"{add}: osd.{worst} has no room for what comes"


def _more_room(device_class: str, snapshot: Snapshot) -> str:
    """Returns the action that gives a class more space; OSDs that are down and out come first."""
    lost = [osd for osd in _out(device_class, snapshot) if not osd.up]
    add = f"add capacity to class {device_class}, or delete data"
    if lost:
        return f"start {places(lost, snapshot)}, or {add}"
    return add


def _out(device_class: str, snapshot: Snapshot) -> List[Osd]:
    return [osd for osd in snapshot.osds.values()
            if osd.device_class == device_class and not osd.is_in]


def _compare_disk(slow: SlowOsd) -> str:
    """Returns commands that show whether the scheduler or the disk limits a slow OSD."""
    name = f"osd.{slow.osd}"
    kind = "ssd"
    if slow.device_class == "hdd":
        kind = "hdd"
    return (f"'ceph config show {name} osd_mclock_max_capacity_iops_{kind}' shows what it is taken"
            f" to be capable of, 'ceph tell {name} bench' what its disk does: compare both with"
            " those of others of its class; an OSD that it copies with may be the slow one")


def room_clauses(found: Sequence[Mapping[str, Any]]) -> List[str]:
    """Returns which OSDs incoming data fills above which ratio; `found`: WillNotFit, JSON-ready."""
    fills: Dict[str, List[str]] = {}
    for one in found:
        ratio = f"{one['ratio_name']} {format_percent(one['ratio'])}%"
        osd = f"osd.{one['osd']} ({format_percent(one['soon_utilization'])}%)"
        fills.setdefault(ratio, []).append(osd)
    return [f"what comes will not fit below {ratio}: {named(osds, MOST_NAMED)}"
            for ratio, osds in fills.items()]


# -- lower bounds ----------------------------------------------------------------------------------

def weights_advice(context: ExplainContext) -> List[Row]:
    """Returns what lowered weights cost each OSD set in comparison with its sizes alone, and how to
    leave them, JSON-ready; ratios."""
    bounds = context.view.utilization_bounds
    snapshot = context.snapshot
    found: List[Row] = []
    if bounds is None:
        return found
    lowered = [osd for osd in snapshot.osds.values() if osd.share < 1.0 and osd.is_for_data]
    for name, cut in bounds.at_bound.items():
        held = [osd for osd in lowered if snapshot.set_of(osd.id) == name]
        bound = bounds.highest[name]
        proof = bounds.cuts.get(cut)
        if not held or proof is None or bound - proof.least_utilization < NEAR:
            continue
        proven = proof.least_utilization
        reweights = [f"'ceph osd reweight {osd.id} 1'" for osd in held if osd.reweight < 1.0]
        reweights += [f"'ceph osd crush reweight osd.{osd.id} {full_weight(osd)}'" for osd in held
                      if osd.held_by != BY_REWEIGHT]
        action = codes.action(codes.REWEIGHT, {"reweights": ", ".join(reweights)})
        figures = {
            "device_class": name,
            "bound_ratio": bound,
            "proven_ratio": proven,
            "held_osds": [osd.id for osd in held],
            "reweights": reweights}
        said = (f"the lowered weights of {plural(len(held), 'OSD')} lead to"
                f" {format_percent(bound)}% on the fullest of class {name}, its sizes alone to"
                f" {format_percent(proven)}%; if the weights are from another time, {action}")
        found.append({"code": codes.REWEIGHT, "sentence": said, "figures": figures})
    return found


def pg_num_advice(osd_set: OsdSet, context: ExplainContext, pool: Optional[Pool]) -> List[Row]:
    """Returns a higher pg_num if a plan shows that it is worth the copies, or that such a plan is
    being made; JSON-ready, bytes and ratios.

    `pool`: whose free space it is to raise. None: the pool of the largest shards, if the fullest
    OSD is about one of these above the bound.
    """
    snapshot = context.snapshot
    if snapshot.in_flight():   # the bounds may be of an older snapshot, with other pools
        return []
    osds = [snapshot.osds[osd] for osd in osd_set.osds]
    shards = _shard_ratios(osd_set, context.view)
    now = max([osd.target_utilization or 0.0 for osd in osds])
    chosen = pool
    if chosen is None:
        chosen = snapshot.pools[max(shards, key=lambda number: shards[number])]
        above = now - osd_set.bound
        if not WORTH_DOING <= above <= _ABOUT_ONE * shards[chosen.id]:
            return []
    if chosen.touched:
        return []
    pools = [snapshot.pools[one] for one in shards]
    counts = [one.pg_num * one.size for one in pools]
    left = (context.max_pg_shards.mean or _MOST_SHARDS) * len(osds) - sum(counts)
    shard = shards.pop(chosen.id)
    fine = max([_FINE, *shards.values()])
    times = 1
    own = chosen.pg_num * chosen.size
    while shard > fine * times and times < _MOST_TIMES and own * (2 * times - 1) <= left:
        times *= 2
    if times == 1:
        return []
    return _planned_advice(chosen, chosen.pg_num * times, now, osd_set, context, pool is None)


def _shard_ratios(osd_set: OsdSet, view: ClusterView) -> Dict[int, float]:
    """Returns pool id → mean size of its shards as a ratio of the smallest OSD, for pools that may
    use an OSD of the set."""
    bounds = view.utilization_bounds
    assert bounds is not None   # the set is one of them
    smallest = min([view.snapshot.osds[osd].size_bytes for osd in osd_set.osds])
    ratios = {}
    for number, space in bounds.pool_space.items():
        rule = view.snapshot.pools[number].rule
        if rule is not None and not rule.osds().keys().isdisjoint(osd_set.osds):
            ratios[number] = space.shard_bytes / smallest
    return ratios


def _planned_advice(pool: Pool, pg_num: int, now: float, osd_set: OsdSet, context: ExplainContext,
                    is_of_osds: bool) -> List[Row]:
    """Returns the advice to set `pg_num` if a plan with that pg_num gains enough; none if it gains
    too little. Until that plan is made, the advice is to ask again. `is_of_osds`: the gain is a
    lower fullest OSD, not more free space of the pool. `now`: utilization of the fullest OSD."""
    found = context.plan_pg_num(context.snapshot, context.options, pool.id, pg_num)
    before = context.view.usage.pools[pool.name].free_bytes
    figures: Dict[str, Any] = {
        "pool": pool.name,
        "pg_num": pg_num,
        "now_ratio": now,
        "then_ratio": None,
        "then_free_bytes": None}
    said = f"pg_num {pg_num} of pool {pool.name}"
    row = {"code": codes.GRANULARITY, "figures": figures,
           "sentence": f"whether {said} helps is being planned; ask again"}
    if found is None:
        return [row]
    then = found.classes[osd_set.name].max
    # the plan may know the pool by an earlier name
    free, = [space.free_bytes for space in found.pools.values() if space.pool_id == pool.id]
    figures.update(then_ratio=then, then_free_bytes=free)
    if is_of_osds:
        if now - then < WORTH_DOING:
            return []
        said += (f" would lower the fullest OSD of class {osd_set.name} from {format_percent(now)}%"
                 f" to about {format_percent(then)}%")
    elif free < _WORTH_MORE * before:
        return []
    else:
        said += f" would let it take {format_bytes(free)} more instead of {format_bytes(before)}"
    row["sentence"] = f"{said}, as it was planned"
    return [row]
