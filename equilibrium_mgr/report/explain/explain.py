"""`explain`: why the cluster, an OSD, a pool or a PG is as it is, in sentences and as JSON: what is
so, the one reason, what helps against it, and what would lower a bound that no move can lower.

What is so of an OSD, a pool or a PG, and of the bound of a set of OSDs: JSON and sentences.
"""
from __future__ import annotations

from collections import Counter
from typing import (
    Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple)

from ...crush.placement import NO_OSD
from ...crush.upmap_check import kept_rule
from ...execution.guards import blocked_pool_reasons, blocked_pools
from ...execution.outcomes import Items, WaitingGroup, waiting_groups
from ...execution.size_check import sentence
from ...observation.cluster_view import (
    BALANCED, MOVING, OFF, STUCK, THROTTLED, ClusterView)
from ...observation.refusals import (
    COUNTED, MOST_PAIRS, NEAR, SAME, bound_code, fullest_osds, settled_code)
from ...plan.model import PgChange, PoolSpace
from ...plan.options import effective_fill_limit, osd_id
from ...planner.bound.lower_bound import CAPACITY, FIXED, OsdSet
from ...planner.bound.pool_space import CAPACITY as SPACE_CAPACITY
from ...planner.refusal_census import Census
from ...planner.rule_repair import broken_pgs
from ...runtime.formatting import (
    format_bytes, format_deadline, format_duration, format_percent, named, named_osds,
    plural, wrap)
from ...runtime.time_slice import piecewise
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import MONITOR_REJECTS_CRUSH, OF_RULE
from ...snapshot.model import Osd, Pg, Pool, Snapshot, pool_of
from ...snapshot.operator_weights import full_weight, held_advice
from ..answer import CommandAnswer, Row
from ..cluster.cluster_tables import best_free_bytes, held_sentences
from ..operations import drain_sentence, is_blocked, stuck_action
from .advice import (
    WORTH_DOING, ExplainContext, find_outage, help_for, numbers_of, osd_outage, state_action,
    unused_hosts, weights_advice, with_room)


#: JSON-ready facts, and the same as sentences.
Facts = Tuple[Dict[str, Any], List[str]]

_NAMES_SHOWN = 5


def explain_osd(number: int, view: ClusterView) -> Facts:
    """Its utilization, the utilization that it could have, and the obstacles; ratios of its
    size."""
    osd, osd_set, bounds = view.snapshot.osds[number], set_of(number, view), view.utilization_bounds
    reachable = bounds.utilizations.get(number) if bounds is not None else None
    limited = [name for name, space in view.usage_now().pools.items()
               if space.limiting_osd == number and space.stored_bytes > 0]
    too_full = [entry for entry in view.too_full if entry.osd == number]
    used, into, out, uncompacted, undeleted = (osd.device[1] or osd.used_bytes, *(
        osd.device_bytes(count) for count in (
            osd.inbound_bytes, osd.outbound_bytes, osd.uncompacted_bytes, osd.undeleted_bytes)))
    data = {
        "osd": number, "device_class": osd.device_class, "host": osd.host,
        "size_bytes": osd.device_size, "used_bytes": used,
        "inbound_bytes": into, "outbound_bytes": out,
        "utilization": osd.utilization, "target_utilization": osd.target_utilization,
        "reachable": reachable, "set": set_json(osd_set, view.snapshot) if osd_set else None,
        "bound": osd_set.bound if osd_set else None, "cannot_take": osd.unusable_reason(),
        "too_full": [entry.to_json(view.snapshot.full_ratio) for entry in too_full]}
    sentences = [f"{format_bytes(used)} of {format_bytes(osd.device_size)} are in use"
                 + (f"; {format_bytes(into)} come and {format_bytes(out)} leave"
                    if into or out else "")] if osd.has_statistics else []
    sentences += [entry.sentence() for entry in too_full]
    sentences += [said for holds, said in (
        (uncompacted, f"{format_bytes(uncompacted)} of that are omap that has left it, free once"
         f" its RocksDB has compacted; 'ceph tell osd.{number} compact' does that at once"),
        (undeleted, f"{format_bytes(undeleted)} of that are shards that have left it, which it is"
         " still deleting"),
        (osd.size_factor != 1.0, f"a shard takes {osd.size_factor:.2f} times there what it takes on"
         " most OSDs (min_alloc_size, compression)"),
        (_is_mostly_nobodys(osd), f"{_nobodys(osd)}: PGs of deleted pools or strays that it has not"
         f" deleted, RocksDB and BlueFS (OMAP and META of 'ceph osd df'), or space that its store"
         f" has lost; 'ceph tell osd.{number} perf dump bluefs' shows its files; an OSD deployed"
         " anew has none of that"),
        (osd.share < 1.0, held_advice(osd)),
        (reachable is not None, "in the most even placement that the rules allow it would be at"
         f" {format_percent(reachable)}%")) if holds]
    sentences += [describe_bound(osd_set, view.snapshot)] if osd_set is not None else []
    sentences += ([f"it limits the free space of pools: {', '.join(limited)}"]
                  if limited else [])
    return data, sentences


