"""The simulated monitor's cleaning of upmap items against the real one, on items of every kind."""

from __future__ import annotations

import random
from typing import Counter

from mgr_stub.osdmap.crush_map import CrushMap
from mgr_stub.osdmap.upmap import apply_items, clean

from .maps.cluster import MappedCluster, judge
from .maps.random_moves import random_nonsense

ROUNDS = 2


def test_cleaning_of_random_items(cluster: MappedCluster, tally: Counter[str]) -> None:
    crush = CrushMap(cluster.crush_dump)
    weights = {osd["osd"]: osd["weight"] for osd in cluster.osd_dump["osds"]}
    rng = random.Random("nonsense for " + cluster.spec.name)
    for _ in range(ROUNDS):
        items = random_nonsense(cluster, rng, 0.8)
        verdict = judge(cluster, items)
        for pgid, pairs in items.items():
            raw, size = cluster.pgs[pgid].raw, cluster.pool_spec(pgid).size
            left = clean(crush, cluster.rule_id(pgid), size, raw, tuple(pairs), weights.__getitem__)
            expected = verdict.cleaned.get(pgid, pairs)
            assert list(left) == expected, (
                f"{pgid} {raw} with {pairs}: the monitor leaves {expected}, ours {list(left)}")
            up = apply_items(raw, tuple(pairs), lambda osd: weights[osd] <= 0)
            if not cluster.spec.down:
                assert up == verdict.pgs[pgid].up, (pgid, raw, pairs)
        tally["random entries cleaned"] += len(items)
