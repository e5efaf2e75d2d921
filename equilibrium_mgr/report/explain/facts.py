"""`explain <osd>`: its utilization, the utilization that it could have, and the obstacles."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from ...crush.hierarchy import OSD_TYPE
from ...crush.placement import NO_OSD, PlacementBlock
from ...execution.guards import blocked_pool_reasons
from ...execution.rejections import Items
from ...observation.cluster_view import ClusterView
from ...plan.model import PoolSpace
from ...planner.bound.demand import binding_domains
from ...planner.bound.lower_bound import BindingConstraint, CAPACITY, FIXED, OsdSet
from ...planner.bound.pool_space import PoolSpaceBound, WHOLE_SHARDS
from ...planner.bound.pool_space import CAPACITY as SPACE_CAPACITY
from ...runtime.formatting import format_bytes, format_percent
from ...snapshot.immovable_reasons import Immovable, OF_RULE
from ...snapshot.model import Osd, Pg, Pool, Snapshot
from ...snapshot.operator_weights import held_sentence
from ..cluster.pools import best_free


#: JSON-ready facts, and the same as sentences.
Facts = Tuple[Dict[str, Any], List[str]]

#: Utilizations that differ by less count as equal.
SAME = 0.0005


def explain_osd(number: int, view: ClusterView) -> Facts:
    """Facts about one OSD; utilizations are ratios of its size."""
    osd = view.snapshot.osds[number]
    osd_set = set_of(number, view)
    bounds = view.utilization_bounds
    bound_utilization = bounds.utilizations.get(number) if bounds is not None else None
    limited = _limited_pools(number, view)
    too_full = [entry for entry in view.too_full if entry.osd == number]
    data = {
        "osd": number, "device_class": osd.device_class, "host": osd.host,
        "size_bytes": osd.device_size, "used_bytes": osd.device[1] or osd.used_bytes,
        "inbound_bytes": osd.device_bytes(osd.inbound_bytes),
        "outbound_bytes": osd.device_bytes(osd.outbound_bytes),
        "uncompacted_bytes": osd.device_bytes(osd.uncompacted_bytes),
        "undeleted_bytes": osd.device_bytes(osd.undeleted_bytes),
        "size_factor": osd.size_factor,
        "utilization": osd.utilization, "target_utilization": osd.target_utilization,
        "reachable": bound_utilization,
        "set": set_json(osd_set, view.snapshot) if osd_set else None,
        "bound": osd_set.bound if osd_set else None, "cannot_take": osd.unusable_reason(),
        "share": osd.share, "held_by": osd.held_by,
        "limited_pools": limited,
        "too_full": [entry.to_json(view.snapshot.full_ratio) for entry in too_full]}
    sentences = [_fill(osd)] + [entry.sentence() for entry in too_full] + _leftovers(osd)
    if osd.size_factor != 1.0:
        sentences.append(f"a shard takes {osd.size_factor:.2f} times there what it takes on most"
                         " OSDs (min_alloc_size, compression)")
    if osd.unusable_reason():
        sentences.append(f"no shard may go to it: it is {osd.unusable_reason()}")
    else:
        if osd.share < 1.0:
            sentences.append(held_sentence(osd))
        sentences += _reach(osd, bound_utilization, osd_set, view)
    sentences.append("no pool on it can take more" if osd.exceeds(view.snapshot.full_ratio)
                     else f"it limits the free space of pools: {', '.join(limited)}" if limited
                     else "it limits the free space of no pool that holds data")
    return data, sentences


def set_of(osd: int, view: ClusterView) -> Optional[OsdSet]:
    """The set of OSDs with which an OSD can exchange data, or None."""
    if view.utilization_bounds is not None:
        for osd_set in view.utilization_bounds.sets:
            if osd in osd_set.osds:
                return osd_set
    return None


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


def _leftovers(osd: Osd) -> List[str]:
    """Sentences about what has left an OSD and takes space on it still."""
    sentences: List[str] = []
    if osd.uncompacted_bytes:
        left = format_bytes(osd.device_bytes(osd.uncompacted_bytes))
        sentences.append(f"{left} of that are omap that has left it, free once its RocksDB has"
                         f" compacted; 'ceph tell osd.{osd.id} compact' does that at once")
    if osd.undeleted_bytes:
        left = format_bytes(osd.device_bytes(osd.undeleted_bytes))
        sentences.append(f"{left} of that are shards that have left it, which it is still deleting")
    return sentences


def _fill(osd: Osd) -> str:
    now, then = osd.utilization, osd.target_utilization
    host = f"host {osd.host}" if osd.host else "no host"
    named = f"osd.{osd.id} (class {osd.device_class}, {host})"
    if now is None or then is None:
        return f"{named} has no statistics"
    used, size = format_bytes(osd.device[1] or osd.used_bytes), format_bytes(osd.device_size)
    into, out = [format_bytes(osd.device_bytes(count))
                 for count in (osd.inbound_bytes, osd.outbound_bytes)]
    sentence = f"{named} has {used} of {size} in use: {format_percent(now)}%"
    if not osd.inbound_bytes and not osd.outbound_bytes:
        return sentence
    return f"{sentence}; {format_percent(then)}% when {into} in and {out} out have moved"


def _reach(osd: Osd, bound_utilization: Optional[float], osd_set: Optional[OsdSet],
           view: ClusterView) -> List[str]:
    if view.utilization_bounds is None or osd.target_utilization is None:
        return []
    if osd_set is None or bound_utilization is None:
        return ["no pool that holds data may use it"]
    said = ("in the most even placement that the rules allow it would be at"
            f" {format_percent(bound_utilization)}%")
    difference = bound_utilization - utilization_now(osd.id, view)
    if abs(difference) >= SAME:
        said += (f", {100.0 * abs(difference):.1f} points"
                 f" {'lower' if difference < 0.0 else 'higher'} than now")
    sentences = [said, describe_bound(osd_set, view.snapshot)]
    if osd.id in osd_set.binding.osds and len(osd_set.binding.osds) < len(osd_set.osds):
        sentences.append("it is one of the OSDs that stand at this bound")
    return sentences


def _limited_pools(osd: int, view: ClusterView) -> List[str]:
    """Names of the pools with data whose free space now ends where this OSD is full."""
    return [name for name, space in view.usage_now().pools.items()
            if space.limiting_osd == osd and space.stored_bytes > 0]


def explain_pool(pool: Pool, view: ClusterView, now: PoolSpace,
                 pool_ids: Optional[FrozenSet[int]], stopped: Optional[str] = None) -> Facts:
    """Facts about one pool.

    `now`: its free space of now. `pool_ids`: the pools that balancing is limited to, None for all.
    `stopped`: why moves of this pool were stopped because of their sizes.
    """
    snapshot = view.snapshot
    space = view.usage.pools[pool.name]
    pgs = [pg for pg in snapshot.pgs.values() if pg.pool == pool.id]
    immovable = dict(Counter(pg.immovable for pg in pgs if pg.immovable))
    waits_for = blocked_pool_reasons(snapshot).get(pool.id)
    domains = [_domains(block, snapshot) for block in pool.rule.blocks] if pool.rule else []
    bounds = view.utilization_bounds.pool_space if view.utilization_bounds is not None else {}
    bound = bounds.get(pool.id)
    excluded = pool_ids is not None and pool.id not in pool_ids
    data = {
        "pool": pool.name, "pool_id": pool.id, "pgs": len(pgs), "stored_bytes": pool.stored_bytes,
        "free_bytes": now.free_bytes, "max_avail_bytes": space.max_avail_bytes,
        "limiting_osd": now.limiting_osd, "soon_free_bytes": space.free_bytes,
        "soon_limiting_osd": space.limiting_osd, **best_free(bound), "rule_id": pool.rule_id,
        "failure_domains": domains, "immovable": pool.immovable, "immovable_pgs": immovable,
        "waits_for": waits_for, "excluded": excluded, "stopped": stopped}
    sentences = _limiting(now.limiting_osd, space.limiting_osd, view)
    if bound is not None:
        sentences.append(describe_space_bound(pool, bound, snapshot))
    sentences += [_domain_sentence(block) for block in domains]
    sentences += _immovable_sentences(pool, immovable, len(pgs))
    if stopped:
        sentences.append(f"nothing of it is moved: {stopped}")
    if waits_for:
        sentences.append(f"nothing of it is moved for now: {waits_for}")
    if excluded:
        sentences.append("automatic balancing leaves it alone: it is limited to other pools"
                         " ('ceph equilibrium pool ls')")
    return data, sentences


def explain_pg(pg: Pg, view: ClusterView, rejected: Items) -> Facts:
    """Facts about one PG. `rejected`: PGs whose upmap items the monitor did not keep."""
    snapshot = view.snapshot
    pool = snapshot.pools[pg.pool]
    items = snapshot.upmap_items.get(pg.pgid, ())
    # a snapshot has `up` where the raw mapping is not known, and such a PG is immovable
    primary = snapshot.primaries.get(pg.pgid)   # `up` begins with it, whatever CRUSH puts first
    raw_known = primary is None and not (items and pg.immovable and pg.raw == pg.up)
    raw = [_number(osd) for osd in pg.raw] if raw_known else None
    waits_for = blocked_pool_reasons(snapshot).get(pool.id)
    too_full = [entry for entry in view.too_full if pg.pgid in entry.pgids]
    refused = rejected[pg.pgid].reason if pg.pgid in rejected else None
    data = {
        "pgid": pg.pgid, "pool": pool.name, "state": pg.state, "shard_bytes": pg.shard_bytes,
        "up": [_number(osd) for osd in pg.up], "acting": [_number(osd) for osd in pg.acting],
        "raw": raw, "upmap_items": [list(pair) for pair in items], "upmap_primary": primary,
        "immovable": pg.immovable,
        "rejected": refused, "waits_for": waits_for,
        "too_full": [entry.to_json(snapshot.full_ratio) for entry in too_full],
        "shards": [_shard(osd, snapshot) for osd in pg.up]}
    sentences = [f"it belongs on {_osds(pg.up)}"]
    sentences.append(f"its data is on {_osds(pg.holders)} and on its way"
                     if pg.is_moving else "its data is there")
    sentences += _origin(items, raw, pg.up)
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
    sentences += [_shard_sentence(osd, view) for osd in pg.up]
    return data, sentences


def _limiting(number: Optional[int], soon: Optional[int], view: ClusterView) -> List[str]:
    """The OSD that limits a pool now, and the one that will when all has arrived."""
    if number is None:
        return ["no OSD with statistics holds any of it"]
    osd = view.snapshot.osds[number]
    sentences = [f"osd.{number} (class {osd.device_class}) is the OSD that is full first"]
    if soon is not None and soon != number:
        sentences.append(f"when all has arrived it is osd.{soon} that is full first")
    osd_set = set_of(number, view)
    return sentences + ([describe_bound(osd_set, view.snapshot)] if osd_set is not None else [])


def _domains(block: PlacementBlock, snapshot: Snapshot) -> Dict[str, Any]:
    """The failure domains of one block of a rule."""
    take = block.take
    return {"take": f"osd.{take}" if take >= 0 else snapshot.crush.buckets[take].name,
            "shards": block.positions,
            "domains": [{"type": domain.type_name, "most_shards": domain.shards_per_bucket}
                        for domain in block.domains]}


def _domain_sentence(block: Mapping[str, Any]) -> str:
    limits = [f"{domain['most_shards']} per {domain['type']}"
              for domain in block["domains"]] or ["1 per OSD"]
    plural = "" if block["shards"] == 1 else "s"
    return (f"{block['shards']} shard{plural} of each PG under {block['take']}, at most"
            f" {' and '.join(limits)}")


def _immovable_sentences(pool: Pool, immovable: Mapping[Immovable, int], pgs: int) -> List[str]:
    sizes: List[str] = []
    if pool.is_optimized:
        ratios = ", ".join([f"{ratio:.2f}" for ratio in pool.position_ratios])
        sizes = ["with allow_ec_optimizations its shards differ in size by their position: "
                 f"{ratios} of their mean" if ratios else
                 "with allow_ec_optimizations its shards may differ in size by their position; they"
                 " do not"]
    if pool.immovable:
        return sizes + [f"none of its PGs can be moved: {pool.immovable}"]
    if not immovable:
        return sizes + [f"all of its {pgs} PGs can be moved"]
    return sizes + [f"{count} of its {pgs} PGs cannot be moved: {reason}"
            for reason, count in sorted(immovable.items())]


def _origin(items: Sequence[Tuple[int, int]], raw: Optional[Sequence[Optional[int]]],
            up: Sequence[int]) -> List[str]:
    if not items:
        return ["it has no upmap items; the order that CRUSH gives is not known" if raw is None
                else "CRUSH itself places it so; it has no upmap items"]
    shown = ", ".join(f"osd.{source} to osd.{target}" for source, target in items)
    if raw is None:
        return [f"it has upmap items: {shown}; what CRUSH alone would give is not known"]
    if list(raw) == [_number(osd) for osd in up]:
        return [f"CRUSH itself places it so; its upmap items have no effect: {shown}"]
    by_crush = _osds([NO_OSD if osd is None else osd for osd in raw])
    return [f"upmap items place it so: {shown}; CRUSH alone would have it on {by_crush}"]


def _number(osd: int) -> Optional[int]:
    return None if osd == NO_OSD else osd


def _osds(numbers: Sequence[int]) -> str:
    return ", ".join("no OSD" if number == NO_OSD else f"osd.{number}"
                     for number in numbers) or "no OSD"


def _shard(number: int, snapshot: Snapshot) -> Dict[str, Any]:
    osd = snapshot.osds.get(number)
    return {"osd": _number(number), "utilization": osd.utilization if osd else None,
            "target_utilization": osd.target_utilization if osd else None}


def _shard_sentence(number: int, view: ClusterView) -> str:
    osd = view.snapshot.osds.get(number)
    then = osd.target_utilization if osd else None
    if then is None:
        return f"{_osds([number])}: utilization not known"
    now = utilization_now(number, view)
    soon = "" if abs(now - then) < SAME else f", {format_percent(then)}% when all has arrived"
    return f"osd.{number}: {format_percent(now)}%{soon}"


_NAMES_SHOWN = 5


def describe_bound(osd_set: OsdSet, snapshot: Snapshot) -> str:
    """The sentence: the set's lowest possible highest utilization, and the cause."""
    classes = _listed("class", osd_set.device_class.split(","), "classes")
    return (f"{classes} under {_enumerated(osd_set.takes)} cannot be below"
            f" {format_percent(osd_set.bound)}%: {_cause(osd_set, snapshot)}")