def set_of(osd: int, view: ClusterView) -> Optional[OsdSet]:
    """The set of OSDs with which an OSD can exchange data, or None."""
    bounds = view.utilization_bounds
    return next((found for found in (bounds.sets if bounds is not None else ())
                 if osd in found.osds), None)


def set_json(osd_set: OsdSet, snapshot: Snapshot) -> Dict[str, Any]:
    """A set of OSDs with its bound, JSON-ready."""
    return {"device_class": osd_set.name, "takes": list(osd_set.takes),
            "osds": list(osd_set.osds), "bound": osd_set.bound,
            "description": describe_bound(osd_set, snapshot)}


def explain_pool(pool: Pool, view: ClusterView, now: PoolSpace,
                 pool_ids: Optional[FrozenSet[int]], stopped: Optional[str]) -> Facts:
    """Where its shards may be, and what forbids moving them.

    `now`: its free space of now. `pool_ids`: the pools that balancing is limited to, None for all.
    `stopped`: why moves of this pool were stopped because of their sizes.
    """
    snapshot, soon = view.snapshot, view.usage.pools[pool.name]
    pgs = [pg for pg in snapshot.pgs.values() if pg.pool == pool.id]
    immovable = dict(Counter(pg.immovable for pg in pgs if pg.immovable))
    waits_for = blocked_pool_reasons(snapshot).get(pool.id)
    domains: List[Dict[str, Any]] = [{
        "take": snapshot.crush.name_of(block.take),
        "shards": block.positions,
        "domains": [{"type": domain.type_name, "most_shards": domain.shards_per_bucket}
                    for domain in block.domains]}
        for block in pool.blocks]
    bound = (view.utilization_bounds.pool_space.get(pool.id)
             if view.utilization_bounds is not None else None)
    excluded, limiting = pool_ids is not None and pool.id not in pool_ids, now.limiting_osd
    data = {
        "pool": pool.name, "pool_id": pool.id, "pgs": len(pgs), "stored_bytes": pool.stored_bytes,
        "free_bytes": now.free_bytes,
        "limiting_osd": limiting, "soon_free_bytes": soon.free_bytes,
        "best_free_bytes": best_free_bytes(bound), "rule_id": pool.rule_id,
        "immovable": pool.immovable, "immovable_pgs": immovable,
        "waits_for": waits_for, "excluded": excluded, "stopped": stopped}
    osd_set = None if limiting is None else set_of(limiting, view)
    sentences = [describe_bound(osd_set, snapshot)] if osd_set is not None else []
    if bound is not None:
        reached = sorted(pool.rule.osds()) if pool.rule is not None else ()
        cause = ("every OSD that its rule reaches is full then"
                 if bound.kind == SPACE_CAPACITY
                 else f"{_osds_or_hosts(sorted(bound.osds), reached, snapshot)} are full then, and"
                      " its rule keeps it from using others alone")
        sentences.append(f"no placement leaves it more than {format_bytes(bound.free_bytes)} free:"
                         f" {cause}")
    sentences += [
        f"{plural(block['shards'], 'shard')} of each PG under {block['take']}, at most "
        + " and ".join([f"{domain['most_shards']} per {domain['type']}"
                        for domain in block["domains"]] or ["1 per OSD"]) for block in domains]
    sentences += [f"{count} of its {len(pgs)} PGs cannot be moved: {reason}"
                  for reason, count in sorted(immovable.items()) if not pool.immovable]
    return data, sentences + ["automatic balancing leaves it alone: it is limited to other pools"
                              " ('ceph equilibrium pool ls')"] * excluded


