"""Plans of kind `steer`: which shards they touch, and where these go."""
from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, Tuple

import pytest

from equilibrium_mgr.crush.placement import NO_OSD
from equilibrium_mgr.plan.model import STEER, PgChange, Plan, redirects
from equilibrium_mgr.plan.options import PlanOptions, Steering
from equilibrium_mgr.planner.steering import steered_shards, steering_plan
from equilibrium_mgr.snapshot.model import Pg, Snapshot, SnapshotPgs, shard_changes
from equilibrium_mgr.snapshot.upmap_items import apply_items
from mgr_stub.console.session import Session

LOST = (12, 13, 14, 15)


@pytest.fixture(scope="module")
def after_failure() -> Iterator[Snapshot]:
    """The demo cluster, balanced, as a host has just been marked out."""
    session = Session.from_state(None, release=18)
    lines = ["equilibrium on", "sim run 12h", "equilibrium off", "sim backfill rate 1M",
             *[f"sim osd down {osd}" for osd in LOST], *[f"sim osd out {osd}" for osd in LOST],
             "sim run 60s"]
    for line in lines:
        assert session.command(line)[0] == 0, line
    yield session.module.gateway.snapshot()
    session.close()


def planned(snapshot: Snapshot, **steering: object) -> Plan:
    options = Steering(at_rest=frozenset(snapshot.in_flight()))._replace(**steering)
    return steering_plan(snapshot, PlanOptions(steering=options))


def is_left_alone(snapshot: Snapshot, why: str, **steering: object) -> bool:
    """No PG gets other targets, most of them for this reason."""
    plan = planned(snapshot, **steering)
    reasons = Counter(plan.left_alone.values())
    return not plan.changes and reasons.most_common(1)[0][0] == why


def copies(snapshot: Snapshot, pg: Pg, up: Tuple[int, ...]) -> int:
    """Shards that have to be copied until the PG is on these OSDs."""
    return len(shard_changes(pg.holders, up, snapshot.is_positional(pg))[0])


def with_pgs(snapshot: Snapshot, changed: Dict[str, Pg]) -> Snapshot:
    pgs = SnapshotPgs({**snapshot.pgs, **changed})
    pgs.moving = {**snapshot.in_flight(), **changed}
    return snapshot._replace(pgs=pgs)


def lacks(snapshot: Snapshot, change: PgChange) -> bool:
    holders = snapshot.pgs[change.pgid].holders
    return NO_OSD in holders or len(holders) < len(change.up_after)


def test_nothing_more_is_copied_and_the_fullest_osd_is_emptier(after_failure: Snapshot) -> None:
    plan = planned(after_failure)
    assert plan.kind == STEER
    assert plan.changes
    for change in plan.changes:
        pg = after_failure.pgs[change.pgid]
        rule = after_failure.pools[pg.pool].rule
        assert rule is not None and rule.refusal(change.up_after) is None
        assert apply_items(pg.raw, change.items, lambda _: False) == change.up_after
        assert copies(after_failure, pg, change.up_after) <= copies(after_failure, pg, pg.up)
        assert redirects(pg, change.up_after, after_failure.is_positional(pg))
        assert change.shards == 0
    for name, before in plan.before.classes.items():
        assert plan.after.classes[name].max <= before.max
    assert plan.after.classes["hdd"].max < plan.before.classes["hdd"].max - 0.05


def test_what_has_begun_keeps_its_target_but_may_be_held(after_failure: Snapshot) -> None:
    begun = {pgid: pg._replace(uncopied_ratio=0.8, uncopied={})
             for pgid, pg in after_failure.in_flight().items()}
    snapshot = with_pgs(after_failure, begun)
    held = planned(snapshot).changes
    assert held
    for change in held:
        pg = snapshot.pgs[change.pgid]
        assert set(change.up_after) <= {*pg.holders, *pg.up}
    assert "its shards have begun to arrive" in planned(snapshot).left_alone.values()
    nearly = {pgid: pg._replace(uncopied_ratio=0.4) for pgid, pg in begun.items()}
    assert is_left_alone(with_pgs(after_failure, nearly), "most of it has arrived")


