"""The list of drained OSDs, names of OSDs, and what is left on them."""
from __future__ import annotations

import json
from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.drain.drain_list import (
    DrainList, drain_list_from_dict, osds_by_name)
from equilibrium_mgr.drain.status import Remaining, remaining_shards

LIST = DrainList().with_osds({1: "h0", 0: "h0", 7: "osd.7"})


def stored(drains: DrainList) -> DrainList:
    """As it comes back from the store."""
    return drain_list_from_dict(json.loads(json.dumps(drains.to_dict())))


def test_the_list_survives_the_store() -> None:
    left = {osd: one for osd, one in disks().items() if osd < 2}
    paused = LIST.paused(True).without_gone(left, 5.0)
    assert paused.by_name() == {"h0": [0, 1]}
    assert stored(paused) == paused
    assert paused.notes == ((5.0, "osd.7 (osd.7) no longer exists and has left the list"),)


@pytest.mark.parametrize("value", [
    {}, {"osds": 5}, {"osds": {"h": ["x"]}}, {"notes": [3]}, {"notes": [["1e999", "x"]]},
    {"osds": {"h": [1]}, "notes": [["nan", "x"]]}, {"notes": [[1e18, "x"]]}])
def test_what_cannot_be_read_is_absent(value: Any) -> None:
    assert drain_list_from_dict(value) == DrainList()


def test_an_empty_list_cannot_be_paused() -> None:
    assert not DrainList().paused(True).is_paused
    assert not LIST.paused(True).without(LIST.osds).is_paused


def test_adding_ends_a_pause_and_keeps_names() -> None:
    more = LIST.paused(True).with_osds({0: "osd.0", 3: "osd.3"})
    assert more.is_running
    assert more.names == {0: "h0", 1: "h0", 7: "osd.7", 3: "osd.3"}
    assert more.without(frozenset((0,))).by_name() == {"h0": [1], "osd.3": [3], "osd.7": [7]}


def named(*names: str) -> Dict[int, str]:
    """On two hosts with two OSDs each."""
    snapshot = Cluster(hosts(2, 2)).snapshot()
    return osds_by_name(names, snapshot.crush, snapshot.osds)


def test_osds_have_ids_names_and_buckets() -> None:
    assert named("3", "osd.0", "h0") == {3: "osd.3", 0: "osd.0", 1: "h0"}
    assert named("default") == dict.fromkeys(range(4), "default")


@pytest.mark.parametrize("name", ["9", "osd.x", "h7", "", "9" * 5000])
def test_a_name_of_nothing_is_told(name: str) -> None:
    with pytest.raises(ValueError, match="no OSD") as caught:
        named(name)
    assert len(str(caught.value)) < 200


def remaining(cluster: Cluster, *osds: int, sent: Any = ()) -> Any:
    return remaining_shards(cluster.snapshot(), frozenset(osds), sent)


def test_shards_count_wherever_an_osd_has_them() -> None:
    """In the up set, in the acting set, or still there while they move."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", "0 1", 2 * GIB).pg("1.1", "2 3", acting="0 3", state="active+remapped")
    cluster.pg("1.2", f"2 {NONE}")
    assert remaining(cluster, 0, 3) == {0: Remaining(2, 3 * GIB, 1), 3: Remaining(1, GIB, 0)}
    assert remaining(cluster, 9) == {9: Remaining()}


def test_a_shard_that_was_sent_a_moment_ago_is_still_there() -> None:
    """While the PG peers no set of it shows that; what the sets show counts once."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", "1 2", 2 * GIB).pg("1.1", "1 2", acting="0 2", state="active+remapped")
    sent = [(pgid, (0,)) for pgid in ("1.0", "1.1", "1.7")]
    assert remaining(cluster, 0, 3, sent=sent) == {0: Remaining(2, 3 * GIB, 2), 3: Remaining()}


def disks(**osds: str) -> Any:
    cluster = Cluster(hosts(8))
    for osd, uuid in osds.items():
        cluster.osds[int(osd[1:])]["uuid"] = uuid
    return cluster.snapshot().osds


def test_a_replaced_disk_leaves_the_list() -> None:
    """As `ceph osd destroy` and a new disk under the same id; purged and created between looks."""
    first = LIST.without_gone(disks(o0="aaaaaa-1", o1="bbbbbb-1", o7=""), 1.0)
    assert not first.notes
    assert first.osds == LIST.osds
    assert stored(first) == first
    assert first.disks.keys() == {0, 1}
    now = stored(first).without_gone(disks(o0="cccccc-1", o1="bbbbbb-1", o7="dddddd-1"), 2.0)
    assert now.osds == {1, 7}
    assert now.disks.keys() == {1, 7}
    assert now.notes == ((2.0, "osd.0 (h0) has another disk now and has left the list"),)
    osds = disks(o1="000000-1", o7="dddddd-1")
    gone = now.without_gone({**osds, 1: osds[1]._replace(destroyed=True)}, 3.0)
    assert gone.osds == {7}
    assert "osd.1 (h0) was destroyed" in gone.notes[-1][1]
    again = gone.with_osds({7: "osd.7"})   # the operator means the disk that is there now
    assert again.without_gone(disks(o7="eeeeee-1"), 4.0).osds == {7}


def test_a_list_that_is_too_long_to_be_stored_is_told() -> None:
    assert DrainList().with_osds(dict.fromkeys(range(4000), "default")).fits
    long = DrainList().with_osds(dict.fromkeys(range(9000), "default"))
    assert not long.fits
