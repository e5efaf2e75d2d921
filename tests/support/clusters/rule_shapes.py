"""Random small clusters of many rule shapes, with the troubles that OSDs and PGs can have."""
from __future__ import annotations

import random
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from tests.benchmark.made.placing import NotEnoughBuckets, Placer
from tests.support.clusters.unit_cluster import Cluster
from tests.support.rules import EC_HOST_RULE, EC_OSD_RULE, HOST_RULE, OSD_RULE
from tests.support.units import GIB

from mgr_stub.crush.hashes import NONE
from mgr_stub.crush.mapper import Mapper

Tree = Dict[str, Any]


class RuleShape(NamedTuple):
    """A tree and pools of (rule, size, k); OSDs `ssds` are of another class."""

    tree: Tree
    osds: int
    pools: Tuple[Tuple[str, int, int], ...]
    ssds: Tuple[int, ...] = ()


def _hosts(first: int, counts: List[int], prefix: str = "h") -> Tuple[Tree, int]:
    tree: Tree = {}
    for number, count in enumerate(counts):
        tree[f"host {prefix}{number}"] = list(range(first, first + count))
        first += count
    return tree, first


def _flat(counts: List[int], *pools: Tuple[str, int, int]) -> RuleShape:
    tree, osds = _hosts(0, counts)
    return RuleShape({"root default": tree}, osds, pools)


def _nested(kind: str, counts: List[List[int]], *pools: Tuple[str, int, int],
            lone: int = 0) -> RuleShape:
    """Hosts in racks or sites, `lone` ones beside them."""
    tree: Tree = {}
    first = 0
    for number, hosts in enumerate(counts):
        tree[f"{kind} b{number}"], first = _hosts(first, hosts, f"b{number}h")
    beside, first = _hosts(first, [3] * lone, "lone")
    tree.update(beside)
    return RuleShape({"root default": tree}, first, pools)


def _two_classes() -> RuleShape:
    tree, osds = _hosts(0, [5] * 6)
    ssds = tuple(osd for osd in range(osds) if osd % 5 < 2)
    return RuleShape({"root default": tree}, osds, (
        ("take default~ssd; chooseleaf firstn 1 host; emit;"
         "take default~hdd; chooseleaf firstn -1 host; emit", 3, 0),
        ("take default~hdd; chooseleaf firstn 0 host; emit", 3, 0),
        ("take default~ssd; chooseleaf firstn 0 host; emit", 2, 0)), ssds)


RULE_SHAPES: Dict[str, RuleShape] = {
    "replicated-host": _flat([4, 4, 3, 5, 4, 4], (HOST_RULE, 3, 0), (HOST_RULE, 2, 0)),
    "replicated-osd": _flat([4, 6, 3], (OSD_RULE, 3, 0), (OSD_RULE, 2, 0)),
    "erasure-osd": _flat([4, 5, 3], (EC_OSD_RULE, 5, 3), (OSD_RULE, 3, 0)),
    "erasure-all-hosts": _flat([3, 4, 5, 3, 4, 3], (EC_HOST_RULE, 6, 4), (EC_HOST_RULE, 6, 3)),
    "erasure-host": _flat([4, 4, 4, 3, 3, 5, 4], (EC_HOST_RULE, 4, 2), (HOST_RULE, 3, 0)),
    "replicated-indep": _flat([4, 4, 4, 3], (EC_HOST_RULE, 3, 0), (HOST_RULE, 2, 0)),
    "racks-2x2-firstn": _nested(
        "rack", [[3, 3, 4], [4, 3, 3], [3, 4, 3]],
        ("take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit", 4, 0),
        ("take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit", 3, 0)),
    "racks-3x2-indep": _nested(
        "rack", [[3, 3], [3, 4, 3], [3, 3, 3], [4, 3]],
        ("take default; choose indep 3 rack; chooseleaf indep 2 host; emit", 6, 4),
        ("take default; choose indep 3 rack; chooseleaf indep 2 host; emit", 5, 3)),
    "racks-all-indep": _nested(
        "rack", [[3, 3, 3], [3, 4, 3]],
        ("take default; choose indep 2 rack; chooseleaf indep 2 host; emit", 4, 2)),
    "hosts-2-osds": _flat([5, 5, 4, 5, 6], (
        "take default; choose indep 3 host; choose indep 2 osd; emit", 6, 4),
        ("take default; choose firstn 2 host; choose firstn 2 osd; emit", 4, 0)),
    "sites": _nested(
        "datacenter", [[4, 4, 4], [3, 3, 3]],
        ("take default; choose firstn 2 datacenter; chooseleaf firstn 2 host; emit", 4, 0),
        ("take default; chooseleaf firstn 0 datacenter; emit", 2, 0)),
    "two-sites-by-take": _nested(
        "datacenter", [[4, 3, 4], [3, 4, 3]],
        ("take b0; chooseleaf firstn 2 host; emit; take b1; chooseleaf firstn -2 host; emit",
         3, 0), ("take b1; chooseleaf firstn 0 host; emit", 2, 0)),
    "rooms-2x2-partly": _nested(   # as many rooms as are chosen, and a place to spare
        "room", [[4, 4, 4], [3, 3, 3]],
        ("take default; choose firstn 2 room; chooseleaf firstn 2 host; emit", 3, 0)),
    "hosts-partly": _flat([5, 6, 8], (
        "take default; choose indep 3 host; choose indep 3 osd; emit", 8, 5),
        ("take default; choose indep 3 host; choose indep 4 osd; emit", 10, 7)),
    "one-rack": _nested(
        "rack", [[3, 3, 3], [3, 4, 3]],
        ("take default; choose firstn 1 rack; chooseleaf firstn 0 host; emit", 3, 0)),
    "uneven-depth": _nested("rack", [[3, 4], [3, 3, 3]], (HOST_RULE, 3, 0), (EC_HOST_RULE, 4, 2),
                            lone=2),
    "hosts-outside-racks": _nested(
        "rack", [[3, 4], [3, 3], [4, 3], [3]],
        ("take default; chooseleaf firstn 0 rack; emit", 3, 0), lone=1),
    "hybrid": _two_classes(),
    "msr-hosts": _flat([5, 5, 4, 5, 6], (
        "msr_indep; take default; choosemsr 3 host; choosemsr 2 osd; emit", 6, 4),
        ("msr_firstn; take default; choosemsr 2 host; choosemsr 2 osd; emit", 4, 0)),
    "msr-partly": _flat([5, 6, 8], (
        "msr_indep; take default; choosemsr 3 host; choosemsr 3 osd; emit", 8, 5),),
    "msr-racks": _nested(
        "rack", [[3, 3, 4], [3, 4, 3], [3, 3, 3]],
        ("msr_indep; take default; choosemsr 2 rack; choosemsr 2 host; choosemsr 2 osd; emit",
         7, 5), ("msr_indep; take default; choosemsr 0 host; choosemsr 1 osd; emit", 3, 0))}

