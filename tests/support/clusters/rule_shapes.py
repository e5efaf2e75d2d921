"""Random small clusters of many rule shapes, with the troubles that OSDs and PGs can have."""
from __future__ import annotations

import random
import re
from itertools import count, islice
from typing import Any, Dict, Iterator, List, NamedTuple, Set, Tuple

from tests.benchmark.made.placing import NotEnoughBuckets, Placer
from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB

from mgr_stub.crush.hashes import NONE
from mgr_stub.crush.mapper import Mapper

Tree = Dict[str, Any]


class RuleShape(NamedTuple):
    """A tree and pools of (rule, size, k); OSDs `ssds` are of another class."""

    tree: Tree
    osds: int
    pools: List[Tuple[str, int, int]]
    ssds: List[int]


def _shape(branches: str, lines: str) -> RuleShape:
    """`branches`: OSDs of each host, as digits. Words of them are racks, or what the first word
    says; hosts after a + are beside them."""
    kind, *words = branches.split(" ")
    tree: Tree = {}
    numbers = count()
    if not words:
        tree = _hosts(numbers, kind, "h")
    for number, word in enumerate(words):
        if word[0] == "+":
            tree.update(_hosts(numbers, word[1:], "lone"))
        else:
            tree[f"{kind} b{number}"] = _hosts(numbers, word, f"b{number}h")
    pools: List[Tuple[str, int, int]] = []
    for size, k, rule in re.findall(r"(\d+) ?(\d*): (.+)", lines):
        pools.append((rule, int(size), int(k or 0)))
    ssds = re.findall(r"ssd (.+)", lines)
    return RuleShape({"root default": tree}, next(numbers), pools,
                     [int(osd) for osd in " ".join(ssds).split()])


def _hosts(numbers: Iterator[int], counts: str, prefix: str) -> Tree:
    return {f"host {prefix}{number}": list(islice(numbers, int(osds)))
            for number, osds in enumerate(counts)}


#: Name and branches; below them a pool a line: size, k of an erasure code, and rule.
#: `rooms-2x2-partly` has as many rooms as are chosen, and a place to spare.
_TEXT = """
replicated-host: 443544
    3: take default; chooseleaf firstn 0 host; emit
    2: take default; chooseleaf firstn 0 host; emit
replicated-osd: 463
    3: take default; choose firstn 0 osd; emit
    2: take default; choose firstn 0 osd; emit
erasure-osd: 453
    5 3: take default; choose indep 0 osd; emit
    3: take default; choose firstn 0 osd; emit
erasure-all-hosts: 345343
    6 4: take default; chooseleaf indep 0 host; emit
    6 3: take default; chooseleaf indep 0 host; emit
erasure-host: 4443354
    4 2: take default; chooseleaf indep 0 host; emit
    3: take default; chooseleaf firstn 0 host; emit
replicated-indep: 4443
    3: take default; chooseleaf indep 0 host; emit
    2: take default; chooseleaf firstn 0 host; emit
racks-2x2-firstn: rack 334 433 343
    4: take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit
    3: take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit
racks-3x2-indep: rack 33 343 333 43
    6 4: take default; choose indep 3 rack; chooseleaf indep 2 host; emit
    5 3: take default; choose indep 3 rack; chooseleaf indep 2 host; emit
racks-all-indep: rack 333 343
    4 2: take default; choose indep 2 rack; chooseleaf indep 2 host; emit
hosts-2-osds: 55456
    6 4: take default; choose indep 3 host; choose indep 2 osd; emit
    4: take default; choose firstn 2 host; choose firstn 2 osd; emit
sites: datacenter 444 333
    4: take default; choose firstn 2 datacenter; chooseleaf firstn 2 host; emit
    2: take default; chooseleaf firstn 0 datacenter; emit
two-sites-by-take: datacenter 434 343
    3: take b0; chooseleaf firstn 2 host; emit; take b1; chooseleaf firstn -2 host; emit
    2: take b1; chooseleaf firstn 0 host; emit
rooms-2x2-partly: room 444 333
    3: take default; choose firstn 2 room; chooseleaf firstn 2 host; emit
hosts-partly: 568
    8 5: take default; choose indep 3 host; choose indep 3 osd; emit
    10 7: take default; choose indep 3 host; choose indep 4 osd; emit
one-rack: rack 333 343
    3: take default; choose firstn 1 rack; chooseleaf firstn 0 host; emit
uneven-depth: rack 34 333 +33
    3: take default; chooseleaf firstn 0 host; emit
    4 2: take default; chooseleaf indep 0 host; emit
hosts-outside-racks: rack 34 33 43 3 +3
    3: take default; chooseleaf firstn 0 rack; emit
hybrid: 555555
    3: take default~ssd; chooseleaf firstn 1 host; emit;\
take default~hdd; chooseleaf firstn -1 host; emit
    3: take default~hdd; chooseleaf firstn 0 host; emit
    2: take default~ssd; chooseleaf firstn 0 host; emit
    ssd 0 1 5 6 10 11 15 16 20 21 25 26
msr-hosts: 55456
    6 4: msr_indep; take default; choosemsr 3 host; choosemsr 2 osd; emit
    4: msr_firstn; take default; choosemsr 2 host; choosemsr 2 osd; emit
msr-partly: 568
    8 5: msr_indep; take default; choosemsr 3 host; choosemsr 3 osd; emit
msr-racks: rack 334 343 333
    7 5: msr_indep; take default; choosemsr 2 rack; choosemsr 2 host; choosemsr 2 osd; emit
    3: msr_indep; take default; choosemsr 0 host; choosemsr 1 osd; emit
"""
RULE_SHAPES: Dict[str, RuleShape] = {
    name: _shape(branches, lines)
    for name, branches, lines in re.findall(r"^(\S+): (.+)\n((?: .+\n)+)", _TEXT, re.M)}

