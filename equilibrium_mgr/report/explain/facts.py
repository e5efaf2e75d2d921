"""What is so of an OSD, a pool or a PG, and of the bound of a set of OSDs: JSON and sentences."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Set, Tuple

from ...crush.hierarchy import OSD_TYPE
from ...crush.placement import NO_OSD
from ...execution.guards import blocked_pool_reasons
from ...execution.rejections import Items
from ...observation.cluster_view import ClusterView
from ...plan.model import PoolSpace
from ...planner.bound.demand import binding_domains
from ...planner.bound.lower_bound import CAPACITY, FIXED, OsdSet
from ...planner.bound.pool_space import CAPACITY as SPACE_CAPACITY
from ...planner.bound.pool_space import WHOLE_SHARDS, PoolSpaceBound
from ...runtime.formatting import format_bytes, format_percent, named, plural
from ...snapshot.immovable_reasons import OF_RULE
from ...snapshot.model import Pg, Pool, Snapshot
from ...snapshot.operator_weights import held_sentence
from ..cluster.pools import best_free

#: JSON-ready facts, and the same as sentences.
Facts = Tuple[Dict[str, Any], List[str]]

#: Utilizations that differ by less count as equal.
SAME = 0.0005
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
        "inbound_bytes": into, "outbound_bytes": out, "uncompacted_bytes": uncompacted,
        "undeleted_bytes": undeleted, "size_factor": osd.size_factor,
        "utilization": osd.utilization, "target_utilization": osd.target_utilization,
        "reachable": reachable, "set": set_json(osd_set, view.snapshot) if osd_set else None,
        "bound": osd_set.bound if osd_set else None, "cannot_take": osd.unusable_reason(),
        "share": osd.share, "held_by": osd.held_by, "limited_pools": limited,
        "too_full": [entry.to_json(view.snapshot.full_ratio) for entry in too_full]}
    host = f"host {osd.host}" if osd.host else "no host"
    said = f"osd.{number} (class {osd.device_class}, {host})"
    if osd.utilization is None or osd.target_utilization is None:
        said += " has no statistics"
    else:
        said += (f" has {format_bytes(used)} of {format_bytes(osd.device_size)} in use:"
                 f" {format_percent(osd.utilization)}%")
        if osd.inbound_bytes or osd.outbound_bytes:
            said += (f"; {format_percent(osd.target_utilization)}% when {format_bytes(into)} in and"
                     f" {format_bytes(out)} out have moved")
    sentences = [said] + [entry.sentence() for entry in too_full]
    if osd.uncompacted_bytes:
        sentences.append(f"{format_bytes(uncompacted)} of that are omap that has left it, free once"
                         " its RocksDB has compacted; 'ceph tell"
                         f" osd.{number} compact' does that at once")
    if osd.undeleted_bytes:
        sentences.append(f"{format_bytes(undeleted)} of that are shards that have left it, which it"
                         " is still deleting")
    if osd.size_factor != 1.0:
        sentences.append(f"a shard takes {osd.size_factor:.2f} times there what it takes on most"
                         " OSDs (min_alloc_size, compression)")
    if osd.unusable_reason():
        sentences.append(f"no shard may go to it: it is {osd.unusable_reason()}")
    elif osd.share < 1.0:
        sentences.append(held_sentence(osd))
    if not osd.unusable_reason() and bounds is not None and osd.target_utilization is not None:
        sentences += (["no pool that holds data may use it"]
                      if osd_set is None or reachable is None
                      else _reach(number, reachable, osd_set, view))
    sentences.append("no pool on it can take more" if osd.exceeds(view.snapshot.full_ratio)
                     else f"it limits the free space of pools: {', '.join(limited)}" if limited
                     else "it limits the free space of no pool that holds data")
    return data, sentences


def _reach(osd: int, reachable: float, osd_set: OsdSet, view: ClusterView) -> List[str]:
    """What an OSD would be at in the most even placement, and why not lower."""
    said = ("in the most even placement that the rules allow it would be at"
            f" {format_percent(reachable)}%")
    difference = reachable - utilization_now(osd, view)
    if abs(difference) >= SAME:
        said += (f", {100.0 * abs(difference):.1f} points"
                 f" {'lower' if difference < 0.0 else 'higher'} than now")
    stands = osd in osd_set.binding.osds and len(osd_set.binding.osds) < len(osd_set.osds)
    return [said, describe_bound(osd_set, view.snapshot)] + (
        ["it is one of the OSDs that stand at this bound"] if stands else [])


def set_of(osd: int, view: ClusterView) -> Optional[OsdSet]:
    """The set of OSDs with which an OSD can exchange data, or None."""
    bounds = view.utilization_bounds
    return next((found for found in (bounds.sets if bounds is not None else ())
                 if osd in found.osds), None)


def utilization_now(osd: int, view: ClusterView) -> float:
    """What the OSD reports, as a ratio of its size; 0 where that is not known."""
    found = view.snapshot.osds[osd]
    return view.used_now.get(osd, found.used_bytes) / max(1, found.size_bytes)


def set_json(osd_set: OsdSet, snapshot: Snapshot) -> Dict[str, Any]:
    """A set of OSDs with its bound, JSON-ready."""
    binding = osd_set.binding
    return {"device_class": osd_set.device_class, "takes": list(osd_set.takes),
            "osds": list(osd_set.osds), "bound": osd_set.bound,
            "description": describe_bound(osd_set, snapshot),
            "binding": {"kind": binding.kind, "osds": list(binding.osds),
                        "buckets": list(binding.buckets),
                        "pools": [snapshot.pools[pool].name for pool in binding.pools]}}


def explain_pool(pool: Pool, view: ClusterView, now: PoolSpace,
                 pool_ids: Optional[FrozenSet[int]], stopped: Optional[str] = None) -> Facts:
    """Where its shards may be, and what forbids moving them.

    `now`: its free space of now. `pool_ids`: the pools that balancing is limited to, None for all.
    `stopped`: why moves of this pool were stopped because of their sizes.
    """
    snapshot, soon = view.snapshot, view.usage.pools[pool.name]
    pgs = [pg for pg in snapshot.pgs.values() if pg.pool == pool.id]
    immovable = dict(Counter(pg.immovable for pg in pgs if pg.immovable))
    waits_for = blocked_pool_reasons(snapshot).get(pool.id)
    domains: List[Dict[str, Any]] = [{
        "take": (f"osd.{block.take}" if block.take >= 0
                 else snapshot.crush.buckets[block.take].name),
        "shards": block.positions,
        "domains": [{"type": domain.type_name, "most_shards": domain.shards_per_bucket}
                    for domain in block.domains]}
        for block in (pool.rule.blocks if pool.rule else ())]
    bound = (view.utilization_bounds.pool_space.get(pool.id)
             if view.utilization_bounds is not None else None)
    excluded, limiting = pool_ids is not None and pool.id not in pool_ids, now.limiting_osd
    data = {
        "pool": pool.name, "pool_id": pool.id, "pgs": len(pgs), "stored_bytes": pool.stored_bytes,
        "free_bytes": now.free_bytes, "max_avail_bytes": soon.max_avail_bytes,
        "limiting_osd": limiting, "soon_free_bytes": soon.free_bytes,
        "soon_limiting_osd": soon.limiting_osd, **best_free(bound), "rule_id": pool.rule_id,
        "failure_domains": domains, "immovable": pool.immovable, "immovable_pgs": immovable,
        "waits_for": waits_for, "excluded": excluded, "stopped": stopped}
    if limiting is None:
        sentences = ["no OSD with statistics holds any of it"]
    else:
        sentences = [f"osd.{limiting} (class {snapshot.osds[limiting].device_class}) is the OSD"
                     " that is full first"]
        if soon.limiting_osd not in (None, limiting):
            sentences.append(
                f"when all has arrived it is osd.{soon.limiting_osd} that is full first")
        osd_set = set_of(limiting, view)
        sentences += [describe_bound(osd_set, snapshot)] if osd_set is not None else []
    if bound is not None:
        sentences.append(_describe_space_bound(pool, bound, snapshot))
    sentences += [
        f"{plural(block['shards'], 'shard')} of each PG under {block['take']}, at most "
        + " and ".join([f"{domain['most_shards']} per {domain['type']}"
                        for domain in block["domains"]] or ["1 per OSD"]) for block in domains]
    if pool.is_optimized:
        ratios = ", ".join([f"{ratio:.2f}" for ratio in pool.position_ratios])
        sentences.append("with allow_ec_optimizations its shards "
                         + (f"differ in size by their position: {ratios} of their mean" if ratios
                            else "may differ in size by their position; they do not"))
    sentences += ([f"none of its PGs can be moved: {pool.immovable}"] if pool.immovable
                  else [f"{count} of its {len(pgs)} PGs cannot be moved: {reason}"
                        for reason, count in sorted(immovable.items())]
                  or [f"all of its {len(pgs)} PGs can be moved"])
    if stopped:
        sentences.append(f"nothing of it is moved: {stopped}")
    if waits_for:
        sentences.append(f"nothing of it is moved for now: {waits_for}")
    if excluded:
        sentences.append("automatic balancing leaves it alone: it is limited to other pools"
                         " ('ceph equilibrium pool ls')")
    return data, sentences


def explain_pg(pg: Pg, view: ClusterView, rejected: Items) -> Facts:
    """Where its shards are, and why. `rejected`: PGs whose upmap items the monitor did not keep."""
    snapshot = view.snapshot
    pool, items = snapshot.pools[pg.pool], snapshot.upmap_items.get(pg.pgid, ())
    primary = snapshot.primaries.get(pg.pgid)   # `up` begins with it, whatever CRUSH puts first
    # a snapshot has `up` where the raw mapping is not known, and such a PG is immovable
    raw_known = primary is None and not (items and pg.immovable and pg.raw == pg.up)
    waits_for = blocked_pool_reasons(snapshot).get(pool.id)
    too_full = [entry for entry in view.too_full if pg.pgid in entry.pgids]
    refused = rejected[pg.pgid].reason if pg.pgid in rejected else None
    osds = [snapshot.osds.get(osd) for osd in pg.up]
    data = {
        "pgid": pg.pgid, "pool": pool.name, "state": pg.state, "shard_bytes": pg.shard_bytes,
        "up": _numbers(pg.up), "acting": _numbers(pg.acting),
        "raw": _numbers(pg.raw) if raw_known else None,
        "upmap_items": [list(pair) for pair in items], "upmap_primary": primary,
        "immovable": pg.immovable, "rejected": refused, "waits_for": waits_for,
        "too_full": [entry.to_json(snapshot.full_ratio) for entry in too_full],
        "shards": [{"osd": number, "utilization": osd.utilization if osd else None,
                    "target_utilization": osd.target_utilization if osd else None}
                   for number, osd in zip(_numbers(pg.up), osds)]}
    sentences = [f"it belongs on {_osds(pg.up)}",
                 f"its data is on {_osds(pg.holders)} and on its way" if pg.is_moving
                 else "its data is there"]
    shown = ", ".join(f"osd.{source} to osd.{target}" for source, target in items)
    if not items:
        sentences.append("CRUSH itself places it so; it has no upmap items" if raw_known else
                         "it has no upmap items; the order that CRUSH gives is not known")
    elif not raw_known:
        sentences.append(f"it has upmap items: {shown}; what CRUSH alone would give is not known")
    elif pg.raw == pg.up:
        sentences.append(f"CRUSH itself places it so; its upmap items have no effect: {shown}")
    else:
        sentences.append(f"upmap items place it so: {shown}; CRUSH alone would have it on"
                         f" {_osds(pg.raw)}")
    if primary is not None:
        sentences.append(f"its primary is set to osd.{primary} (pg-upmap-primary)")
    sentences += [entry.sentence() for entry in too_full]
    sentences.append(f"it cannot be moved: {pg.immovable}" if pg.immovable
                     else "nothing about it forbids moving it")
    if pg.immovable in OF_RULE and pool.rule is not None:
        sentences.append("its placement is not one of its CRUSH rule:"
                         f" {pool.rule.violation(pg.up) or pool.rule.upmap_rejection(pg.up)}")
    if refused:
        sentences.append(f"it is left alone until CRUSH changes: {refused}")
    if waits_for:
        sentences.append(f"it is not moved for now: {waits_for}")
    for number, osd in zip(pg.up, osds):
        then = osd.target_utilization if osd else None
        now = None if then is None else utilization_now(number, view)
        sentences.append(f"{_osds([number])}: " + (
            "utilization not known" if now is None or then is None
            else f"{format_percent(now)}%" if abs(now - then) < SAME
            else f"{format_percent(now)}%, {format_percent(then)}% when all has arrived"))
    return data, sentences


def _numbers(osds: Sequence[int]) -> List[Optional[int]]:
    return [None if osd == NO_OSD else osd for osd in osds]


def _osds(numbers: Sequence[int]) -> str:
    return ", ".join("no OSD" if number == NO_OSD else f"osd.{number}"
                     for number in numbers) or "no OSD"


# -- bounds ----------------------------------------------------------------------------------------

def describe_bound(osd_set: OsdSet, snapshot: Snapshot) -> str:
    """One sentence: a set's lowest possible highest utilization, and what keeps it there."""
    binding = osd_set.binding
    at_bound = _osds_or_hosts(binding.osds, osd_set.osds, snapshot)
    pools = _listed("pool", [snapshot.pools[pool].name for pool in binding.pools])
    if binding.kind == FIXED:
        cause = f"so much is on {at_bound} and cannot go elsewhere"
    elif not binding.pools:
        held = any(snapshot.osds[osd].share < 1.0 for osd in osd_set.osds)
        cause = "every OSD would be equally full" + (
            " for the share of its size that it is held to" if held else "")
    elif binding.kind == CAPACITY:
        cause = f"{pools} may use only {at_bound}, equally full then"
    else:
        type_of = {bucket.name: bucket.type_name for bucket in snapshot.crush.buckets.values()}
        full: Dict[str, List[str]] = {}   # CRUSH type → buckets (or OSDs) that take no more shards
        for name in binding.buckets:
            full.setdefault(type_of.get(name, OSD_TYPE), []).append(name)
        limits: Dict[str, Set[int]] = {OSD_TYPE: {1}} if OSD_TYPE in full else {}
        for pool in binding.pools:
            rule = snapshot.pools[pool].rule
            for domain in (domain for block in (rule.blocks if rule is not None else ())
                           for domain in binding_domains(block)):
                if domain.type_name in full:
                    limits.setdefault(domain.type_name, set()).add(domain.shards_per_bucket)
        most = " and ".join(   # as in "1 or 2 shards of a PG per host"
            f"{' or '.join(map(str, sorted(limits[name])))}"
            f" {'shard' if limits[name] == {1} else 'shards'} of a PG per"
            f" {'OSD' if name == OSD_TYPE else name}" for name in sorted(limits))
        cannot = " and ".join(named(full[name], _NAMES_SHOWN) if name == OSD_TYPE
                              else _listed(name, full[name]) for name in sorted(full))
        cause = (f"{pools} may have at most {most}, so {at_bound} must hold what {cannot} cannot"
                 " take")
    return (f"{_listed('class', osd_set.device_class.split(','), 'classes')} under"
            f" {named(osd_set.takes, _NAMES_SHOWN)} cannot be below"
            f" {format_percent(osd_set.bound)}%: {cause}")