def test_doubtful_holders_are_held_if_they_serve_the_pg(after_failure: Snapshot) -> None:
    """Most are doubtful: their PG lacked a copy while the OSDs were down and not out yet."""
    doubtful = {pgid: pg._replace(doubtful_holders=True)
                for pgid, pg in after_failure.in_flight().items()}
    certain = planned(after_failure)
    assert steered_shards(certain, after_failure)[1] > 0
    assert planned(with_pgs(after_failure, doubtful)).changes == certain.changes
    idle = {pgid: pg._replace(acting=pg.up) for pgid, pg in doubtful.items()}
    plan = planned(with_pgs(after_failure, idle))
    assert plan.changes and steered_shards(plan, after_failure)[1] == 0


def test_each_option_is_for_its_own_shards(after_failure: Snapshot) -> None:
    lacking = planned(after_failure, moved=False).changes
    assert lacking and all(lacks(after_failure, change) for change in lacking)
    others = planned(after_failure, rebuilt=False)
    assert not any(lacks(after_failure, change) for change in others.changes)
    assert "steer_recovery is off" in others.left_alone.values()
    assert "hold_placement is off" in planned(after_failure, moved=False).left_alone.values()


def test_what_moved_before_goes_on(after_failure: Snapshot) -> None:
    """Unless all that comes is rebuilt: nobody has wanted it elsewhere."""
    for change in planned(after_failure, at_rest=frozenset()).changes:
        pg = after_failure.pgs[change.pgid]
        assert lacks(after_failure, change)
        assert set(pg.holders) <= {*pg.up, NO_OSD}


def test_osds_that_have_come_back_get_what_comes_to_them(after_failure: Snapshot) -> None:
    assert is_left_alone(after_failure, "an OSD has come back that may have its data",
                         returned=frozenset(after_failure.in_flight()))


@pytest.mark.parametrize("state, why", [
    ("active+recovering+undersized+degraded", "recovering"),
    ("undersized+degraded+peered", "not active"),
    ("active+undersized+degraded+remapped+inconsistent+backfill_wait", "inconsistent"),
    ("stale+active+degraded", "stale")])
def test_pgs_in_these_states_are_left_to_ceph(state: str, why: str,
                                              after_failure: Snapshot) -> None:
    changed = {pgid: pg._replace(state=state) for pgid, pg in after_failure.in_flight().items()}
    assert is_left_alone(with_pgs(after_failure, changed), f"it is {why}")


def test_a_second_plan_is_empty(after_failure: Snapshot) -> None:
    changed: Dict[str, Pg] = {}
    for change in planned(after_failure).changes:
        pg = after_failure.pgs[change.pgid]
        changed[change.pgid] = pg._replace(up=change.up_after)
    moved = {pgid: pg for pgid, pg in changed.items() if pg.is_moving}
    rest = {pgid: pg for pgid, pg in changed.items() if not pg.is_moving}
    pgs = SnapshotPgs({**after_failure.pgs, **changed})
    pgs.moving = {pgid: pg for pgid, pg in {**after_failure.in_flight(), **moved}.items()
                  if pgid not in rest}
    osds = dict(after_failure.osds)
    for move in planned(after_failure).moves:
        for osd, sign in ((move.source, -1), (move.target, 1)):
            known = osds[osd]
            osds[osd] = known._replace(inbound_bytes=known.inbound_bytes + sign * move.bytes)
    assert len(planned(after_failure._replace(pgs=pgs, osds=osds)).changes) <= 2


def test_shards_are_not_held_where_that_fills_an_osd_above_all_others(
        after_failure: Snapshot) -> None:
    """Else what is rebuilt comes on top: seen with a rule of two racks."""
    held = held_bytes(after_failure, planned(after_failure))
    number, count = held.most_common(1)[0]
    osd = after_failure.osds[number]
    highest = max([one.target_utilization or 0.0 for one in after_failure.osds.values()])
    room = int(highest * osd.size_bytes) - osd.target_bytes
    assert count > 0.02 * osd.size_bytes and room > 0
    fuller = osd._replace(inbound_bytes=osd.inbound_bytes + room)
    snapshot = after_failure._replace(osds={**after_failure.osds, number: fuller})
    plan = planned(snapshot)
    assert held_bytes(snapshot, plan)[number] < count
    assert max([usage.max for usage in plan.after.classes.values()]) <= highest + 0.011
    assert "its OSDs would be fuller than by CRUSH alone" in plan.left_alone.values()


def held_bytes(snapshot: Snapshot, plan: Plan) -> Counter[int]:
    """OSD → bytes of the shards that stay on it."""
    found: Counter[int] = Counter()
    for move in plan.moves:
        if move.target in snapshot.pgs[move.pgid].holders:
            found[move.target] += move.bytes
    return found