def explain_pg(pg: Pg, view: ClusterView, rejected: Items) -> Facts:
    """Where its shards are, and why. `rejected`: PGs whose upmap items the monitor did not keep."""
    snapshot = view.snapshot
    pool, items = snapshot.pools[pg.pool], snapshot.items_of(pg.pgid)
    primary = snapshot.primaries.get(pg.pgid)   # `up` begins with it, whatever CRUSH puts first
    # a snapshot has `up` where the raw mapping is not known, and such a PG is immovable
    raw_known = primary is None and not (items and pg.immovable and pg.raw == pg.up)
    waits_for = blocked_pool_reasons(snapshot).get(pool.id)
    too_full = [entry for entry in view.too_full if pg.pgid in entry.pgids]
    refused = rejected[pg.pgid].reason if pg.pgid in rejected else None
    data = {
        "pgid": pg.pgid, "pool": pool.name, "state": pg.state, "shard_bytes": pg.shard_bytes,
        "up": _numbers(pg.up), "acting": _numbers(pg.acting),
        "raw": _numbers(pg.raw) if raw_known else None,
        "upmap_items": [list(pair) for pair in items], "upmap_primary": primary,
        "immovable": pg.immovable, "rejected": refused, "waits_for": waits_for,
        "too_full": [entry.to_json(snapshot.full_ratio) for entry in too_full]}
    shown = ", ".join(f"osd.{source} to osd.{target}" for source, target in items)
    alone = f"; CRUSH alone would have it on {osds_text(pg.raw)}" if raw_known else ""
    sentences = [f"its data is on {osds_text(pg.holders)} and on its way"] if pg.is_moving else []
    sentences.append(f"it has upmap items: {shown}{alone}" if items else "it has no upmap items")
    sentences += [f"its primary is set to osd.{primary} (pg-upmap-primary)"] * (
        primary is not None)
    if pg.immovable in OF_RULE and pool.rule is not None:
        broken = pool.rule.violation(pg.up)
        sentences.append(f"its placement is not one of its CRUSH rule: {broken}" if broken else
                         "the monitor would reject its placement:"
                         f" {pool.rule.upmap_rejection(pg.up)}")
    return data, sentences


def _numbers(osds: Sequence[int]) -> List[Optional[int]]:
    return [None if osd == NO_OSD else osd for osd in osds]


def osds_text(numbers: Sequence[int]) -> str:
    """'osd.3, osd.7', with 'no OSD' for a shard without one."""
    return ", ".join("no OSD" if number == NO_OSD else f"osd.{number}"
                     for number in numbers) or "no OSD"


# -- bounds ----------------------------------------------------------------------------------------

def describe_bound(osd_set: OsdSet, snapshot: Snapshot) -> str:
    """One sentence: a set's lowest possible highest utilization, and what keeps it there."""
    binding, held = osd_set.binding, sum(snapshot.osds[osd].share < 1.0 for osd in osd_set.osds)
    kept = f" while the lowered weights of {plural(held, 'OSD')} are kept" if held else ""
    at_bound = _osds_or_hosts(binding.osds, osd_set.osds, snapshot)
    pools = _listed("pool", [snapshot.pools[pool].name for pool in binding.pools])
    if binding.kind == FIXED:
        cause = f"so much is on {at_bound} and cannot go elsewhere"
    elif not binding.pools:
        cause = "every OSD would be equally full" + (
            " for the share of its size that it is held to" if held else "")
    elif binding.kind == CAPACITY:
        cause = f"{pools} may use only {at_bound}, equally full then"
    else:
        cause = (f"{pools} may have no more shards on {named(binding.buckets, _NAMES_SHOWN)}, so"
                 f" {at_bound} must hold the rest")
    nobodys = [osd for osd in map(snapshot.osds.__getitem__, osd_set.osds)
               if _is_mostly_nobodys(osd)]
    if nobodys and (binding.kind == FIXED or not binding.pools):
        cause = _nobodys(nobodys[0])
    return (f"{_listed('class', osd_set.name.split(' (')[0].split(','), 'classes')} under"
            f" {named(osd_set.takes, _NAMES_SHOWN)} cannot be below"
            f" {format_percent(osd_set.bound)}%{kept}: {cause}")


def _is_mostly_nobodys(osd: Osd) -> bool:
    return 2 * osd.residual_bytes > osd.used_bytes > _NOBODYS * osd.size_bytes


def _nobodys(osd: Osd) -> str:
    return (f"{format_bytes(osd.device_bytes(osd.residual_bytes))} on osd.{osd.id} belong to no PG,"
            " so that no move takes them off")


def _osds_or_hosts(osds: Sequence[int], among: Sequence[int], snapshot: Snapshot) -> str:
    """Names of the OSDs; of their hosts instead where these have no others `among` those given."""
    hosts = {snapshot.osds[osd].host for osd in osds}
    on_hosts = [osd for osd in among if snapshot.osds[osd].host in hosts]
    if len(on_hosts) > len(osds) or "" in hosts:
        return named_osds(osds, _NAMES_SHOWN)
    return _listed("host", sorted(hosts))


def _listed(noun: str, names: Sequence[str], nouns: str = "") -> str:
    """The noun in the right number and the names, as in "hosts h0, h1"."""
    return f"{noun if len(names) == 1 else nouns or noun + 's'} {named(names, _NAMES_SHOWN)}"


#: Device classes, pools and the like that a sentence names; it counts the rest.
_MOST_NAMES = 10
#: More PGs are worth all that moves for them where they multiply what a pool can take by so much,
#: or lower the fullest OSD (WORTH_DOING), which is so many shards above the bound at most.
_WORTH_MORE, _ABOUT_ONE = 1.1, 1.5
#: Of more PGs: a smaller shard than this, as a ratio of the smallest OSD, is small enough; to so
#: many times pg_num at most, and to so many PG shards per OSD where Ceph tells no limit.
_FINE = 0.005
_MOST_TIMES = 32
_MOST_SHARDS = 250
#: Bytes that belong to no PG are told from this part of an OSD on, where they are most of it.
_NOBODYS = 0.05
_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond


