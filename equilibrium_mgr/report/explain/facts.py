"""States facts about an OSD, a pool or a PG, and about the bound of a set of OSDs, as JSON and in
sentences."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, List, Optional, Sequence, Tuple

from ...crush.placement import NO_OSD
from ...control.status import BalancerStatus
from ...execution.outcomes import Items
from ...execution.size_check import sentence
from ...observation.cluster_view import ClusterView
from ...plan.load import load_ratio, loads_of_sets, pools_on
from ...plan.model import PoolSpace
from ...planner.bound.lower_bound import CAPACITY, FIXED, OsdSet
from ...planner.bound.pool_space import CAPACITY as SPACE_CAPACITY, PoolSpaceBound
from ...runtime.formatting import format_bytes, format_percent, named, named_osds, plural
from ...snapshot.immovable_reasons import OF_RULE
from ...snapshot.model import Osd, Pg, Pool, Snapshot
from ...snapshot.operator_weights import held_advice
from ..cluster.cluster_tables import pool_figures
from .context import ExplainContext


#: JSON-ready facts, and the same as sentences.
Facts = Tuple[Dict[str, Any], List[str]]

#: Device classes, hosts, pools and the like that a sentence names; it counts the rest.
_NAMES_SHOWN = 5
#: Pools that cause less of an OSD's load, a ratio, are not named.
_LEAST_PART = 0.05
#: Bytes that belong to no PG are named if they are most of an OSD's used bytes, and these are more
#: than this ratio of its size.
_NOBODYS = 0.05


def explain_osd(number: int, view: ClusterView) -> Facts:
    """Returns the utilization of an OSD, the utilization in the most even placement, and why it can
    take no shards; ratios of its size."""
    snapshot = view.snapshot
    bounds = view.utilization_bounds
    osd = snapshot.osds[number]
    osd_set = set_of(number, view)
    reachable = None
    if bounds is not None:
        reachable = bounds.utilizations.get(number)
    size = osd.device_size
    used = osd.device[1] or osd.used_bytes
    into = osd.device_bytes(osd.inbound_bytes)
    out = osd.device_bytes(osd.outbound_bytes)
    data: Dict[str, Any] = {
        "osd": number,
        "inbound_bytes": into,
        "outbound_bytes": out,
        "utilization": osd.utilization,
        "target_utilization": osd.target_utilization,
        "reachable": reachable,
        "set": None}
    sentences = []
    if osd.has_statistics:
        in_use = f"{format_bytes(used)} of {format_bytes(size)} are in use"
        if into or out:
            in_use += f"; {format_bytes(into)} come and {format_bytes(out)} leave"
        sentences.append(in_use)
    sentences += [entry.sentence() for entry in view.too_full if entry.osd == number]
    sentences += _use_of_space(osd)
    if osd.share < 1.0:
        sentences.append(held_advice(osd))
    if osd_set is not None:   # else `reachable` is its own utilization
        data["set"] = set_json(osd_set)
        sentences += ["in the most even placement that the rules allow it would be at"
                      f" {format_percent(reachable)}%", describe_bound(osd_set, snapshot)]
    load, said = _load(number, view)
    data.update(load)
    sentences += said
    limited = [name for name, space in view.usage_now().pools.items()
               if space.limiting_osd == number and space.stored_bytes > 0]
    if limited:
        sentences.append(f"it limits the free space of pools: {', '.join(limited)}")
    return data, sentences


def _load(number: int, view: ClusterView) -> Facts:
    """Returns how busy clients keep an OSD, and by which pools; None and nothing if that is not
    known."""
    snapshot = view.snapshot
    sets = loads_of_sets(snapshot, view.loads)
    ratio = load_ratio(snapshot, view.loads, sets, number)
    if ratio is None:
        return {"load": None, "load_pools": None}, []
    pools = {snapshot.pools[pool].name: part
             for pool, part in pools_on(snapshot, number).items()}
    word = "load"
    if sets[snapshot.set_of(number)].busiest_osd == number:
        word = "busiest"
    shown = [f"{name} {100.0 * part:.0f}%" for name, part in pools.items()
             if part >= _LEAST_PART]
    return {"load": ratio, "load_pools": pools}, [
        f"{word}: {ratio:.2f} times the mean; pools {named(shown, _NAMES_SHOWN)}"]


def _use_of_space(osd: Osd) -> List[str]:
    """Returns what takes more space on the OSD than its shards would elsewhere."""
    said = []
    uncompacted = osd.device_bytes(osd.uncompacted_bytes)
    undeleted = osd.device_bytes(osd.undeleted_bytes)
    if uncompacted:
        said.append(f"{format_bytes(uncompacted)} of that are omap that has left it, free once its"
                    f" RocksDB has compacted; 'ceph tell osd.{osd.id} compact' does that at once")
    if undeleted:
        said.append(f"{format_bytes(undeleted)} of that are shards that have left it, which it is"
                    " still deleting")
    if osd.size_factor != 1.0:
        said.append(f"a shard takes {osd.size_factor:.2f} times there what it takes on most OSDs"
                    " (min_alloc_size, compression)")
    if _is_mostly_nobodys(osd):
        said.append(f"{_nobodys(osd)}: PGs of deleted pools or strays that it has not deleted,"
                    " RocksDB and BlueFS (OMAP and META of 'ceph osd df'), or space that its store"
                    f" has lost; 'ceph tell osd.{osd.id} perf dump bluefs' shows its files; an OSD"
                    " deployed anew has none of that")
    return said


def filled(osd: Osd, context: ExplainContext) -> str:
    """Returns 'osd.13 is at 84.96%', and where it will be if that differs."""
    if not osd.has_statistics:
        return f"osd.{osd.id} has no statistics"
    now = context.view.utilization_now(osd.id)
    then = osd.target_utilization or 0.0
    said = f"osd.{osd.id} is at {format_percent(now)}%"
    if abs(now - then) < 0.00005:
        return said
    return f"{said} ({format_percent(then)}% when all has arrived)"


def explain_pool(pool: Pool, view: ClusterView, now: PoolSpace,
                 pool_ids: Optional[FrozenSet[int]], stopped: Optional[str]) -> Facts:
    """Returns where the shards of a pool may be, and what forbids moving them.

    `now`: its free space of now. `pool_ids`: the pools that balancing is limited to, None for all.
    `stopped`: why the module stopped moves of this pool because of their sizes.
    """
    snapshot = view.snapshot
    number = pool.id
    pgs = [pg for pg in snapshot.pgs.values() if pg.pool == number]
    immovable = dict(Counter(pg.immovable for pg in pgs if pg.immovable))
    bound = None
    if view.utilization_bounds is not None:
        bound = view.utilization_bounds.pool_space.get(number)
    excluded = pool_ids is not None and number not in pool_ids
    data = {
        "pool": pool.name,
        "pool_id": number,
        "pgs": len(pgs),
        **pool_figures("", now),
        "soon_free_bytes": view.usage.pools[pool.name].free_bytes,
        "rule_id": pool.rule_id,
        "immovable": pool.immovable,
        "immovable_pgs": immovable,
        "excluded": excluded,
        "stopped": stopped}
    sentences = []
    osd_set = set_of(now.limiting_osd, view)
    if osd_set is not None:
        sentences.append(describe_bound(osd_set, snapshot))
    if bound is not None:
        sentences.append(_no_more_free(bound, pool, snapshot))
    for block in pool.blocks:
        most = [f"{domain.shards_per_bucket} per {domain.type_name}" for domain in block.domains]
        sentences.append(
            f"{plural(block.positions, 'shard')} of each PG under"
            f" {snapshot.crush.name_of(block.take)}, at most {' and '.join(most) or '1 per OSD'}")
    if not pool.immovable:
        sentences += [f"{count} of its {len(pgs)} PGs cannot be moved: {reason}"
                      for reason, count in sorted(immovable.items())]
    if excluded:
        sentences.append("automatic balancing leaves it alone: it is limited to other pools"
                         " ('ceph equilibrium pool ls')")
    return data, sentences


def _no_more_free(bound: PoolSpaceBound, pool: Pool, snapshot: Snapshot) -> str:
    said = f"no placement leaves it more than {format_bytes(bound.free_bytes)} free:"
    if bound.kind == SPACE_CAPACITY:
        return f"{said} every OSD that its rule reaches is full then"
    reached = list(pool.rule.osds()) if pool.rule is not None else []
    full = _osds_or_hosts(sorted(bound.osds), reached, snapshot)
    return f"{said} {full} are full then, and its rule keeps it from using others alone"


def explain_pg(pg: Pg, view: ClusterView, rejected: Items) -> Facts:
    """Returns where the shards of a PG are, and why. `rejected`: PGs whose upmap items the monitor
    dropped, or that an OSD withheld."""
    snapshot = view.snapshot
    pgid = pg.pgid
    up = pg.up
    pool = snapshot.pools[pg.pool]
    items = snapshot.items_of(pgid)
    primary = snapshot.primaries.get(pgid)   # `up` begins with it, not with CRUSH's first
    raw: Optional[List[Optional[int]]] = None
    is_unknown = items and pg.immovable and pg.raw == up   # the snapshot has `up` instead
    if primary is None and not is_unknown:
        raw = _numbers(pg.raw)
    data = {
        "pgid": pgid,
        "pool": pool.name,
        "state": pg.state,
        "shard_bytes": pg.shard_bytes,
        "up": _numbers(up),
        "acting": _numbers(pg.acting),
        "raw": raw,
        "upmap_items": [list(pair) for pair in items],
        "upmap_primary": primary,
        "immovable": pg.immovable,
        "rejected": None}
    if pgid in rejected:
        data["rejected"] = rejected[pgid].reason
    sentences = []
    if pg.is_moving:
        sentences.append(f"its data is on {osds_text(pg.holders)} and on its way")
    shown = "it has no upmap items"
    if items:
        pairs = [f"osd.{source} to osd.{target}" for source, target in items]
        shown = f"it has upmap items: {', '.join(pairs)}"
        if raw is not None:
            shown += f"; CRUSH alone would have it on {osds_text(pg.raw)}"
    sentences.append(shown)
    if primary is not None:
        sentences.append(f"its primary is set to osd.{primary} (pg-upmap-primary)")
    if pool.rule is not None and pg.immovable in OF_RULE:
        violation = pool.rule.violation(up)
        if violation:
            sentences.append(f"its placement is not one of its CRUSH rule: {violation}")
        else:
            sentences.append("the monitor would reject its placement:"
                             f" {pool.rule.upmap_rejection(up)}")
    return data, sentences


def _numbers(osds: Sequence[int]) -> List[Optional[int]]:
    found = []
    for osd in osds:
        found.append(None if osd == NO_OSD else osd)
    return found


def osds_text(numbers: Sequence[int]) -> str:
    """Returns 'osd.3, osd.7', with 'no OSD' for a shard without one."""
    return ", ".join(map(_osd_name, numbers)) or "no OSD"


def _osd_name(number: int) -> str:
    if number == NO_OSD:
        return "no OSD"
    return f"osd.{number}"


def stopped_pools(status: BalancerStatus, view: Optional[ClusterView]) -> Dict[int, str]:
    """Returns id of each stopped pool → a sentence about it, in the order of the ids. The module
    stops a pool if its shards take more than it predicted."""
    names = {}
    if view is not None:
        names = {pool.id: pool.name for pool in view.snapshot.pools.values()}
    return {pool: sentence(found, names.get(pool, str(pool)))
            for pool, found in sorted(status.mispredicted.items())}


# -- bounds ----------------------------------------------------------------------------------------

def set_of(osd: Optional[int], view: ClusterView) -> Optional[OsdSet]:
    """Returns the set of OSDs with which an OSD can exchange data, or None."""
    bounds = view.utilization_bounds
    for found in bounds.sets if bounds is not None else ():
        if osd in found.osds:
            return found
    return None


def set_json(osd_set: OsdSet) -> Dict[str, Any]:
    """Returns a set of OSDs with its bound, JSON-ready."""
    return {
        "device_class": osd_set.name,
        "takes": list(osd_set.takes),
        "osds": list(osd_set.osds),
        "bound": osd_set.bound}


def describe_bound(osd_set: OsdSet, snapshot: Snapshot) -> str:
    """Returns one sentence: the lowest possible highest utilization of a set, and its cause."""
    held = [osd for osd in osd_set.osds if snapshot.osds[osd].share < 1.0]
    kept = ""
    if held:
        kept = f" while the lowered weights of {plural(len(held), 'OSD')} are kept"
    classes = osd_set.name.split(" (")[0].split(",")
    where = f"{_listed('class', classes, 'classes')} under {named(osd_set.takes, _NAMES_SHOWN)}"
    return (f"{where} cannot be below {format_percent(osd_set.bound)}%{kept}:"
            f" {_cause(osd_set, bool(held), snapshot)}")


def _cause(osd_set: OsdSet, is_held: bool, snapshot: Snapshot) -> str:
    """Returns what keeps the highest utilization at the bound. `is_held`: weights are lowered."""
    binding = osd_set.binding
    if binding.kind == FIXED or not binding.pools:
        for osd in [snapshot.osds[number] for number in osd_set.osds]:
            if _is_mostly_nobodys(osd):
                return _nobodys(osd)
    at_bound = _osds_or_hosts(binding.osds, osd_set.osds, snapshot)
    if binding.kind == FIXED:
        return f"so much is on {at_bound} and cannot go elsewhere"
    if not binding.pools:
        if is_held:
            return "every OSD would be equally full for the share of its size that it is held to"
        return "every OSD would be equally full"
    pools = _listed("pool", [snapshot.pools[pool].name for pool in binding.pools])
    if binding.kind == CAPACITY:
        return f"{pools} may use only {at_bound}, equally full then"
    return (f"{pools} may have no more shards on {named(binding.buckets, _NAMES_SHOWN)}, so"
            f" {at_bound} must hold the rest")


def _is_mostly_nobodys(osd: Osd) -> bool:
    """Returns True if most bytes of the OSD belong to no PG."""
    return 2 * osd.residual_bytes > osd.used_bytes > _NOBODYS * osd.size_bytes


def _nobodys(osd: Osd) -> str:
    return (f"{format_bytes(osd.device_bytes(osd.residual_bytes))} on osd.{osd.id} belong to no PG,"
            " so that no move takes them off")


def _osds_or_hosts(osds: Sequence[int], among: Sequence[int], snapshot: Snapshot) -> str:
    """Names the OSDs, or their hosts if these have no others of the OSDs in `among`."""
    hosts = {snapshot.osds[osd].host for osd in osds}
    on_hosts = [osd for osd in among if snapshot.osds[osd].host in hosts]
    if len(on_hosts) > len(osds) or "" in hosts:
        return named_osds(osds, _NAMES_SHOWN)
    return _listed("host", sorted(hosts))


def _listed(noun: str, names: Sequence[str], nouns: str = "") -> str:
    """Returns the noun in the right number and the names, as in "hosts h0, h1"."""
    shown = named(names, _NAMES_SHOWN)
    if len(names) == 1:
        return f"{noun} {shown}"
    return f"{nouns or noun + 's'} {shown}"
