"""The osdmap: whatever others change shows at the next look, and each epoch is dumped once."""
from __future__ import annotations

from typing import List, Tuple

import pytest
from tests.gateway.map_changes import (
    Mutation, by_a_dump, deleted_pool, down, foreign_items, grown_pool, moved_bucket, now,
    open_gateway, out, set_extra, shown, shrunk_pool, small)
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts

from equilibrium_mgr.gateway.gateway import NotReady


CHANGES: List[Tuple[str, Mutation]] = [
    ("foreign upmap", foreign_items),
    ("pool created", lambda c: c.pool(3, size=2, name="new").pg("3.0", [0, 1])),
    ("pool deleted", deleted_pool),
    ("pg_num up", grown_pool),
    ("pg_num down", shrunk_pool),
    ("full ratios", set_extra(full_ratio=0.97, backfillfull_ratio=0.96)),
    ("OSD out", out),
    ("OSD down", down),
    ("crush move", moved_bucket),
    ("pg_temp", lambda c: c.pg("1.1", [1, 2], acting=[3, 2], state="active+remapped")),
    ("nothing that matters", lambda c: None),
]


@pytest.mark.parametrize("mutate", [c[1] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_it_shows_at_the_next_look(mutate: Mutation) -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    mutate(cluster)
    mgr.calls.clear()
    seen = now(gateway)
    now(gateway)
    assert mgr.calls["dump"] == 1
    assert shown(seen) == shown(by_a_dump(mgr, clock))


def test_acting_as_ceph_computes_it_not_as_the_map_keeps_it() -> None:
    """pg_temp of EC-optimized pools has the shards that can be primary first."""
    cluster = small()
    cluster.extra.update(pg_temp=[{"pgid": "1.1", "osds": [2, 1]}])
    gateway, _, _ = open_gateway(cluster)
    assert not now(gateway).acting and gateway.snapshot().pgs["1.1"].acting == (1, 2)


def test_holes_of_erasure_coded_pools() -> None:
    cluster = Cluster(hosts(6)).pool(1, size=3, k=2).pg("1.0", [0, 1, 2])
    gateway, _, _ = open_gateway(cluster)
    cluster.epoch += 1
    cluster.osd(1, up=0, state=["exists"])
    cluster.pg("1.0", [0, NONE, 2], state="active+undersized")
    assert now(gateway).up["1.0"] == (0, NONE, 2)


def test_a_failed_look_forgets_nothing() -> None:
    cluster = small()
    gateway, mgr, clock = open_gateway(cluster)
    cluster.epoch += 1
    foreign_items(cluster)
    mgr.missing = ["osd_stats"]
    with pytest.raises(NotReady):
        gateway.snapshot()
    mgr.missing = []
    assert shown(now(gateway)) == shown(by_a_dump(mgr, clock))
