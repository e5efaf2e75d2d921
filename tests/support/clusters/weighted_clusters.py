"""Random clusters whose operator has lowered weights, with the share that each OSD is left.

The truth is made here and not computed from the weights: `shares` is what the operator meant.
"""
from __future__ import annotations

import random
from typing import Any, Dict, List, NamedTuple, Sequence

from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB, TIB

_RULE = "take default~%s; chooseleaf firstn 0 host; emit"
_EC_RULE = "take default~%s; chooseleaf indep 0 host; emit"


class Weighted(NamedTuple):
    """A cluster and OSD → the share of its size that it is to be filled by."""

    cluster: Cluster
    shares: Dict[int, float]


class Layout(NamedTuple):
    """Hosts of OSDs, and what CRUSH weights come to for a size."""

    hosts: int
    each: int
    sizes: Dict[int, int]     # OSD → bytes
    unit: float               # CRUSH weight per TiB; 0: every OSD has the weight 1.0


def layout(rng: random.Random, unit: float = -1.0, sizes: Sequence[int] = ()) -> Layout:
    """6 to 9 hosts of 2 to 4 OSDs. Weights are TiB, or in another unit."""
    hosts, each = rng.randint(6, 9), rng.randint(2, 4)
    sizes = sizes or rng.choice(((400,), (400, 800), (200, 400, 800)))
    return Layout(hosts, each, {osd: rng.choice(sizes) * GIB for osd in range(hosts * each)},
                  rng.choice((1.0, 1.0, 1.0, 0.1, 40.0)) if unit < 0.0 else unit)


def weighted(seed: int, shares: Dict[int, float], crush: bool, made: Layout,
             **fields: Any) -> Weighted:
    """Held by CRUSH weights or by reweights; filled by sizes, as before the operator came."""
    rng = random.Random(f"weighted {seed}")
    osds = sorted(made.sizes)
    weights = {osd: made.unit * made.sizes[osd] / TIB if made.unit else 1.0 for osd in osds}
    if crush:
        weights.update({osd: weights[osd] * share for osd, share in shares.items()})
    tree = {"root default": {f"host h{h}": osds[h * made.each:(h + 1) * made.each]
                             for h in range(made.hosts)}}
    cluster = Cluster(tree, {0: _RULE % "hdd", 1: _EC_RULE % "hdd"}, weights=weights)
    for osd in osds:
        cluster.osd(osd, size=made.sizes[osd])
        if not crush and osd in shares:
            cluster.osd(osd, weight=shares[osd])
    cluster.pool(1, size=3).pool(2, size=4, rule=1, k=2)
    whole = sum(made.sizes.values())
    for pool, size, part, count in ((1, 3, 0.4, 32 * made.hosts), (2, 4, 0.2, 16 * made.hosts)):
        mean = part * whole / (size * count)
        for ps in range(count):
            up = place(rng, made, size, fields.get("empty", ()))
            cluster.pg(f"{pool}.{ps:x}", up, objects=100,
                       num_bytes=int(mean * rng.uniform(0.7, 1.3)) * (2 if pool == 2 else 1))
    return Weighted(cluster, dict(shares))


def place(rng: random.Random, made: Layout, size: int, empty: Sequence[int]) -> List[int]:
    """An up set by sizes, one shard a host; nothing on the OSDs that are empty."""
    sizes = {osd: 0 if osd in empty else made.sizes[osd] for osd in made.sizes}
    by_host = [[osd for osd in sizes if osd // made.each == host] for host in range(made.hosts)]
    left = [host for host in range(made.hosts) if any(sizes[osd] for osd in by_host[host])]
    up: List[int] = []
    for _ in range(size):
        host = rng.choices(left, [sum(sizes[osd] for osd in by_host[h]) for h in left])[0]
        left.remove(host)
        up.append(rng.choices(by_host[host], [sizes[osd] for osd in by_host[host]])[0])
    return up