def explain(what: Optional[str], pool_name: Optional[str], context: ExplainContext,
            age_seconds: float) -> Optional[CommandAnswer]:
    """Explains the cluster, or the OSD, pool or PG named `what`; None where there is none.
    `pool_name`: of the pool that it would name. A pool may have a number as its name; `osd.` in
    front names the OSD. `age_seconds`: of the view."""
    view, snapshot = context.view, context.snapshot
    stopped = {pool: sentence(found, snapshot.pools[pool].name)   # and how to have them moved again
               for pool, found in context.status.mispredicted.items() if pool in snapshot.pools}
    pool = next((one for one in snapshot.pools.values() if one.name == pool_name), None)
    osd = osd_id(what or "")
    if not what:
        reason, (data, sentences) = cluster_reason(context), _cluster_facts(context, stopped)
        weights = weights_advice(context)
        reason = reason._replace(advice=[*reason.advice, *weights])
        if weights and reason.action.startswith(codes.NOTHING) and context.is_settled:
            reason = reason._replace(action=f"{codes.NOTHING} here; moves keep the lowered weights:"
                                     " the advice says how to leave them")
    elif osd in snapshot.osds and (
            pool is None or pool.name != what or what.startswith("osd.")):
        reason = osd_reason(snapshot.osds[osd], set_of(osd, view), context)
        data, sentences = explain_osd(osd, view)
    elif pool is not None:
        soon, now = view.usage.pools[pool.name], view.usage_now().pools[pool.name]
        reason = pool_reason(pool, now, soon, None if soon.limiting_osd is None
                             else set_of(soon.limiting_osd, view), context)
        data, sentences = explain_pool(pool, view, now, context.settings.pool_ids,
                                       stopped.get(pool.id))
    elif what.lower() in snapshot.pgs:
        pg = snapshot.pgs[what.lower()]
        reason, (data, sentences) = pg_reason(pg, context), explain_pg(pg, view, context.rejected)
    else:
        return None
    outage = None if what else find_outage(context.status, view)
    said, code = wrap("", reason.what, 0), reason.code
    advised = [line for one in reason.advice for line in wrap("advice: ", one["sentence"], 8)]
    is_first = reason.action.startswith(f"{codes.NOTHING} here")   # it is all that helps
    if is_first:
        said += advised
    if outage is None and not what:
        reason = reason._replace(action=with_room(reason.action, context.status, view))
    helps = wrap("do: ", reason.action, 4)
    if outage is not None:
        reason, data["outage"] = reason._replace(action=outage["action"]), outage
        said = wrap("cluster: ", outage["sentence"], 9) + wrap("do: ", outage["action"], 4) + said
        helps = []
    said += wrap("reason: ", f"{code}. {reason.text}" if reason.text else code, 8)
    said += [line for row in reason.rows
             for line in wrap(f"{row['count']:>5}  ", row["text"], 7)]
    lines, census = said + helps, reason.census
    if not is_first:
        lines += advised
    data.update({
        "osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds,
        "stale_osds": sorted(snapshot.stale_osds), "what": reason.what, "reason_code": code,
        "reason_text": reason.text, "counts": list(reason.rows), "action": reason.action,
        "census": None if census is None else {
            "shards": census.shards, "pairs": census.pairs},
        "advice": list(reason.advice), "sentences": sentences})
    silent = len(snapshot.stale_osds)
    lines.append(f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}"
                 + (f"; {plural(silent, 'OSD')} with older statistics" if silent else ""))
    lines += [line for said_of_it in sentences for line in wrap("- ", said_of_it, 2)]
    return CommandAnswer(data, "\n".join(lines))