TROUBLES = ("plain", "items", "trouble")


def make(shape_name: str, trouble: str, seed: int = 0) -> Cluster:
    """A cluster of a shape. items: upmap items, some of them senseless, and PGs in flight.
    trouble: OSDs out, down, destroyed, reweighted, empty-handed; pinned PGs."""
    rng = random.Random(f"{shape_name}/{trouble}/{seed}")
    shape = RULE_SHAPES[shape_name]
    sizes = {osd: rng.choice((100, 200, 200, 400)) for osd in range(shape.osds)}
    weights = {osd: size / 100 * rng.uniform(0.6, 1.6) for osd, size in sizes.items()}
    rules = {number: rule for number, (rule, *_) in enumerate(shape.pools)}
    cluster = Cluster(shape.tree, rules, dict.fromkeys(shape.ssds, "ssd"), weights)
    for osd, size in sizes.items():
        cluster.osd(osd, size=size * GIB)
    gone = _trouble(cluster, rng) if trouble == "trouble" else set()
    there = sorted(set(sizes) - gone)
    placer = Placer(cluster.crush, rng)
    for number, (text, size, k) in enumerate(shape.pools):
        cluster.pool(number + 1, size=size, rule=number, k=k)
        rule = cluster.snapshot().pools[number + 1].rule
        assert rule is not None
        for ps in range(24):
            if "msr_" in text:
                raw = _crushed(cluster, number, ps, size, gone)
            else:
                raw = _placed(placer, number, size, gone)
            up, items, acting = raw, [], None
            if trouble != "plain" and rng.random() < 0.3:
                position, target = rng.randrange(size), rng.choice(there)
                wanted = up[:position] + [target] + up[position + 1:]
                if target not in raw and (rule.violation(wanted) is None or rng.random() < 0.1):
                    up, items = wanted, [(raw[position], target)]
            num_bytes = 0
            if rng.random() >= 0.05:
                num_bytes = rng.randrange(12 * GIB) * (k or 1)
            objects = rng.randrange(99)
            if items and rng.random() < 0.3:
                acting = raw
            cluster.pg(f"{number + 1}.{ps:x}", up, num_bytes, objects, items=items, acting=acting,
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
    reweights = {**dict.fromkeys(cluster.osds, 0x10000), **dict.fromkeys(gone, 0)}
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
