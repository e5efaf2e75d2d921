"""A host is drained while a client writes, automatic balancing is off, and the mgr is killed."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, equilibrium_json, run, status
from ..harness.map_history import MapHistory
from ..harness.story import Story, illegal_placements, story_under

#: Two minutes: on the other releases with --ceph-every.
pytestmark = pytest.mark.releases(20)

HOST, DRAINED = "h1", (2, 3)
LIMIT = 0.08
"""The misplaced limit: a few of the cluster's PG shards at once."""
LIMIT_TOLERANCE = 0.001
"""Objects of the PGs are known as of the last full reading, and the client adds some meanwhile."""
FILL_LIMIT = 0.88
"""Backfillfull less the margin."""
FILL_TOLERANCE = 0.02
"""What the client writes, and BlueStore keeps of what has left."""
DRAINED_SECONDS = 300


@pytest.fixture(scope="module")
def story(cluster: DaemonCluster) -> Iterator[Story]:
    """An unequal cluster with a small misplaced limit, a client that writes, and a watcher."""
    try:
        with story_under(cluster, LIMIT) as told:
            yield told
    finally:
        equilibrium(cluster, "drain rm", osds=[HOST])


def drains(cluster: DaemonCluster) -> Dict[str, Any]:
    """The JSON of `drain ls`."""
    found: Dict[str, Any] = equilibrium_json(cluster, "drain ls")
    return found


def on_drained(cluster: DaemonCluster) -> List[str]:
    """PGs with the drained host in their up or acting set, by Ceph's own word."""
    return [pg["pgid"] for pg in cluster.pg_stats()
            if not {*pg["up"], *pg["acting"]}.isdisjoint(DRAINED)]


def test_a_drain_goes_on_through_the_death_of_the_mgr(
        story: Story, figure: Callable[[str], None]) -> None:
    cluster = story.cluster
    run(cluster, "drain add", osds=[HOST])
    begun = time.time()
    wait_for("two batches", lambda: len(story.batches_since(begun)) >= 2, 60)
    left = drains(cluster)
    assert 0 < left["shards"] <= len(on_drained(cluster)) * 2
    assert not left["safe_to_stop"]
    before = cluster.active_mgr()
    assert cluster.kill_mgr() != before
    cluster.wait_module()
    killed = len(story.batches_since(begun))
    wait_for("no shard left", lambda: drains(cluster)["safe_to_stop"], DRAINED_SECONDS, pause=1.0)
    found = drains(cluster)
    assert [row["shards"] for row in found["osds"]] == [0, 0], found
    assert on_drained(cluster) == []
    count, took = len(story.batches_since(begun)), time.time() - begun
    assert count > killed
    figure(f"drain of {HOST}: {left['shards']} shards left as the mgr was killed after {killed}"
           f" batches, 0 after {took:.0f} s and {count} batches, under {story.load}")


def test_ceph_agrees_that_they_are_safe_to_stop(
        story: Story, figure: Callable[[str], None]) -> None:
    answer = story.cluster.mgr("osd ok-to-stop", ids=[str(osd) for osd in DRAINED])
    assert answer.rc == 0, answer.err
    others = story.cluster.mgr("osd ok-to-stop", ids=["0", "4", "5"])
    figure(f"`ceph osd ok-to-stop` of {DRAINED}: {answer.rc}; of 0, 4 and 5: {others.rc}")
    assert others.rc != 0
    said = status(story.cluster)
    assert said["state"] == "off" and "safe to stop" in said["drains"]["sentence"], said


def test_all_limits_were_kept(story: Story, figure: Callable[[str], None]) -> None:
    samples = story.watcher.samples
    misplaced = fullest = 0.0
    troubled: List[str] = []   # states, by sample
    for sample in samples:
        if len(sample.moving) > 1:
            misplaced = max(misplaced, sample.misplaced_ratio)
        fullest = max([fullest, *sample.utilization.values()])
        troubled += set(sample.troubled.values())
    figure(f"in {len(samples)} samples: misplaced at most {misplaced:.4f} of {LIMIT}, fullest OSD"
           f" {fullest:.3f} of {FILL_LIMIT}; samples with PGs in trouble: {Counter(troubled)}")
    assert misplaced <= LIMIT + LIMIT_TOLERANCE
    assert 0.0 < fullest <= FILL_LIMIT + FILL_TOLERANCE
    assert illegal_placements(story.cluster) == []
    for batch in story.history.additions():
        assert batch.targets.isdisjoint(DRAINED), batch


def test_they_can_be_stopped_and_let_go(story: Story) -> None:
    """Without these OSDs every PG stays active and clean; then nothing comes back by itself."""
    cluster = story.cluster
    workload.wait_clean(cluster)
    for osd in DRAINED:
        cluster.processes.end(f"osd.{osd}", hard=True)
    left = len(cluster.osds) - len(DRAINED)
    wait_for("two OSDs down", lambda: cluster.mon_json("osd stat")["num_up_osds"] == left, 60)
    story.load.writes()   # the client has not stopped
    for pg in cluster.pg_stats():
        assert "active+clean" in pg["state"]
    for osd in DRAINED:
        cluster.start_osd(osd)
    cluster.wait_osds()
    history = MapHistory(cluster)
    run(cluster, "drain rm", osds=[HOST])
    assert drains(cluster)["osds"] == []
    assert history.batches() == []