TROUBLES = ("plain", "items", "trouble")


def make(shape_name: str, trouble: str, seed: int = 0) -> Cluster:
    """A cluster of a shape. items: upmap items, some of them senseless, and PGs in flight.
    trouble: OSDs out, down, destroyed, reweighted, empty-handed; pinned PGs."""
    rng = random.Random(f"{shape_name}/{trouble}/{seed}")
    shape = RULE_SHAPES[shape_name]
    sizes = {osd: rng.choice((100, 200, 200, 400)) for osd in range(shape.osds)}
    cluster = Cluster(
        shape.tree, {number: rule for number, (rule, _, _) in enumerate(shape.pools)},
        {osd: "ssd" for osd in shape.ssds},
        {osd: size / 100 * rng.uniform(0.6, 1.6) for osd, size in sizes.items()})
    for osd, size in sizes.items():
        cluster.osd(osd, size=size * GIB)
    gone = _trouble(cluster, rng) if trouble == "trouble" else set()
    placer = Placer(cluster.crush, rng)
    for number, (_, size, k) in enumerate(shape.pools):
        cluster.pool(number + 1, size=size, rule=number, k=k)
        rule = cluster.snapshot().pools[number + 1].rule
        assert rule is not None
        for ps in range(24):
            raw = (_crushed(cluster, number, ps, size, gone) if "msr_" in shape.pools[number][0]
                   else _placed(placer, number, size, gone))
            up, items = list(raw), []
            if trouble != "plain" and rng.random() < 0.3:
                position, target = rng.randrange(size), rng.choice(sorted(set(sizes) - gone))
                wanted = up[:position] + [target] + up[position + 1:]
                if target not in raw and (rule.violation(wanted) is None or rng.random() < 0.1):
                    up, items = wanted, [(raw[position], target)]
            cluster.pg(f"{number + 1}.{ps:x}", up, items=items,
                       num_bytes=0 if rng.random() < 0.05 else rng.randrange(
                           12 * GIB) * (k or 1), objects=rng.randrange(99),
                       acting=raw if items and rng.random() < 0.3 else None,
                       uncopied_ratio=rng.random())
    if trouble == "trouble":
        pinned = rng.choice(sorted(cluster.up))
        cluster.extra["pg_upmap"] = [{"pgid": pinned, "osds": cluster.up[pinned]}]
    return cluster


def _trouble(cluster: Cluster, rng: random.Random) -> Set[int]:
    """Spoils some OSDs; those that CRUSH gives nothing any more."""
    out, reweighted, down, destroyed, silent, full = rng.sample(sorted(cluster.osds), 6)
    cluster.mark_out(out)
    cluster.osd(reweighted, weight=rng.choice((0.3, 0.6)))
    cluster.osd(down, up=0, state=["exists"])
    cluster.osd(destroyed, up=0, state=["exists", "destroyed"]).mark_out(destroyed)
    cluster.without_statistics = [silent]
    cluster.osd(full, used=int(cluster.sizes[full] * 0.86))
    return {out, destroyed}


def _crushed(cluster: Cluster, rule: int, ps: int, size: int, gone: Set[int]) -> List[int]:
    """What CRUSH gives, for the first input for which it finds all shards."""
    reweights = {osd: 0 if osd in gone else 0x10000 for osd in cluster.osds}
    mapper, x = Mapper(cluster.crush), 1000 * ps
    while True:
        found = mapper.map(rule, x, size, reweights)
        if len(found) == size and NONE not in found:
            return list(found)
        x += 1


def _placed(placer: Placer, rule: int, size: int, gone: Set[int]) -> List[int]:
    """A raw mapping without the OSDs that are out."""
    raw: List[int] = []
    for _ in range(500):
        try:
            raw = placer.place(rule, size)
        except NotEnoughBuckets:
            continue
        if not set(raw) & gone:
            break
    return raw