def _cause(osd_set: OsdSet, snapshot: Snapshot) -> str:
    binding = osd_set.binding
    if binding.kind == FIXED:
        return f"so much is on {_osds_at_bound(osd_set, snapshot)} and cannot go elsewhere"
    if not binding.pools:
        held = any(snapshot.osds[osd].share < 1.0 for osd in osd_set.osds)
        return "every OSD would be equally full" + (
            " for the share of its size that it is held to" if held else "")
    pools = _listed("pool", [snapshot.pools[pool].name for pool in binding.pools])
    at_bound = _osds_at_bound(osd_set, snapshot)
    if binding.kind == CAPACITY:
        return f"{pools} may use only {at_bound}, equally full then"
    by_type = _buckets_by_type(binding, snapshot)
    full = " and ".join(
        _enumerated(by_type[name]) if name == OSD_TYPE else _listed(name, by_type[name])
        for name in sorted(by_type))
    limits = _shard_limits(binding, set(by_type), snapshot)
    return f"{pools} may have at most {limits}, so {at_bound} must hold what {full} cannot take"


def describe_space_bound(pool: Pool, bound: PoolSpaceBound, snapshot: Snapshot) -> str:
    """The sentence: the most free space that a placement could leave a pool, and the cause."""
    if bound.kind == WHOLE_SHARDS:
        shards = pool.pg_num * pool.size
        cause = f"its {shards} shards cannot be spread finer"
    elif bound.kind == SPACE_CAPACITY:
        cause = "every OSD that its rule reaches is full then"
    else:
        reached = sorted(pool.rule.osds()) if pool.rule is not None else ()
        cause = (f"{_osds_or_hosts(sorted(bound.osds), reached, snapshot)} are full then, and its"
                 " rule keeps it from using others alone")
    return f"no placement leaves it more than {format_bytes(bound.free_bytes)} free: {cause}"