def _cluster_facts(context: ExplainContext, stopped: Dict[int, str]) -> Facts:
    view, snapshot = context.view, context.snapshot
    bounds, sets, sentences = view.utilization_bounds, [], []
    for osd_set in bounds.sets if bounds is not None else ():
        (most, first), (soon_most, soon_first) = (
            max((utilization, -osd) for osd, utilization in utilizations)
            for utilizations in ([(osd, view.utilization_now(osd)) for osd in osd_set.osds], [
                (osd, snapshot.osds[osd].target_utilization or 0.0) for osd in osd_set.osds]))
        sets.append(dict(set_json(osd_set, snapshot), fullest_osd=-first, max=most))
        # as status counts it
        moves = "" if abs(soon_most - most) < SAME else " once all that moves has arrived"
        above = soon_most - osd_set.bound
        distance = "as low as can be" if abs(above) < SAME else (
            f"{100.0 * above:.1f} points above that" if above > 0.0
            else "below that until data has left other OSDs")
        sentences += [describe_bound(osd_set, snapshot),
                      f"osd.{-soon_first}, the fullest there{moves}, is at"
                      f" {format_percent(soon_most)}%, {distance}"]
    unusable = Counter(reason for reason in (
        osd.unusable_reason() for osd in snapshot.osds.values()) if reason)
    troubled = sorted(set(blocked_pool_reasons(snapshot).values()))
    broken = [pg.pgid for pg in broken_pgs(snapshot)]
    sentences += [reason for _, reason in sorted(stopped.items())]
    sentences += [f"pools wait: {reason}" for reason in troubled]
    sentences += [f"{plural(count, 'PG')} cannot be moved: {reason}"
                  for reason, count in sorted(snapshot.skipped.items())]
    if broken:
        sentences.append(f"upmap items break the CRUSH rule of {plural(len(broken), 'PG')}:"
                         f" {named(broken, _MOST_NAMES)}; 'ceph equilibrium optimize NAME"
                         " --repair' makes a plan that mends them")
    sentences += held_sentences(snapshot)
    sentences += [f"{plural(count, 'OSD')} can take no shards: {reason}"
                  for reason, count in sorted(unusable.items())]
    return {"state": context.status.state, "reason": context.status.reason, "sets": sets,
            "skipped_pgs": dict(snapshot.skipped), "unusable_osds": dict(unusable),
            "broken_pgs": broken, "outage": None,
            "too_full": [entry.to_json(snapshot.full_ratio) for entry in view.too_full]}, sentences


# -- the reason ------------------------------------------------------------------------------------

class Explanation(NamedTuple):
    """What is so, why, and what helps."""

    what: str
    code: str
    action: str
    text: str = ""                    # behind the code: what the rows count, or a sentence
    rows: Sequence[Row] = ()          # counts, JSON-ready
    census: Optional[Census] = None   # where the rows are of one
    advice: Sequence[Row] = ()        # what would lower a bound that no move can lower


def waiting_rows(groups: Sequence[WaitingGroup]) -> List[Row]:
    """The rows of shards that wait, as `status` groups them; JSON-ready."""
    return [{"code": group.code, "count": group.shards, "text": group.waits_for}
            for group in groups]


def _counts(what: str, census: Census, where: str, context: ExplainContext) -> Explanation:
    """What the counts of a census add up to, as in '36 shards on osd.13 x 13 targets:', with one
    row for each code, JSON-ready: so many pairs of a shard and a target."""
    text = f"no shard {where} has a target"
    if census.pairs:
        shown = f"{census.pairs / census.counted:.0f}"
        part = ("" if census.counted == census.shards
                else f" (the first {census.counted} of {census.shards})")
        text = f"{plural(census.shards, 'shard')}{part} {where} x {shown} targets:"
    rows: List[Row] = []
    snapshot = context.snapshot
    fill = effective_fill_limit(context.settings.fill_limit, snapshot.backfillfull_ratio)
    for found in census.counts:
        numbers = numbers_of(found.code, found, context)
        said = codes.REASONS[found.code].counted or (
            "allowed, but gains less than min_gain, or than moving it costs" if context.is_settled
            else "allowed, and would be more even")
        pg = snapshot.pgs[found.example[0]]
        pool = snapshot.pools[pg.pool]
        domain = "the CRUSH rule does not allow it"
        for one in (pool.rule.block_at(pg.up.index(found.example[1])).domains[-1:]   # innermost
                    if pool.rule is not None else ()):
            most = one.shards_per_bucket
            domain = (f"the {one.type_name} holds its {most} {'shard' if most == 1 else 'shards'}"
                      " of the PG")
        figures = {"limit": "", "option": "pool_ids", **numbers, "domain": domain,
                   "trouble": pg.immovable or pool.immovable or "not now",
                   "fill": format_percent(fill)}
        rows.append({
            "code": found.code, "count": found.pairs, "text": said.format(**figures)})
    code = census.reason_code
    return Explanation(what, code, codes.action(code, {}), text, rows, census)


def _by_state(found: Explanation, context: ExplainContext) -> Explanation:
    """The reason of the state, with the counts."""
    status = context.status
    return found._replace(code=status.reason_code, action=help_for(status.reason_code, context),
                          text=f"{status.reason}; {found.text}")


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
        where = (f"class {osd_set.name} under {', '.join(osd_set.takes[:3])}:"
                 f" {filled(osd, context)}, bound {format_percent(osd_set.bound)}%")
    what = f"{status.state}: {where}"
    helps = state_action(status, view, context.settings, context.now)
    if context.is_too_full:
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
        return _by_state(_counts(what, census, f"on osd.{osd.id}", context), context)
    if above < NEAR:   # nothing lower is possible
        code = bound_code(osd_set)
        return _reason(what, code, describe_bound(osd_set, context.snapshot),
                       **numbers_of(code, None, context))
    return _of_census(what, census, f"on osd.{osd.id}", context, osd_set)


