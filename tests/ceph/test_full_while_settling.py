"""An OSD becomes full within minutes of an operator's changes of others: relief comes all the same.

How long a series of changes may be left to settle is far above what a full OSD may wait.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Tuple

import pytest

from .cluster import DaemonCluster
from .daemons import wait_for
from .harness import workload
from .harness.commands import AT_REST, equilibrium, run, status, wait_state

pytestmark = pytest.mark.releases(16, 20)

RELIEF_SECONDS = 90.0
"""An OSD that has been full for so long has a shard on its way off it."""
LONGEST_SECONDS = 660.0
DEFAULTS = {"nearfull": 0.85, "backfillfull": 0.9, "full": 0.95}
BELOW_FULLEST = {"nearfull": 0.03, "backfillfull": 0.02, "full": 0.01}
PAUSE_SECONDS = 20.0
"""Between two changes: another comes before the last would count as settled."""

Pairs = FrozenSet[Tuple[str, int, int]]


def pairs(cluster: DaemonCluster) -> Pairs:
    """(pgid, from, to) of the present upmap items."""
    found = set()
    for pgid, items in workload.upmap_items(cluster).items():
        for source, target in items:
            found.add((pgid, source, target))
    return frozenset(found)


def leaving(before: Pairs, now: Pairs, osd: int) -> int:
    """What takes shards off an OSD: new pairs away from it, and pairs to it that are gone."""
    sources = [source for _, source, _ in now - before]
    targets = [target for _, _, target in before - now]
    return sources.count(osd) + targets.count(osd)


def changes_of(cluster: DaemonCluster, first: int, second: int) -> Iterator[Any]:
    """An operator's changes of two OSDs, one a step, without an end."""
    name, size = f"osd.{second}", cluster.osds[second]
    while True:
        yield cluster.mon("osd out", ids=[str(first)])
        yield cluster.mon("osd crush reweight", name=name, weight=0.9 * size)
        yield cluster.mon("osd in", ids=[str(first)])
        yield cluster.mon("osd crush reweight", name=name, weight=size)


@pytest.fixture
def others(cluster: DaemonCluster, unbalanced: workload.Usage) -> Iterator[List[int]]:
    """The emptiest OSDs, which most upmaps lead to: while one is out, others have what they had
    before. Balancing is on and has nothing to do."""
    run(cluster, "on")
    wait_state(cluster, AT_REST, 300)
    yield sorted(unbalanced.utilization, key=unbalanced.utilization.__getitem__)[:2]
    equilibrium(cluster, "off")
    workload.set_ratios(cluster, DEFAULTS)
    cluster.mon("osd in", ids=["any"])
    for osd, size in enumerate(cluster.osds):
        cluster.mon("osd crush reweight", name=f"osd.{osd}", weight=size)
    workload.clear_upmaps(cluster)


@pytest.mark.parametrize("minutes", [0.6, pytest.param(6.0, marks=pytest.mark.long)])
def test_a_full_osd_does_not_wait_for_a_series_of_changes(
        minutes: float, cluster: DaemonCluster, others: List[int],
        figure: Callable[[str], None]) -> None:
    changes, began = changes_of(cluster, *others), time.monotonic()
    while time.monotonic() - began < 60.0 * minutes:
        next(changes)
        time.sleep(PAUSE_SECONDS)
    usage, before = workload.usage_of(cluster).utilization, pairs(cluster)
    fullest = max(usage, key=usage.__getitem__)
    ratios = {name: usage[fullest] - below for name, below in BELOW_FULLEST.items()}
    workload.set_ratios(cluster, ratios)
    full_at = changed_at = full_since = time.monotonic()
    said: Dict[str, float] = {}
    waited = 0.0   # the longest time for which it has been full at a stretch

    def relieved() -> int:
        nonlocal changed_at, full_since, waited
        if workload.usage_of(cluster).utilization[fullest] < ratios["backfillfull"]:
            full_since = time.monotonic()   # what comes back by a change of others has left it
        waited = max(waited, time.monotonic() - full_since)
        if time.monotonic() - changed_at > PAUSE_SECONDS:
            next(changes)
            changed_at = time.monotonic()
        now = status(cluster)
        said.setdefault(f"{now['state']}: {now['reason']}", round(time.monotonic() - full_at))
        return leaving(before, pairs(cluster), fullest)
    count = wait_for(f"a shard leaves osd.{fullest}", relieved, LONGEST_SECONDS)
    took = time.monotonic() - full_at
    when = f"{minutes} minutes into changes of {others}"
    figure(f"osd.{fullest} of {usage} full {when}: {count} upmaps off it {took:.0f} s later, full"
           f" for {waited:.0f} s at a stretch; {said}")
    assert waited <= RELIEF_SECONDS, said
