"""Changes as they are named, and the cluster with them: its CRUSH tree is the one that the
simulated monitor makes."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.few import few
from tests.support.rules import EC_PAIRS_IN_2_RACKS, HDD_HOSTS, SSD_FIRST, SSD_HOSTS
from tests.support.units import GIB, TIB

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import NO_OSD, PlacementRule
from equilibrium_mgr.what_if.change import (
    AddedOsds, Changes, other_places, parse_changes, placed_anew_bytes, with_changes)
from mgr_stub.crush.edit import with_host


def racks() -> Cluster:
    """Two racks of two hosts with an HDD and an SSD each; pools on HDDs, on both, and in racks."""
    tree: Dict[str, Any] = {
        "root default": {
            "rack r0": {"host r0h0": [0, 1], "host r0h1": [2, 3]},
            "rack r1": {"host r1h0": [4, 5], "host r1h1": [6, 7]}},
        "root empty": {}}
    rules = {0: HDD_HOSTS, 1: SSD_HOSTS, 2: SSD_FIRST, 3: EC_PAIRS_IN_2_RACKS,
             4: "take empty; chooseleaf indep 0 host; emit"}
    cluster = Cluster(tree, rules, {osd: ("hdd", "ssd")[osd % 2] for osd in range(8)})
    cluster.pool(1, size=2, name="rbd").pg("1.0", "0 2").pool(2, size=2, rule=1).pg("2.0", "1 3")
    cluster.pool(3, size=3, rule=2).pg("3.0", "1 2 4")
    return cluster.pool(4, size=4, rule=3, k=2).pg("4.0", "0 2 4 6")


def parsed(add: Sequence[str] = (), remove: Sequence[str] = (), resize: Sequence[str] = (),
           pg_num: Sequence[str] = (), *, cluster: Optional[Cluster] = None) -> Changes:
    cluster = cluster or racks()
    return parse_changes(cluster.snapshot(), add, remove, resize, pg_num)


def of(line: str) -> Changes:
    """Of one option alone, and its text."""
    option, _, text = line.partition(" ")
    named: Dict[str, Any] = {option: [text]}
    return parsed(**named)


def test_changes_by_name() -> None:
    added = parsed(["n:2x4T:hdd@r1", "r0h0:1x512G:ssd"])
    assert added.added == (
        AddedOsds("n", 2, 4 * TIB, "hdd", "r1"), AddedOsds("r0h0", 1, 512 * GIB, "ssd", "r0"))
    several = parsed([], ["r1h0,osd.0", "7"], ["3=2T,1=1T"], ["rbd=8,4=16"])
    assert several == Changes(
        (), frozenset({0, 4, 5, 7}), ((1, TIB), (3, 2 * TIB)), ((1, 8), (4, 16)))
    found = parsed(["h9:1x1T,h1:1x1T"], cluster=Cluster(hosts(3)))
    assert found.added == (AddedOsds("h9", 1, TIB, "hdd", "default"),
                           AddedOsds("h1", 1, TIB, "hdd", "default"))


#: A part of the sentence → option and text.
NO_CHANGE = {
    "is not HOST:COUNTxSIZE": (
        "add n", "add ", "add n:0x1T:hdd@r0", "add n:1x0:hdd@r0", "add n:1xT:hdd@r0",
        "add n~hdd:1x1T:hdd@r0"),
    "under which bucket": ("add n:1x1T:hdd",),
    "of which class": ("add n:1x1T@r0",),
    "rack r1 is there already": ("add r1:1x1T:hdd@r0",),
    "host r0h0 is there already, under r0": ("add r0h0:1x1T:hdd@r1",),
    "no host can be under r0h1": ("add n:1x1T:hdd@r0h1",),
    "2000 OSDs at most": ("add n:2001x1T:hdd@r0",),
    "under two buckets": ("add n:1x1T:hdd@r0,n:1x1T:hdd@r1",),
    "all OSDs": ("remove default",),
    "is not OSD=SIZE": ("resize 3", "resize 3=big"),
    "is not POOL=N": ("pg_num rbd", "pg_num rbd=0", "pg_num rbd=x"),
    "has 1 PGs already": ("pg_num rbd=1",)}


@pytest.mark.parametrize("words", NO_CHANGE)
def test_what_is_no_change(words: str) -> None:
    for line in NO_CHANGE[words]:
        with pytest.raises(ValueError, match=words):
            of(line)


@pytest.mark.parametrize("line", [
    "add n:1x1T:hdd@nowhere", "remove osd.9", "remove nowhere", "resize osd.9=1T",
    "pg_num nowhere=8"])
def test_names_that_are_not_there(line: str) -> None:
    with pytest.raises(LookupError):
        of(line)


def test_an_osd_that_is_out_cannot_be_removed() -> None:
    with pytest.raises(ValueError, match="no OSD of '3' is in"):
        parsed(remove=["3"], cluster=racks().osd(3, weight=0.0))


def tree_of(rule: PlacementRule, crush: CrushHierarchy) -> List[Any]:
    """All that the legality of placements depends on, buckets by name."""
    found: List[Any] = []
    for block in rule.blocks:
        found.append(block.weights)
        for domain in block.domains:
            names = {osd: crush.buckets[bucket].name for osd, bucket in domain.bucket_of.items()
                     if osd in block.weights}
            found.append((domain.type_name, names, domain.shards_per_bucket,
                          domain.buckets_per_parent))
    return found


@pytest.mark.parametrize("place", few(
    [("n", "hdd", "r0"), ("n", "ssd", "default"), ("r1h0", "hdd", "r1"), ("n", "nvme", "r1"),
     ("n", "ssd", "r1")], 3))
def test_the_tree_is_that_of_the_monitor(place: Tuple[str, str, str]) -> None:
    (host, device_class, under), cluster = place, racks()
    snapshot = cluster.snapshot()
    changed = with_changes(snapshot, Changes((AddedOsds(host, 2, 3 * TIB, device_class, under),)))
    cluster.crush = with_host(cluster.crush, host, dict.fromkeys((8, 9), (device_class, 3.0)),
                              under)
    crush = CrushHierarchy(cluster.crush)
    for pool in changed.pools.values():
        assert pool.rule is not None
        real = PlacementRule(crush, crush.rules[pool.rule_id], pool.size, pool.erasure)
        assert tree_of(pool.rule, changed.crush) == tree_of(real, crush)
        taken = [snapshot.crush.buckets[block.take].name for block in pool.rule.blocks]
        is_reached = any(name.endswith(f"~{device_class}") for name in taken)
        if pool.id == 4 and under == "default":   # its rule wants a rack
            is_reached = False
        assert ({8, 9} <= pool.rule.osds().keys()) == is_reached
    assert changed.crush.hosts()[8] == changed.osds[8].host == host
    assert sorted(snapshot.osds) == list(range(8))
    assert 8 not in snapshot.crush.device_class


def test_osds_with_other_sizes_and_without() -> None:
    changed = with_changes(racks().snapshot(), Changes(
        removed=frozenset({2}), sizes=((1, 3 * TIB),)))
    assert changed.osds[1].size_bytes == 3 * TIB
    assert changed.osds[1].unusable_reason() is None
    assert changed.osds[2].drained
    assert not changed.osds[0].drained


@pytest.mark.parametrize("pg_num, moved", [
    (16, 8 * GIB), (12, 4 * GIB), (32, 12 * GIB), (4, 8 * GIB), (6, 4 * GIB)])
def test_what_another_pg_num_places_anew(pg_num: int, moved: int) -> None:
    """Half of what is split in two, and what is merged into others, but for the shards that stay:
    two of ten OSDs."""
    cluster = Cluster(hosts(10)).pool(1, size=2, name="rbd")
    for ps in range(8):
        cluster.pg(f"1.{ps:x}", [ps, 9], GIB)
    assert placed_anew_bytes(cluster.snapshot(), parsed(
        pg_num=[f"rbd={pg_num}"], cluster=cluster)) == pytest.approx(0.8 * moved, rel=1e-6)


def test_pools_that_are_placed_nowhere_or_are_not_asked_about() -> None:
    cluster = racks().pool(5, size=2, rule=4, name="none", k=1).pg("5.0", [NO_OSD, NO_OSD])
    snapshot = cluster.snapshot()
    assert placed_anew_bytes(snapshot, parsed(pg_num=["none=8"], cluster=cluster)) >= 0
    merging = snapshot._replace(pools={
        **snapshot.pools, 2: snapshot.pools[2]._replace(pg_num=0)})
    assert placed_anew_bytes(merging, Changes()) == 0
    assert placed_anew_bytes(merging, parsed(pg_num=["rbd=2"], cluster=cluster)) > 0


def test_other_places() -> None:
    snapshot, one = racks().snapshot(), AddedOsds("n", 5, TIB, "hdd", "r0")
    words = [name for name, _ in other_places(snapshot, one, 0.5)]
    assert words == ["under r1", "2 of them under each rack", "in 2 hosts of 2", "in 3 hosts of 1",
                     "in 4 hosts of 1", "2 of them"]
    at_root = other_places(snapshot, one._replace(bucket="default", osds=2), 0.2)
    assert [name for name, _ in at_root] == ["in 2 hosts of 1"]