def _reason(what: str, code: str, text: str, **numbers: Any) -> Explanation:
    return Explanation(what, code, codes.action(code, numbers), text)


def filled(osd: Osd, context: ExplainContext) -> str:
    """'osd.13 is at 84.96%', and where it will be if that differs."""
    if not osd.has_statistics:
        return f"osd.{osd.id} has no statistics"
    now = context.view.utilization_now(osd.id)
    then = osd.target_utilization or 0.0
    soon = "" if abs(now - then) < 0.00005 else f" ({format_percent(then)}% when all has arrived)"
    return f"osd.{osd.id} is at {format_percent(now)}%{soon}"


def action_for(pg: Pg, context: ExplainContext) -> str:
    """What lets a PG move that cannot be moved."""
    pool = context.snapshot.pools[pg.pool]
    held = pg.immovable or pool.immovable
    if held == MONITOR_REJECTS_CRUSH:
        crush = context.snapshot.crush
        steps = kept_rule(crush, crush.rules[pool.rule_id], pg.up)
        if steps is not None:
            return (f"give pool {pool.name} an equivalent rule whose upmap items monitors keep:"
                    f" {steps}; 'ceph osd set norebalance', 'ceph osd pool set {pool.name}"
                    " crush_rule RULE', 'ceph equilibrium freeze' until nothing is remapped,"
                    " 'ceph osd unset norebalance' and 'ceph equilibrium on': it copies what"
                    " balancing needs")
    return codes.NOTHING if held is None else held.action(pg.pgid, pool.name)


def _of_census(what: str, census: Census, where: str, context: ExplainContext,
               osd_set: Optional[OsdSet], pool: Optional[Pool] = None) -> Explanation:
    """The counted reason; that of the state where moves are allowed and the state sends none.
    `pool`: whose free space is asked for."""
    found, code = _counts(what, census, where, context), census.reason_code
    if context.is_settled:
        code = settled_code(census, context.rest_code)
    elif code == codes.MIN_GAIN and context.status.state not in (STUCK, BALANCED):
        return _by_state(found, context)
    elif code == codes.MIN_GAIN:   # of a drain: nothing else is moved
        return found._replace(code=codes.SWITCHED_OFF, action=codes.action(codes.SWITCHED_OFF, {}),
                              text=f"automatic balancing is off; {found.text}")
    elif code == codes.BALANCED:
        return found
    numbers = numbers_of(code, census.of(code), context)
    helps = codes.action(code, numbers)
    if code == codes.IMMOVABLE and numbers.get("pgid"):
        helps = action_for(context.snapshot.pgs[numbers["pgid"]], context)
    elif code == codes.MIN_GAIN and context.rest_code != codes.MIN_GAIN:
        helps = codes.NOTHING   # the option is not the cause
    advice: List[Row] = []
    if osd_set is not None and helps.startswith(codes.NOTHING) and (
            context.is_settled or code == codes.GRANULARITY):
        advice = pg_num_advice(osd_set, context, pool)
    for one in advice:
        if one["figures"]["then_ratio"] is not None:
            helps = codes.action(codes.GRANULARITY, one["figures"])
    return found._replace(code=code, action=helps, advice=advice)


def _held_up(what: str, pool: Optional[Pool], waits: Callable[[PgChange], bool],
             context: ExplainContext) -> Optional[Explanation]:
    """The reason for which nothing of the pool is sent, or for which the throttle's last decision
    deferred planned moves; None for neither."""
    guard = blocked_pools(context.snapshot).get(pool.id) if pool is not None else None
    if guard is not None:
        return Explanation(what, codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason)
    deferred = [row for row in context.status.deferred if waits(row[0])]
    if not deferred:
        return None
    groups = waiting_groups([change for change, _ in deferred], deferred, codes.NEXT_BATCH, "")
    first = groups[0]
    helps = help_for(first.code, context, limit=first.limit, osd=first.osd, option=first.option)
    return Explanation(what, first.code, helps, _wait_text(groups), waiting_rows(groups))


def _wait_text(groups: Sequence[WaitingGroup]) -> str:
    shards = sum(group.shards for group in groups)
    return f"{plural(shards, 'planned shard')} {'waits' if shards == 1 else 'wait'}:"


