"""`explain <pool>` and `explain <pgid>`: where shards may be, and what forbids moving them."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Tuple

from ...crush.placement import NO_OSD, PlacementBlock
from ...execution.guards import blocked_pool_reasons
from ...execution.rejections import Items
from ...observation.cluster_view import ClusterView
from ...plan.model import PoolSpace
from ...runtime.formatting import format_percent
from ...snapshot.immovable_reasons import OF_RULE, Immovable
from ...snapshot.model import Pg, Pool, Snapshot
from ..cluster.pool_figures import best_free
from .bound_text import describe_bound, describe_space_bound
from .explain_osd import SAME, Facts, set_of, utilization_now


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