def _osds_at_bound(osd_set: OsdSet, snapshot: Snapshot) -> str:
    """The OSDs at the bound; their hosts instead where these have no other OSDs in the set."""
    return _osds_or_hosts(osd_set.binding.osds, osd_set.osds, snapshot)


def _osds_or_hosts(osds: Sequence[int], among: Sequence[int], snapshot: Snapshot) -> str:
    """Names of the OSDs; of their hosts instead where these have no others `among` those given."""
    hosts = {snapshot.osds[osd].host for osd in osds}
    on_hosts = [osd for osd in among if snapshot.osds[osd].host in hosts]
    if len(on_hosts) > len(osds) or "" in hosts:
        return _enumerated([f"osd.{osd}" for osd in osds])
    return _listed("host", sorted(hosts))


def _buckets_by_type(binding: BindingConstraint, snapshot: Snapshot) -> Dict[str, List[str]]:
    """CRUSH type → names of the buckets (or OSDs) that can take no more shards."""
    type_of = {bucket.name: bucket.type_name for bucket in snapshot.crush.buckets.values()}
    found: Dict[str, List[str]] = {}
    for name in binding.buckets:
        found.setdefault(type_of.get(name, OSD_TYPE), []).append(name)
    return found


def _shard_limits(binding: BindingConstraint, types: Set[str], snapshot: Snapshot) -> str:
    """The rules' limits per CRUSH type, as in "1 or 2 shards of a PG per host"."""
    shards: Dict[str, Set[int]] = {OSD_TYPE: {1}} if OSD_TYPE in types else {}
    for pool in binding.pools:
        rule = snapshot.pools[pool].rule
        for block in rule.blocks if rule is not None else ():
            for domain in binding_domains(block):
                if domain.type_name in types:
                    shards.setdefault(domain.type_name, set()).add(domain.shards_per_bucket)
    limits: List[str] = []
    for name in sorted(shards):
        numbers = " or ".join(map(str, sorted(shards[name])))
        noun = "shard" if shards[name] == {1} else "shards"
        limits.append(f"{numbers} {noun} of a PG per {'OSD' if name == OSD_TYPE else name}")
    return " and ".join(limits)


def _listed(noun: str, names: Sequence[str], plural: str = "") -> str:
    """The noun in the right number and the names, as in "hosts h0, h1"."""
    return f"{noun if len(names) == 1 else plural or noun + 's'} {_enumerated(names)}"


def _enumerated(names: Sequence[str]) -> str:
    """The names, cut short after the first few."""
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
