"""One sentence for operators on the bound of a set of OSDs: how low, and what keeps it there."""
from __future__ import annotations

from typing import Dict, List, Sequence, Set

from ...crush.hierarchy import OSD_TYPE
from ...planner.bound.demand import binding_domains
from ...planner.bound.lower_bound import CAPACITY, FIXED, BindingConstraint, OsdSet
from ...planner.bound.pool_space import CAPACITY as SPACE_CAPACITY
from ...planner.bound.pool_space import WHOLE_SHARDS, PoolSpaceBound
from ...runtime.formatting import format_bytes, format_percent
from ...snapshot.model import Pool, Snapshot

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
