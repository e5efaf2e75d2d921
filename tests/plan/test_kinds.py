"""Which changes copy nothing: what a PG's remembered holders have is certain only for a while."""
from __future__ import annotations

from typing import Sequence, Tuple

import pytest
from tests.snapshot.pg_lives import MOVING, SENT, Lives
from tests.support.clusters.unit_cluster import NONE, Cluster, hosts

from equilibrium_mgr.plan.model import moves_nothing, takes_back
from equilibrium_mgr.snapshot.builder import SnapshotBuilder
from equilibrium_mgr.snapshot.model import Pg

HOME = (0, 1, 2)
CLEAN = "active+clean"


class Watched:
    """One PG that was seen clean on HOME; each look gives it as a snapshot has it."""

    def __init__(self, erasure: bool = False) -> None:
        self.builder = SnapshotBuilder()
        self.erasure = erasure
        self.cluster = Cluster(hosts(8)).pool(1, size=3, k=2 if erasure else 0)
        assert not self.look(HOME).is_moving

    def look(self, up: Sequence[int], acting: Sequence[int] = (), state: str = CLEAN,
             reported: int = 100) -> Pg:
        """A report of an earlier epoch unless told otherwise."""
        self.cluster.epoch += 1
        self.cluster.acting.clear()
        items = [(h, u) for h, u in zip(HOME, up) if h != u]
        self.cluster.up, self.cluster.items = {}, {}
        self.cluster.pg("1.0", up, objects=10, items=items, state=state, reported=reported,
                        acting=acting or None)
        return self.builder.build(self.cluster.reading()).pgs["1.0"]


BACKFILL = "active+remapped+backfilling"
WAIT = "active+remapped+backfill_wait"
both_kinds = pytest.mark.parametrize("erasure", [False, True])


@both_kinds
@pytest.mark.parametrize("state", [CLEAN, "peering", "activating", "unknown",
                                   "active+recovery_wait+degraded"])
def test_what_was_just_sent_is_still_where_it_was(state: str, erasure: bool) -> None:
    """No pg_temp tells it yet, or the new OSD waits for log recovery."""
    pg = Watched(erasure).look((3, 1, 2), state=state)
    assert pg.is_moving
    assert takes_back(pg, HOME, erasure) and moves_nothing(pg, HOME, erasure)


@both_kinds
def test_who_serves_has_the_data(erasure: bool) -> None:
    pg = Watched(erasure).look((3, 1, 2), HOME, BACKFILL, 102)
    assert takes_back(pg, HOME, erasure)


def assert_not_at_home(pg: Pg, erasure: bool) -> None:
    assert pg.is_moving
    assert not takes_back(pg, HOME, erasure) and not moves_nothing(pg, HOME, erasure)


@both_kinds
def test_a_holder_that_serves_no_more_may_have_nothing(erasure: bool) -> None:
    """It has arrived on 3, 1 and 2 and was sent on, while nobody looked."""
    pg = Watched(erasure).look((3, 4, 2), (3, 1, 2), WAIT, 103)
    assert_not_at_home(pg, erasure)
    assert moves_nothing(pg, (3, 1, 2), erasure)


@pytest.mark.parametrize("acting, erasure", [
    ((), False), ((), True), ((3, 2), False), ((3, NONE, 2), True)])
def test_what_is_sent_on_while_it_moves_may_have_arrived_in_between(
        acting: Tuple[int, ...], erasure: bool) -> None:
    watched = Watched(erasure)
    assert takes_back(watched.look((3, 1, 2), HOME, BACKFILL, 102), HOME, erasure)
    assert_not_at_home(watched.look((3, 4, 2), acting), erasure)


@both_kinds
@pytest.mark.parametrize("state", [BACKFILL, "active+recovering+degraded", "active+remapped"])
def test_what_has_just_arrived_is_not_where_it_was(state: str, erasure: bool) -> None:
    """Its OSDs have not reported it clean yet; the others have begun to delete their copies."""
    watched = Watched(erasure)
    watched.look((3, 1, 2), HOME, WAIT, 102)
    assert_not_at_home(watched.look((3, 1, 2), state=state, reported=103), erasure)


def test_after_the_pg_was_seen_clean_its_holders_are_certain_again() -> None:
    watched = Watched()
    watched.look((3, 1, 2), HOME, BACKFILL, 102)
    watched.look((3, 4, 2), (3, 1, 2), BACKFILL, 103)
    assert not watched.look((3, 4, 2), reported=104).is_moving
    assert takes_back(watched.look((3, 4, 5)), (3, 4, 2), False)


def test_holders_that_were_guessed_are_not_certain() -> None:
    """A new mgr has not seen the PG clean; its upmap item may be of long ago."""
    watched = Watched()
    watched.builder = SnapshotBuilder()
    pg = watched.look((3, 1, 2), (1, 2), "active+recovery_wait+undersized+remapped")
    assert set(pg.holders) == set(HOME)
    assert_not_at_home(pg, False)


@pytest.mark.parametrize("seed", range(6))
def test_what_takes_back_motion_is_where_the_data_is(seed: int) -> None:
    """In random lives of PGs, of which every other event is not looked at."""
    lives, builder, found = Lives(seed), SnapshotBuilder(), 0
    builder.build(lives.reading())
    for _ in range(30):
        for _ in range(lives.rng.randrange(1, 3)):
            lives.step()
        snapshot = builder.build(lives.reading())
        for life in lives.lives:
            pg = snapshot.pgs[life.pgid]
            for wanted in (pg.holders, pg.acting, tuple(life.raw)):
                if NONE in wanted or len(wanted) != len(pg.up):
                    continue
                if takes_back(pg, wanted, life.positional):
                    assert set(wanted) == set(life.home), (life.__dict__, pg)
                    found += life.phase in (SENT, MOVING)
    assert found > 50
