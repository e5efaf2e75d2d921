"""Random small clusters, legal by their rules and unequally full, the same for the same seed."""
from __future__ import annotations

import random
from typing import Any, Dict, List, Sequence

from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB

RULES = {0: "take default~hdd; chooseleaf firstn 0 host; emit",
         1: "take default~hdd; chooseleaf indep 0 host; emit",
         2: "take default~ssd; chooseleaf firstn 0 host; emit",
         3: "take default~ssd; chooseleaf firstn 1 host; emit;"
            "take default~hdd; chooseleaf firstn -1 host; emit"}
HOSTS = 6
PER_HOST = 3     # the first OSD of a host is an SSD
HDDS = [osd for osd in range(HOSTS * PER_HOST) if osd % PER_HOST]
SSDS = [osd for osd in range(HOSTS * PER_HOST) if osd % PER_HOST == 0]


def random_cluster(seed: int, hybrid: bool = False) -> Cluster:
    """Pool 1 replicated and 2 erasure-coded on HDDs, 3 on SSDs, with `hybrid` 4 on both.

    Every tenth PG or so is in flight, every fourth has upmap items.
    """
    rng = random.Random(seed)
    tree = {"root default": {f"host h{h}": list(range(PER_HOST * h, PER_HOST * (h + 1)))
                             for h in range(HOSTS)}}
    sizes = {osd: rng.choice((100, 200, 400)) for osd in HDDS + SSDS}
    cluster = Cluster(tree, RULES, classes={osd: "ssd" for osd in SSDS},
                      weights={osd: size / 100.0 for osd, size in sizes.items()})
    for osd, size in sizes.items():
        cluster.osd(osd, size=size * GIB)
    cluster.pool(1, size=3, rule=0).pool(2, size=3, rule=1, k=2).pool(3, size=2, rule=2)
    for ps in range(24):
        place(cluster, rng, f"1.{ps:x}", [HDDS], 3, 6)
        place(cluster, rng, f"2.{ps:x}", [HDDS], 3, 9)
        place(cluster, rng, f"3.{ps:x}", [SSDS], 2, 4)
    if hybrid:
        cluster.pool(4, size=3, rule=3)
        for ps in range(12):
            place(cluster, rng, f"4.{ps:x}", [SSDS, HDDS], 3, 5)
    return cluster


def place(cluster: Cluster, rng: random.Random, pgid: str, takes: Sequence[List[int]], size: int,
          most_gib: int) -> None:
    """One PG on random hosts: with two takes the first shard is of the first take."""
    counts = [size] if len(takes) == 1 else [1, size - 1]
    raw: List[int] = []
    spare: List[int] = []
    for osds, count in zip(takes, counts):
        hosts = rng.sample(range(HOSTS), count + 1)
        picked = [rng.choice([o for o in osds if o // PER_HOST == host]) for host in hosts]
        raw += picked[:count]
        spare += [picked[count]] * count
    up, items = list(raw), []
    position = rng.randrange(size)
    if rng.random() < 0.25:
        items = [(raw[position], spare[position])]
        up[position] = spare[position]
    cluster.pg(pgid, up, num_bytes=rng.randrange(most_gib * GIB), objects=rng.randrange(500),
               items=items, acting=raw if items and rng.random() < 0.4 else None,
               uncopied_ratio=rng.random())


def shuffled(cluster: Cluster, seed: int) -> Cluster:
    """The same cluster with every dictionary and list of entries in another order."""
    rng = random.Random(seed)

    def mixed(mapping: Dict[Any, Any]) -> Dict[Any, Any]:
        keys = list(mapping)
        rng.shuffle(keys)
        return {key: mapping[key] for key in keys}
    for name in ("osds", "sizes", "used", "pools", "profiles", "up", "acting", "items",
                 "records"):
        setattr(cluster, name, mixed(getattr(cluster, name)))
    for part in ("devices", "buckets", "rules"):
        rng.shuffle(cluster.crush[part])
    return cluster