def _describe_space_bound(pool: Pool, bound: PoolSpaceBound, snapshot: Snapshot) -> str:
    """The most free space that a placement could leave a pool, and the cause."""
    reached = sorted(pool.rule.osds()) if pool.rule is not None else ()
    cause = (f"its {pool.pg_num * pool.size} shards cannot be spread finer"
             if bound.kind == WHOLE_SHARDS
             else "every OSD that its rule reaches is full then" if bound.kind == SPACE_CAPACITY
             else f"{_osds_or_hosts(sorted(bound.osds), reached, snapshot)} are full then, and its"
                  " rule keeps it from using others alone")
    return f"no placement leaves it more than {format_bytes(bound.free_bytes)} free: {cause}"


def _osds_or_hosts(osds: Sequence[int], among: Sequence[int], snapshot: Snapshot) -> str:
    """Names of the OSDs; of their hosts instead where these have no others `among` those given."""
    hosts = {snapshot.osds[osd].host for osd in osds}
    on_hosts = [osd for osd in among if snapshot.osds[osd].host in hosts]
    if len(on_hosts) > len(osds) or "" in hosts:
        return named([f"osd.{osd}" for osd in osds], _NAMES_SHOWN)
    return _listed("host", sorted(hosts))


def _listed(noun: str, names: Sequence[str], nouns: str = "") -> str:
    """The noun in the right number and the names, as in "hosts h0, h1"."""
    return f"{noun if len(names) == 1 else nouns or noun + 's'} {named(names, _NAMES_SHOWN)}"