def osd_reason(osd: Osd, osd_set: Optional[OsdSet], context: ExplainContext) -> Explanation:
    """The reason for which an OSD is as full as it is."""
    bound = "" if osd_set is None else f", bound {format_percent(osd_set.bound)}%"
    what = (f"class {osd.device_class}, host {osd.host or 'none'}: {filled(osd, context)}{bound}")
    outage, obstacle = osd_outage(osd, context), osd.unusable_reason()
    if outage is not None:
        code, helps, said = outage
        return Explanation(f"{said}. {what}", code, helps)
    if osd.drained:
        return _drained_reason(osd.id, what, context)
    if obstacle is not None:
        return _reason(what, codes.STALE_STATISTICS if obstacle == "without statistics"
                       else codes.TARGET_UNAVAILABLE,
                       f"no shard may go to it: it is {obstacle}", osd=osd.id,
                       out=osd.id if osd.up and obstacle == "out" else None)
    if context.is_too_full and context.view.too_full[0].osd == osd.id:
        return Explanation(what, codes.TOO_FULL, help_for(codes.TOO_FULL, context),
                           context.view.too_full[0].sentence())
    held_up = _held_up(
        what, None, lambda change: osd.id in change.gained_by | change.lost_by, context)
    if held_up is not None:
        return held_up
    if osd_set is None:
        crush = context.snapshot.crush
        if not any(crush.subtree(bucket).weights.get(osd.id) for bucket in crush.buckets):
            return _reason(what, codes.REWEIGHT, "its CRUSH weight is 0", held_osd=osd.id,
                           weight=full_weight(osd))
        why = next((host["sentence"] for host in unused_hosts(context.snapshot)
                    if osd.id in host["osds"]), "no pool that holds data may use it")
        return _reason(what, codes.BALANCED, why)
    if (osd.target_utilization or 0.0) < osd_set.bound + NEAR:
        return _reason(what, codes.BALANCED, "it is not fuller than the bound of its set")
    asked = context.census()
    assert asked is not None
    return _of_census(what, asked.of_osd(osd.id, MOST_PAIRS), f"on osd.{osd.id}", context, osd_set)


def _drained_reason(osd: int, what: str, context: ExplainContext) -> Explanation:
    """Why an OSD that is being drained still has shards."""
    status, drains = context.status, context.status.drains
    left = drains.remaining.get(osd)
    stuck = sorted((one for one in drains.stuck if one.osd == osd), key=lambda one: -one.shards)
    said = f"it is being drained; {drain_sentence(drains)}"
    if drains.drains.is_paused:
        return Explanation(what, codes.SWITCHED_OFF, help_for(codes.SWITCHED_OFF, context), said)
    if is_blocked(status):
        return Explanation(what, status.reason_code,
                           state_action(status, context.view, context.settings, context.now),
                           f"{status.reason}; {said}")
    if stuck:
        return Explanation(what, codes.CANNOT_LEAVE, stuck_action(stuck[0], context.settings),
                           f"{said}: {codes.REASONS[stuck[0].code].stuck}, such as pg"
                           f" {stuck[0].example}")
    return _reason(what, codes.MOVING if left is not None and left.shards else codes.BALANCED, said)


def pool_reason(pool: Pool, now: PoolSpace, soon: PoolSpace, osd_set: Optional[OsdSet],
                context: ExplainContext) -> Explanation:
    """The reason for which a pool can take no more than it can. `soon`: when all has arrived;
    counted are the targets of the OSD that limits the pool then, `osd_set` is its set."""
    snapshot, limiting = context.snapshot, soon.limiting_osd
    free, later = format_bytes(now.free_bytes), format_bytes(soon.free_bytes)
    what = f"pool {pool.name} can take {free} more"
    what += f" ({later} when all has arrived)" if later != free else ""
    if now.limiting_osd is not None:
        what += f"; full first: {filled(snapshot.osds[now.limiting_osd], context)}"
    if pool.immovable:
        code = codes.RULE_UNKNOWN if pool.rule is None else codes.IMMOVABLE
        return Explanation(what, code, pool.immovable.action("PGID", pool.name),
                           f"none of its PGs can be moved: {pool.immovable}")
    if pool.id in context.status.mispredicted:
        return _reason(what, codes.MISPREDICTED,
                       sentence(context.status.mispredicted[pool.id], pool.name))
    held_up = _held_up(what, pool, lambda change: pool_of(change.pgid) == pool.id, context)
    if held_up is not None:
        return held_up
    asked = context.census()
    if limiting is None or asked is None or osd_set is None:
        return _reason(what, codes.BALANCED, "no OSD with statistics holds any of it")
    return _of_census(what, asked.of_osd(limiting, MOST_PAIRS, pool.id), f"of it on osd.{limiting}",
                      context, osd_set, pool)


def pg_line(pg: Pg, context: ExplainContext) -> str:
    """A PG, and the OSDs that it is on."""
    shards = [f"osd.{osd} {format_percent(context.view.utilization_now(osd))}%"
              if osd in context.snapshot.osds and context.snapshot.osds[osd].has_statistics
              else osds_text([osd]) for osd in pg.up]
    return (f"pg {pg.pgid} of pool {context.snapshot.pools[pg.pool].name},"
            f" {format_bytes(pg.shard_bytes)} a shard: {', '.join(shards)}")


