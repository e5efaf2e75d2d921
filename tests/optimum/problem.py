"""A small cluster as a problem of counts, read from its snapshot and its CRUSH dump.

PGs of one pool and shard size are interchangeable: a placement is the count of each class's shards
on each OSD. Which counts whole up sets can give is told by limits per bucket. Nothing here asks the
module's own rules: what is legal is what tests/support/strict_crush.py enumerates.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from tests.support.plan_legality import part_of
from tests.support.strict_crush import leaves, monitor_keeps, possible_up_sets

from equilibrium_mgr.snapshot.model import Pg, Pool, Snapshot

#: A pool with a smaller ratio of all bytes holds no data.
DATA_SHARE = 0.01


class Unsupported(Exception):
    """A cluster that this tool has no model for."""


class Spread(NamedTuple):
    """How a rule spreads the shards of a PG: at most one per `alone`; with `group`, either none or
    as many as `group_size` in a bucket of that type."""

    alone: str
    group: str = ""
    group_size: int = 1


class ShardClass(NamedTuple):
    """The shards of PGs of one pool that are alike."""

    pool: int
    shard_bytes: int
    parts: float           # what clients write to a PG of the pool, a ratio of all that they write
    pgs: Tuple[str, ...]
    shards: int            # per PG
    spread: Spread
    osds: FrozenSet[int]


class Node(NamedTuple):
    """A bucket, or an OSD, with what of the problem lies in it."""

    type_name: str
    osds: FrozenSet[int]
    children: Tuple[Node, ...] = ()


class Part(NamedTuple):
    """OSDs that share no pool with others, and the pools on them."""

    classes: Tuple[ShardClass, ...]
    root: Node
    size_bytes: Mapping[int, int]
    base_bytes: Mapping[int, int]     # what is on an OSD beside the shards of the classes
    full_ratio: float
    data_shards: Mapping[int, int]    # of the pools with data

    @property
    def pools(self) -> List[int]:
        return sorted(self.data_shards)


def parts_of(snapshot: Snapshot, crush: Mapping[str, Any]) -> List[Part]:
    """The independent parts of a cluster; raises Unsupported."""
    classes = _classes(snapshot, crush)
    joined: List[Tuple[FrozenSet[int], List[ShardClass]]] = []
    for one in classes:
        osds, members, apart = one.osds, [one], []
        for others, theirs in joined:
            if others & osds:
                osds, members = osds | others, theirs + members
            else:
                apart.append((others, theirs))
        joined = apart + [(osds, members)]
    return [_part(snapshot, crush, osds, members) for osds, members in joined]


def up_sets(crush: Mapping[str, Any], pool: Pool) -> FrozenSet[FrozenSet[int]]:
    """The sets of OSDs that a PG of the pool may be on, by the rule and for the monitor."""
    rule = next(r for r in crush["rules"] if r["rule_id"] == pool.rule_id)
    return frozenset(frozenset(up) for up in possible_up_sets(crush, rule, pool.size)
                     if monitor_keeps(crush, rule, pool.size, up))


def _classes(snapshot: Snapshot, crush: Mapping[str, Any]) -> List[ShardClass]:
    classes: List[ShardClass] = []
    for pool in sorted(snapshot.pools.values(), key=lambda p: p.id):
        spread, take = _spread(crush, pool)
        alike: Dict[Tuple[int, float], List[str]] = {}
        for pg in snapshot.pgs.values():
            if pg.pool == pool.id:
                _check(pg, pool)
                alike.setdefault((pg.shard_bytes, part_of(pg.pgid, pool.pg_num)),
                                 []).append(pg.pgid)
        classes += [ShardClass(pool.id, shard_bytes, parts, tuple(sorted(pgids)), pool.size,
                               spread, frozenset(leaves(crush, take)))
                    for (shard_bytes, parts), pgids in sorted(alike.items())]
    return classes


def _check(pg: Pg, pool: Pool) -> None:
    if pg.immovable is not None or pool.immovable is not None or set(pg.up) != set(pg.holders):
        raise Unsupported(f"PG {pg.pgid} cannot be moved, or moves")


def _spread(crush: Mapping[str, Any], pool: Pool) -> Tuple[Spread, int]:
    """The pool's spread and what its rule takes."""
    rule = next(r for r in crush["rules"] if r["rule_id"] == pool.rule_id)
    steps = [s for s in rule["steps"] if not s["op"].startswith("set_")]
    take, *chosen, emit = steps
    if take["op"] != "take" or emit["op"] != "emit":
        raise Unsupported("a rule of another form")
    if len(chosen) == 1 and chosen[0]["num"] in (0, pool.size):
        return Spread(chosen[0]["type"]), take["item"]
    if len(chosen) == 2 and chosen[0]["num"] * chosen[1]["num"] == pool.size:
        return Spread(chosen[1]["type"], chosen[0]["type"], chosen[1]["num"]), take["item"]
    raise Unsupported("a rule of another form")


def _part(snapshot: Snapshot, crush: Mapping[str, Any], osds: FrozenSet[int],
          classes: Sequence[ShardClass]) -> Part:
    roots = [b for b in crush["buckets"] if b["type_name"] == "root" and "~" not in b["name"]]
    nodes = [_node(crush, root["id"], osds, classes) for root in roots]
    children = tuple(child for found in nodes for child in found)
    on_osds = Counter(dict.fromkeys(osds, 0))
    for one in classes:
        for pgid in one.pgs:
            for osd in snapshot.pgs[pgid].up:
                on_osds[osd] += one.shard_bytes
    whole = sum(pool.stored_bytes for pool in snapshot.pools.values())
    return Part(
        tuple(classes), Node("root", osds, children),
        {osd: snapshot.osds[osd].size_bytes for osd in osds},
        {osd: snapshot.osds[osd].target_bytes - on_osds[osd] for osd in osds},
        snapshot.full_ratio,
        {one.pool: snapshot.pools[one.pool].data_shards for one in classes
         if snapshot.pools[one.pool].stored_bytes >= DATA_SHARE * whole})


def _node(crush: Mapping[str, Any], item: int, osds: FrozenSet[int],
          classes: Iterable[ShardClass]) -> List[Node]:
    """What stands for an item: itself, its children where no rule asks for it, or nothing."""
    if item >= 0:
        return [Node("osd", frozenset([item]))] if item in osds else []
    bucket = next(b for b in crush["buckets"] if b["id"] == item)
    children = [node for entry in bucket["items"]
                for node in _node(crush, entry["id"], osds, classes)]
    asked = {name for one in classes for name in (one.spread.alone, one.spread.group)}
    if bucket["type_name"] not in asked or not children:
        return children
    within = frozenset(osd for child in children for osd in child.osds)
    return [Node(bucket["type_name"], within, tuple(children))]
