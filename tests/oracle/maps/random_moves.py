"""Random moves and upmap items, legal ones and others."""

from __future__ import annotations

import random
from typing import List, NamedTuple, Optional, Sequence, Tuple

from ..ceph_tools import ITEM_NONE, calc_pg_upmaps
from .binary_osdmap import Items
from .cluster import MappedCluster, with_items


class Move(NamedTuple):
    """One shard to another OSD: up[position] becomes target."""

    pgid: str
    position: int
    target: int


def whole(cluster: MappedCluster, pgid: str) -> bool:
    """Whether no member of the PG is missing or down."""
    pg = cluster.pgs[pgid]
    size = cluster.pool_spec(pgid).size
    return len(pg.raw) == len(pg.up) == size and ITEM_NONE not in pg.raw + pg.up


def random_moves(cluster: MappedCluster, rng: random.Random, count: int) -> List[Move]:
    """Moves of any kind, most of them senseless, each PG at most once, none to a member."""
    pgids = [pgid for pgid in cluster.pgs if cluster.pgs[pgid].up]
    osds = cluster.osds()
    moves = []
    for pgid in rng.sample(pgids, min(count, len(pgids))):
        up = cluster.pgs[pgid].up
        target = rng.choice([osd for osd in osds if osd not in up])
        moves.append(Move(pgid, rng.randrange(len(up)), target))
    return moves


def wanted_up(cluster: MappedCluster, move: Move) -> Tuple[int, ...]:
    """The up set that a move is to give."""
    up = list(cluster.pgs[move.pgid].up)
    up[move.position] = move.target
    return tuple(up)


def pairs_for(raw: Sequence[int], wanted: Sequence[int]) -> Optional[List[Tuple[int, int]]]:
    """The upmap pairs from raw to wanted; None where no items can say it (a swap in one PG)."""
    pairs = [(old, new) for old, new in zip(raw, wanted) if old != new]
    if len(raw) != len(wanted) or any(new in raw for _, new in pairs):
        return None
    return pairs


def settled(cluster: MappedCluster, pgid: str, wanted: Sequence[int]) -> Tuple[int, ...]:
    """The same members with those that CRUSH chose back at their raw positions.

    For replicated pools, where only the set counts; members keep to their take.
    """
    raw = cluster.pgs[pgid].raw
    result: List[int] = []
    for block in cluster.rules.blocks(cluster.rule_id(pgid), cluster.pool_spec(pgid).size):
        span = slice(len(result), len(result) + block.length)
        strangers = [osd for osd in wanted[span] if osd not in raw[span]]
        result += [osd if osd in wanted[span] else strangers.pop(0) for osd in raw[span]]
    return tuple(result)


def strictly_legal(cluster: MappedCluster, pgid: str, wanted: Sequence[int]) -> bool:
    """Whether the tests' own check of the rule takes the up set, on OSDs fit to be used."""
    if cluster.fault(pgid, wanted) is not None:
        return False
    return all(map(cluster.usable, set(wanted).difference(cluster.pgs[pgid].raw)))


def random_items(cluster: MappedCluster, rng: random.Random, share: float) -> Items:
    """Items for a share of the whole PGs, some of more than one pair, most of them legal.

    The others the monitor may tolerate although CRUSH would never give such a set.
    """
    osds = list(filter(cluster.usable, cluster.osds()))
    items: Items = {}
    for pgid in sorted(cluster.pgs):
        if rng.random() >= share or not whole(cluster, pgid):
            continue
        raw = cluster.pgs[pgid].raw
        wanted = list(raw)
        strict = rng.random() < 0.9
        for _ in range(rng.choice((1, 1, 2))):
            _change_one(cluster, strict, rng, pgid, wanted, osds)
        pairs = pairs_for(raw, wanted)
        if pairs:
            items[pgid] = pairs
    return items


def _change_one(cluster: MappedCluster, strict: bool, rng: random.Random, pgid: str,
                wanted: List[int], osds: Sequence[int]) -> None:
    """Changes one position of `wanted` in place, if one of a few tries is legal; by its rule, if
    `strict`."""
    for _ in range(20):
        position, target = rng.randrange(len(wanted)), rng.choice(osds)
        tried = wanted[:position] + [target] + wanted[position + 1:]
        if target in wanted or target in cluster.pgs[pgid].raw:
            continue
        if not strict or strictly_legal(cluster, pgid, tried):
            wanted[:] = tried
            return


def with_prior_items(cluster: MappedCluster) -> MappedCluster:
    """The cluster with the upmap items its spec asks for.

    Half of the clusters get them at random, half from the built-in balancer's own calculation;
    some PGs get entries that are kept but dead: a pair to a present member, a second pair for the
    same `from`.
    """
    spec = cluster.spec
    if not spec.prior_share:
        return cluster
    items = random_items(cluster, spec.rng, spec.prior_share)
    if spec.rng.random() < 0.3:
        for pool in spec.pools:
            balanced = calc_pg_upmaps(cluster.path, pool.name, 20)
            items.update({pgid: pairs for pgid, pairs in balanced.items() if pairs})
    for pgid in sorted(cluster.pgs):
        raw = cluster.pgs[pgid].raw
        if spec.rng.random() < 0.03 and whole(cluster, pgid) and len(raw) > 1:
            items[pgid] = [(raw[0], raw[1])]
    return with_items(cluster, items)


def random_nonsense(cluster: MappedCluster, rng: random.Random, share: float) -> Items:
    """Items of every kind that the monitor's command would still take, legal or not.

    Chains, swaps, dead pairs, OSDs that are out or of another class, a `from` that is no member.
    """
    osds = cluster.osds()
    items: Items = {}
    for pgid in sorted(cluster.pgs):
        if rng.random() >= share:
            continue
        raw = [osd for osd in cluster.pgs[pgid].raw if osd != ITEM_NONE]
        pairs = []
        for _ in range(rng.randint(1, min(3, cluster.pool_spec(pgid).size))):
            source = rng.choice(raw) if raw and rng.random() < 0.8 else rng.choice(osds)
            target = rng.choice(raw) if raw and rng.random() < 0.1 else rng.choice(osds)
            if source != target and (source, target) not in pairs:
                pairs.append((source, target))
        if pairs:
            items[pgid] = pairs
    return items
