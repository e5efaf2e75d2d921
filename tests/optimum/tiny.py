"""Clusters so tiny that all their placements can be enumerated."""
from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Dict, FrozenSet, List, Sequence, Tuple

from tests.optimum.comparison import Figures, figures_of
from tests.optimum.problem import Part
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import EC_PAIRS_IN_2_RACKS, HDD_HOSTS, HDD_OSDS
from tests.support.units import GIB

#: Pool → up sets.
Allowed = Dict[int, FrozenSet[FrozenSet[int]]]


def unequal() -> Cluster:
    """Three PGs of a pool and two of another on three hosts of unequal OSDs."""
    cluster = Cluster(hosts(3, 2), {0: HDD_HOSTS}).pool(1, size=2).pool(2, size=2)
    for osd, size in enumerate((100, 80, 150, 100, 60, 90)):
        cluster.osd(osd, size=size * GIB)
    for ps in range(3):
        cluster.pg(f"1.{ps:x}", [0, 2], num_bytes=9 * GIB)
    for ps in range(2):
        cluster.pg(f"2.{ps:x}", [1, 4], num_bytes=20 * GIB)
    return cluster


def split_in_part() -> Cluster:
    """pg_num is no power of two: two of the three PGs get half as much as the other one."""
    cluster = Cluster(hosts(1, 5), {0: HDD_OSDS}).pool(1, size=2)
    for osd, size in enumerate((100, 80, 170, 120, 60)):
        cluster.osd(osd, size=size * GIB)
    for ps, gib in enumerate((12, 24, 12)):
        cluster.pg(f"1.{ps:x}", [0, 1], num_bytes=gib * GIB)
    return cluster


def pairs() -> Cluster:
    """Two shards in each of two of three racks, beside a replicated pool."""
    tree = {"root default": {f"rack r{rack}": {
        f"host r{rack}h{host}": [2 * rack + host] for host in range(2)} for rack in range(3)}}
    cluster = Cluster(tree, {0: EC_PAIRS_IN_2_RACKS, 1: HDD_HOSTS})
    cluster.pool(1, size=4, k=2).pool(2, size=2, rule=1).osd(5, size=160 * GIB)
    for ps in range(4):
        cluster.pg(f"1.{ps:x}", [0, 1, 2, 3], num_bytes=22 * GIB)
    for ps in range(2):
        cluster.pg(f"2.{ps:x}", [4, 5], num_bytes=17 * GIB)
    return cluster


def with_foreign_bytes() -> Cluster:
    cluster = unequal()
    return cluster.osd(3, used=cluster.used_bytes(3) + 30 * GIB)


TINY = {one.__name__: one for one in (unequal, split_in_part, pairs, with_foreign_bytes)}


def enumerated(part: Part, allowed: Allowed) -> List[Figures]:
    """Of every placement there is."""
    found: Dict[Tuple[float, ...], Figures] = {}
    for ups in product(*[combinations_with_replacement(sorted(allowed[one.pool], key=sorted),
                                                       len(one.pgs)) for one in part.classes]):
        placed: Dict[str, Sequence[int]] = {
            pgid: sorted(up) for one, sets in zip(part.classes, ups)
            for pgid, up in zip(one.pgs, sets)}
        figures = figures_of(part, placed)
        found[(figures.max_utilization, *figures.free_bytes)] = figures
    return list(found.values())