def pg_reason(pg: Pg, context: ExplainContext) -> Explanation:
    """The reason for which a PG stays where it is: what holds it whatever is planned, what defers
    its planned moves, or what refuses any."""
    pool, pgid, what = context.snapshot.pools[pg.pool], pg.pgid, pg_line(pg, context)
    for entry in context.view.too_full:
        if pgid in entry.pgids:
            return Explanation(what, codes.TOO_FULL, help_for(codes.TOO_FULL, context),
                               entry.sentence())
    if pg.immovable:
        return Explanation(what, codes.RULE_UNKNOWN if pool.rule is None else codes.IMMOVABLE,
                           action_for(pg, context), f"it cannot be moved: {pg.immovable}")
    if pg.is_moving:
        return Explanation(what, codes.IN_FLIGHT, help_for(codes.IN_FLIGHT, context),
                           "it is moving")
    if pgid in context.rejected:
        withheld_by = dict(context.rejected[pgid].withheld_by)
        return _reason(what, codes.PG_COUNT if withheld_by else codes.REJECTED,
                       context.rejected[pgid].reason, withholds=next(iter(withheld_by), None))
    held_up = _held_up(what, pool, lambda change: change.pgid == pgid, context)
    if held_up is not None:
        return held_up
    alone, left = context.excluded.codes.get(pgid), context.excluded.seconds_left.get(pgid)
    if alone is not None:
        return _reason(what, alone, "automatic plans leave it alone until then",
                       until=format_deadline(context.now + left) if left and context.now else None)
    asked = context.census()
    if asked is None:
        return _reason(what, codes.NOT_READY, "how even the cluster could be is not known")
    return _of_census(what, asked.of_pg(pg, MOST_PAIRS), f"of pg {pgid}", context, None)


def pg_num_advice(osd_set: OsdSet, context: ExplainContext,
                  pool: Optional[Pool]) -> List[Row]:
    """More PGs where a plan with them shows that they are worth it, JSON-ready; bytes and ratios.

    `pool`: whose free space they are to raise. None: the pool of the largest shards, where an OSD
    is about one of these above the bound.
    """
    snapshot, osds = context.snapshot, [context.snapshot.osds[osd] for osd in osd_set.osds]
    pools = {one.id: one for one in snapshot.pools.values() if one.rule is not None
             and not one.rule.osds().keys().isdisjoint(osd_set.osds)}
    bytes_of: Counter[int] = Counter()
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        bytes_of[pg.pool] += pg.shard_bytes
    smallest = min(osd.size_bytes for osd in osds)
    shard = {one: bytes_of[one] / pools[one].pg_num / smallest for one in pools}
    now = max(osd.target_utilization or 0.0 for osd in osds)
    chosen = max(pools.values(), key=lambda one: shard[one.id]) if pool is None else pool
    above = now - osd_set.bound
    if pool is None and not WORTH_DOING <= above <= _ABOUT_ONE * shard[chosen.id]:
        return []
    others = [ratio for number, ratio in shard.items() if number != chosen.id]
    most_shards = (context.max_pg_shards.mean or _MOST_SHARDS) * len(osds)
    left = most_shards - sum(one.pg_num * one.size for one in pools.values())
    fine, times = max([_FINE, *others]), 1
    while (shard[chosen.id] > fine * times and times < _MOST_TIMES
           and chosen.pg_num * chosen.size * (2 * times - 1) <= left):
        times *= 2
    if times == 1 or chosen.touched or snapshot.in_flight():
        return []
    return _planned_advice(chosen, chosen.pg_num * times, now, osd_set, context, pool is None)


def _planned_advice(pool: Pool, pg_num: int, now: float, osd_set: OsdSet, context: ExplainContext,
                    is_of_osds: bool) -> List[Row]:
    """`is_of_osds`: the fullest OSD is to be lowered, not the pool's free space raised."""
    found = context.plan_pg_num(context.snapshot, context.options, pool.id, pg_num)
    before = context.view.usage.pools[pool.name].free_bytes
    figures: Dict[str, Any] = {"pool": pool.name, "pg_num": pg_num, "now_ratio": now,
                               "then_ratio": None, "now_free_bytes": before,
                               "then_free_bytes": None}
    said = f"pg_num {pg_num} of pool {pool.name}"
    if found is None:
        return [{"code": codes.GRANULARITY, "figures": figures,
                 "sentence": f"whether {said} helps is being planned; ask again"}]
    then = found.classes[osd_set.name].max   # it may have been planned under another pool name
    free = {one.pool_id: one.free_bytes for one in found.pools.values()}[pool.id]
    figures.update(then_ratio=then, then_free_bytes=free)
    if is_of_osds and now - then >= WORTH_DOING:
        said += (f" would lower the fullest OSD of class {osd_set.name} from {format_percent(now)}%"
                 f" to about {format_percent(then)}%")
    elif not is_of_osds and free >= _WORTH_MORE * before:
        said += f" would let it take {format_bytes(free)} more instead of {format_bytes(before)}"
    else:
        return []
    return [{"code": codes.GRANULARITY, "sentence": f"{said}, as it was planned",
             "figures": figures}]
