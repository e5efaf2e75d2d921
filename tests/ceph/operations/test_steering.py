"""OSDs are lost, leave and come: shards that Ceph copies anyway go where there is room.

Each course is played without the options and with them, while a client writes. Balancing sends
nothing, so that the figures show what the options do. Copying is slow until the module has chosen,
as it is on large disks.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set

import pytest

from ..cluster import DaemonCluster
from ..conftest import FIGURES, SLEEP_INTERVAL, new_cluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.client_load import ClientLoad
from ..harness.commands import AT_REST, quick_takeover, run, status, wait_state
from ..harness.story import illegal_placements

pytestmark = [pytest.mark.releases(16, 18, 20), pytest.mark.long]

Figure = Callable[[str], None]
Items = Dict[str, List[List[int]]]

HOSTS = {f"h{number}": (2.0, 2.0) for number in range(7)}
LEAVING, SECOND = (10, 11), 2
#: Of h6, which is not in the CRUSH map at first.
ADDED = (12, 13)
POOLS = (("rep", "replicated", 64, 800), ("ec", "erasure", 32, 500))   # PGs, objects
OBJECT_BYTES = 2 << 20
WRITES_PER_SECOND = 4
#: With more than one object at a time, OSDs add up waits that they have begun, and stay slow.
OPTIONS = {**workload.SHORT_LOGS, "osd_max_backfills": "2", "osd_recovery_max_active": "1"}
#: Seconds between two objects until the module has chosen, and afterwards.
SLOW, FAST = 8.0, 0.1
CHOICE_SECONDS, LONGEST_SECONDS, DELETING_SECONDS = 180, 900.0, 20.0
#: A return is watched for so long at least if the module gets the time for a choice.
STEERED_BY = 55.0
#: Of a shard: the peak may be so much above CRUSH's.
SHARD = 0.02
#: The client's objects, which come in addition.
WRITTEN = 200


class Course(NamedTuple):
    """The figures until all PGs were clean again."""

    seconds: float         # from when copying was no longer slow
    peak: float            # highest utilization of an OSD
    copied: int            # objects, by Ceph's count
    unfound: int

    def __str__(self) -> str:
        return f"{self.seconds:.0f} s, peak {self.peak:.4f}, {self.copied} copied"


class Watch:
    """Looks at the cluster from now on."""

    def __init__(self, cluster: DaemonCluster) -> None:
        self.cluster = cluster
        self.began = time.monotonic()
        self.peak, self.unfound, self.copied = 0.0, 0, 0
        self._first: Dict[str, int] = {}
        self.is_clean()

    def is_clean(self) -> bool:
        """Looks once; whether all PGs are clean."""
        pgs = self.cluster.pg_stats()
        self.copied = 0
        for pg in pgs:
            copied = pg["stat_sum"]["num_objects_recovered"]
            # the count of an OSD that becomes primary may be an older one
            self.copied += max(0, copied - self._first.setdefault(pg["pgid"], copied))
        unfound = sum(pg["stat_sum"]["num_objects_unfound"] for pg in pgs)
        self.unfound = max(self.unfound, unfound)
        self.peak = max(self.peak, workload.usage_of(self.cluster).highest)
        return all(workload.is_clean(pg["state"]) for pg in pgs)

    def has_copied(self, objects: int) -> bool:
        """Looks once; whether so many objects have been copied, or nothing is left to copy."""
        is_clean = self.is_clean() and time.monotonic() - self.began > 10.0
        return is_clean or self.copied >= objects

    def until_clean(self, at_least: float = 8.0) -> Course:
        """Looks until all PGs are clean, for some seconds at least: statistics come late."""
        began = time.monotonic()
        wait_for("all PGs clean", lambda: self.is_clean() and time.monotonic() - began > at_least,
                 LONGEST_SECONDS, pause=1.5)
        seconds = time.monotonic() - began
        workload.wait_clean(self.cluster, 300)
        self.is_clean()
        return Course(seconds, self.peak, self.copied, self.unfound)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest) -> Iterator[DaemonCluster]:
    """Balanced without h5, so that nothing which leaves is named by upmap items."""
    with new_cluster(request, HOSTS, OPTIONS) as made:
        made.start_mgr("y")
        made.mgr("balancer off")
        for osd in ADDED:
            made.mon("osd crush rm", name=f"osd.{osd}")
        made.mon("osd erasure-code-profile set", name=workload.EC_PROFILE,
                 profile=["k=2", "m=2", "crush-failure-domain=host"])
        for name, kind, pgs, objects in POOLS:
            workload.make_pool(made, name, kind, pgs)
            workload.wait_clean(made)
            workload.bench(made, name, 240, OBJECT_BYTES, 8, objects, "--no-cleanup")
        made.enable("equilibrium")
        made.hurry()
        for option, value in (("sleep_interval", SLEEP_INTERVAL), ("max_misplaced_ratio", 0.3),
                              ("not_buckets", "h5"), ("max_moves_per_round", 12)):
            made.set_option(option, value)
        balance(made)
        made.remove_option("not_buckets")
        load = ClientLoad(made, [pool[0] for pool in POOLS], WRITES_PER_SECOND)
        wait_for("all objects of the client", lambda: load.writes() >= WRITTEN, 180)
        with quick_takeover(made):
            yield made
        figures = request.config.stash[FIGURES]
        figures.append(f"Ceph {made.release.version}: {load}; {load.read_back()} objects equal")
        failures = made.module_failures()
    assert not failures


def balance(cluster: DaemonCluster) -> None:
    """Balances. Afterwards the module sends nothing unless it steers shards."""
    run(cluster, "on")
    wait_state(cluster, AT_REST, 600, pause=1.0)
    workload.wait_clean(cluster, 600)
    cluster.set_option("min_gain", 1.0)


def switch(cluster: DaemonCluster, steers: bool) -> None:
    """Sets both options."""
    for option in ("steer_recovery", "hold_placement"):
        cluster.set_option(option, str(steers).lower())


def begin(cluster: DaemonCluster, steers: bool) -> Watch:
    """Waits until all PGs are clean and no OSD deletes any, and sets the options."""
    workload.wait_clean(cluster)
    began = time.monotonic()   # an OSD that was killed may keep a PG for good
    wait_for("no PGs to delete", lambda: workload.spare_pgs(cluster) <= 0
             or time.monotonic() - began > DELETING_SECONDS, 2 * DELETING_SECONDS)
    switch(cluster, steers)
    workload.pace_recovery(cluster, SLOW if steers else FAST)
    return Watch(cluster)


def wait_choice(cluster: DaemonCluster, since: float = 0.0) -> Dict[str, Any]:
    """Waits until the module has chosen, after that time, and sent it; the choice."""
    found: Dict[str, Any] = {}

    def is_sent() -> bool:
        now = status(cluster)
        if now["steered"] and now["steered"]["at"] > since:
            found.update(now["steered"])
        return bool(found) and now["execution"] is None
    wait_for("a choice", is_sent, CHOICE_SECONDS)
    return found


def wait_first_batch(cluster: DaemonCluster) -> None:
    """Waits until an upmap item has come."""
    before = len(workload.upmap_items(cluster))

    def has_come() -> bool:
        nonlocal before
        now = len(workload.upmap_items(cluster))
        before = min(before, now)   # the monitors drop items that name lost OSDs
        return now > before
    wait_for("an upmap item", has_come, CHOICE_SECONDS, pause=0.05)


def fell_out(cluster: DaemonCluster, *osds: int) -> None:
    """These OSDs die, and are marked out."""
    for osd in osds:
        cluster.processes.end(f"osd.{osd}", hard=True)
    ids = [str(osd) for osd in osds]
    cluster.mon("osd down", ids=ids)
    cluster.mon("osd out", ids=ids)


def come_back(cluster: DaemonCluster, *osds: int) -> None:
    """They start, and are in from then on, as if they had been marked out by the monitor."""
    cluster.mon("osd in", ids=[str(osd) for osd in osds])
    for osd in osds:
        cluster.start_osd(osd)
    cluster.wait_osds()


def kept(cluster: DaemonCluster, chosen: Dict[str, Any], items: Items) -> str:
    """Of the upmap items of the choice."""
    now = workload.upmap_items(cluster)
    same = sum(items[pgid] == now.get(pgid) for pgid in items)
    return (f"{chosen.get('elsewhere_shards')} steered, {chosen.get('held_shards')} held; {same} of"
            f" {len(items)} upmap items kept")


class Placement(NamedTuple):
    """Where PGs are, and by which upmap items."""

    up: Dict[str, List[int]]
    items: Items

    def moved(self, before: Placement) -> Set[str]:
        """PGs whose up set is another than before."""
        return {pgid for pgid, up in self.up.items() if up != before.up[pgid]}

    def added(self, before: Placement) -> Set[str]:
        """PGs that have pairs of upmap items which they had not before."""
        found = set()
        for pgid, pairs in self.items.items():
            if any(pair not in before.items.get(pgid, []) for pair in pairs):
                found.add(pgid)
        return found


def may_stay(pgid: str, before: Items, steered: Items) -> bool:
    """Whether monitors may keep a pair of a PG's items when CRUSH is as before.

    They drop pairs by their source. Of a chain, such as 8 to 2 and 5 to 8, the first stays if CRUSH
    wants 8 again; and an item that has replaced another one stays as that one would have.
    """
    pairs = steered.get(pgid, [])
    sources = {source for source, _ in pairs}
    return pgid in before or any(target in sources for _, target in pairs)


def placement(cluster: DaemonCluster) -> Placement:
    """Of all PGs now."""
    return Placement(workload.up_sets(cluster), workload.upmap_items(cluster))


class Return(NamedTuple):
    """When the host of a story comes back, and what else happens."""

    after: float = 9.0             # of the objects to rebuild; above 1: when all PGs are clean
    slow: bool = False             # the module has time for a choice
    second: bool = False           # another OSD is lost in the middle
    kills: bool = False            # the active mgr, after the first batch


RETURNS = {
    "after-1": Return(slow=True), "after-2": Return(kills=True), "after-3": Return(),
    "middle-1": Return(0.5, slow=True), "middle-2": Return(0.5), "middle-3": Return(0.25),
    "second": Return(second=True)}


class Played(NamedTuple):
    """A course and what followed when it was taken back."""

    course: Course
    back: Course
    before: Placement
    after: Placement       # when it had been taken back
    items: Items           # once the module had chosen
    told: str = ""


def play_loss(cluster: DaemonCluster, story: Return, steers: bool) -> Played:
    """A host is lost and comes back."""
    watch, before, told = begin(cluster, steers), placement(cluster), ""
    stats = {pg["pgid"]: pg["stat_sum"]["num_objects"] for pg in cluster.pg_stats()}
    lost = sum(stats[pgid] for pgid, up in before.up.items() for osd in up if osd in LEAVING)
    chosen: Dict[str, Any] = {}
    fell_out(cluster, *LEAVING)
    if steers and story.kills:
        wait_first_batch(cluster)
        told = f"mgr.{cluster.kill_mgr()} took over; "
        cluster.wait_module()
        time.sleep(10.0)
    elif steers:
        chosen = wait_choice(cluster)
    items = workload.upmap_items(cluster)
    workload.pace_recovery(cluster, FAST)
    osds = [*LEAVING]
    if story.second:
        wait_for("a third of it", lambda: watch.has_copied(lost // 3), LONGEST_SECONDS)
        workload.pace_recovery(cluster, SLOW)
        since = time.time()
        fell_out(cluster, SECOND)
        osds.append(SECOND)
        if steers:
            chosen = wait_choice(cluster, since)
            items = workload.upmap_items(cluster)
        workload.pace_recovery(cluster, FAST)
    if story.after > 1.0:
        course = watch.until_clean()
    else:
        wait_for("a part of it", lambda: watch.has_copied(int(story.after * lost)), LONGEST_SECONDS)
        course = Course(time.monotonic() - watch.began, watch.peak, watch.copied, watch.unfound)
    told += f"{lost} lost, " + kept(cluster, chosen, items)
    assert illegal_placements(cluster) == []
    if story.slow:
        workload.pace_recovery(cluster, SLOW)
    watch = Watch(cluster)
    come_back(cluster, *osds)
    if story.slow and steers:
        time.sleep(STEERED_BY)
    workload.pace_recovery(cluster, FAST)
    back = watch.until_clean()
    return Played(course, back, before, placement(cluster), items, told)


@pytest.mark.parametrize("name", RETURNS)
def test_a_host_is_lost_and_comes_back(cluster: DaemonCluster, name: str, figure: Figure) -> None:
    played = {steers: play_loss(cluster, RETURNS[name], steers) for steers in (False, True)}
    compare(played[False], played[True], name, figure)


def compare(crush: Played, steered: Played, name: str, figure: Figure) -> None:
    """With the options nothing may be worse."""
    for text, one in (("CRUSH", crush), ("steered", steered)):
        moved = one.after.moved(one.before)
        figure(f"{name}, {text}: {one.course}; taken back: {one.back}; {len(moved)} PGs then"
               f" elsewhere than before; {one.told}")
        assert one.course.unfound == one.back.unfound == 0
        left = one.after.added(one.before)
        assert [pgid for pgid in left if not may_stay(pgid, one.before.items, one.items)] == []
        # balanced PGs return to where CRUSH alone wants them if the monitors drop their items
        assert moved <= one.before.added(one.after) | left
    assert steered.course.peak <= crush.course.peak + SHARD
    assert steered.course.copied <= 1.15 * crush.course.copied + WRITTEN
    assert steered.back.copied <= crush.back.copied + WRITTEN


class Change(NamedTuple):
    """A change of the CRUSH map or of weights, and how it is taken back."""

    do: Callable[[DaemonCluster], None]
    undo: Callable[[DaemonCluster], None]


def weigh(weight: float) -> Callable[[DaemonCluster], None]:
    """Gives the leaving OSDs a CRUSH weight, one after the other."""
    def change(cluster: DaemonCluster) -> None:
        for osd in LEAVING:
            cluster.mon("osd crush reweight", name=f"osd.{osd}", weight=weight)
    return change


def mark(how: str) -> Callable[[DaemonCluster], None]:
    """Marks the leaving OSDs out or in, alive."""
    def change(cluster: DaemonCluster) -> None:
        cluster.mon(f"osd {how}", ids=[str(osd) for osd in LEAVING])
    return change


def add_host(cluster: DaemonCluster) -> None:
    """Into the CRUSH map."""
    for osd in ADDED:
        cluster.place(osd, 2.0, "h6")


def remove_host(cluster: DaemonCluster) -> None:
    """Out of it."""
    for osd in ADDED:
        cluster.mon("osd crush rm", name=f"osd.{osd}")


CHANGES = {
    "weight": Change(weigh(0.0), weigh(2.0)), "out": Change(mark("out"), mark("in")),
    "added": Change(add_host, remove_host)}


def play_change(cluster: DaemonCluster, change: Change, steers: bool) -> Played:
    """A change until all PGs are clean, and back."""
    watch, before = begin(cluster, steers), placement(cluster)
    change.do(cluster)
    chosen = wait_choice(cluster) if steers else {}
    items = workload.upmap_items(cluster)
    workload.pace_recovery(cluster, FAST)
    course = watch.until_clean()
    assert illegal_placements(cluster) == []
    told = kept(cluster, chosen, items)
    switch(cluster, False)   # else shards may be held where they have come to
    watch = Watch(cluster)
    change.undo(cluster)
    back = watch.until_clean()
    return Played(course, back, before, placement(cluster), items, told)


@pytest.mark.parametrize("name", CHANGES)
def test_crush_is_changed_and_changed_back(cluster: DaemonCluster, name: str,
                                           figure: Figure) -> None:
    played = {steers: play_change(cluster, CHANGES[name], steers) for steers in (False, True)}
    compare(played[False], played[True], name, figure)
