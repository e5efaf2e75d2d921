"""Plans that take changes back: what each PG gets, in which order, and what is not restored."""
from __future__ import annotations

from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Tuple

import pytest

from equilibrium_mgr.plan.model import BALANCE, CANCEL, UNDO
from equilibrium_mgr.undo.change_log import ChangeRow
from equilibrium_mgr.undo.undo_plan import (
    DRAINED,
    FOREIGN,
    REMAPPED,
    UndoResult,
    cancel_plan,
    undo_plan,
)
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

Items = Tuple[Tuple[int, int], ...]
RAW = (0, 1)


def row(pgid: str, before: Iterable[Sequence[int]], after: Iterable[Sequence[int]],
        plan: str = "p", raw: Tuple[int, ...] = RAW, kind: str = BALANCE,
        at: float = 900.0) -> ChangeRow:
    return ChangeRow(at, plan, kind, 900.0, 7, pgid, raw, pairs(before), pairs(after), 1)


def pairs(items: Iterable[Sequence[int]]) -> Items:
    return tuple((source, target) for source, target in items)


def arrived(*items: Sequence[int], pgid: str = "1.0",
            cluster: Optional[Cluster] = None) -> Cluster:
    """A PG that CRUSH maps to osd.0 and osd.1, with these items, at rest."""
    found = cluster or Cluster(hosts(8)).pool(1, size=2)
    up = [dict(pairs(items)).get(osd, osd) for osd in RAW]
    return found.pg(pgid, up, objects=10, items=pairs(items))


def under_way(pgid: str, target: int, cluster: Cluster, state: str = "active+remapped",
              uncopied: float = 1.0) -> Cluster:
    return cluster.pg(pgid, [target, 1], objects=10, items=[(0, target)], acting=RAW, state=state,
                      uncopied_ratio=uncopied)


def undone(cluster: Cluster, rows: List[ChangeRow], plan: str = "p") -> UndoResult:
    return undo_plan(cluster.snapshot(), rows, lambda one: one.plan == plan)


def log_of(rows: List[ChangeRow]) -> Callable[..., Iterator[ChangeRow]]:
    return lambda named: reversed(rows)


def goals(result: UndoResult) -> List[Tuple[str, Items]]:
    return [(change.pgid, change.items) for change in result.plan.changes]


def test_each_pg_gets_the_pairs_that_it_had() -> None:
    cluster = arrived((0, 2), (1, 3))
    result = undone(cluster, [row("1.0", [(1, 3)], [(0, 2), (1, 3)])])
    change, = result.plan.changes
    assert change.items == ((1, 3),) and change.up_after == (0, 3)
    assert (change.shards, result.plan.bytes, result.plan.kind) == (1, GIB, UNDO)
    move, = result.plan.moves
    assert (move.source, move.target) == (2, 0)
    assert result.not_restored == []


def test_what_the_monitor_never_kept_is_no_obstacle() -> None:
    rows = [row("1.0", [], [(0, 2)]), row("1.0", [], [(0, 2)]), row("1.0", [(0, 2)], [(0, 3)])]
    assert goals(undone(arrived((0, 2)), rows)) == [("1.0", ())]
    nothing = undone(arrived(), rows[:1])
    assert not nothing.plan.changes and not nothing.not_restored


def test_a_later_plan_that_was_taken_back_is_no_obstacle() -> None:
    rows = [row("1.0", [], [(0, 2)]), row("1.0", [(0, 2)], [(0, 3)], plan="q"),
            row("1.0", [(0, 3)], [(0, 2)], plan="undo-1", kind=UNDO)]
    assert goals(undone(arrived((0, 2)), rows)) == [("1.0", ())]
    between = row("1.0", [(0, 3)], [(0, 4)])
    back = row("1.0", [(0, 4)], [(0, 3)], plan="undo-1", kind=UNDO)
    assert undone(arrived((0, 3)), [*rows[:2], between, back]).not_restored == [
        ("1.0", "plan 'undo-1' has changed it since")]


def test_a_plan_that_has_not_changed_it_has_nothing_to_take_back() -> None:
    rows = [row("1.0", [], [(0, 2)]), row("1.0", [], [(0, 3)], plan="q")]
    result = undone(arrived((0, 3)), rows)
    assert not result.plan.changes and not result.not_restored
    assert goals(undone(arrived((0, 3)), rows, "q")) == [("1.0", ())]


@pytest.mark.parametrize("present, rows", [
    (((0, 5),), [row("1.0", [], [(0, 2)])]),
    (((0, 4),), [row("1.0", [], [(0, 2)]), row("1.0", [(0, 3)], [(0, 4)])]),
    ((), [row("1.0", [(0, 3)], [(0, 2)])])])
def test_somebody_elses_change_is_left_alone(present: Items, rows: List[ChangeRow]) -> None:
    result = undone(arrived(*present), rows)
    assert not result.plan.changes and result.not_restored == [("1.0", FOREIGN)]


def test_a_later_plans_change_is_named() -> None:
    rows = [row("1.0", [], [(0, 2)]), row("1.0", [(0, 2)], [(0, 3)], plan="q")]
    assert undone(arrived((0, 3)), rows).not_restored == [
        ("1.0", "plan 'q' has changed it since")]
    rows[1] = rows[1]._replace(plan="")
    assert undone(arrived((0, 3)), rows).not_restored == [
        ("1.0", "automatic balancing has changed it since")]
    everything = undo_plan(arrived((0, 3)).snapshot(), rows, lambda one: True)
    assert goals(everything) == [("1.0", ())]


def test_another_raw_mapping() -> None:
    assert undone(arrived((0, 2)), [row("1.0", [], [(0, 2)], raw=(0, 6))]).not_restored == [
        ("1.0", REMAPPED)]


def test_a_target_that_is_out_takes_no_pair() -> None:
    cluster = arrived((0, 2)).mark_out(3)
    assert undone(cluster, [row("1.0", [(0, 3)], [(0, 2)])]).not_restored == [
        ("1.0", "an OSD that it would return to is out")]


def test_a_primary_that_was_set_since_is_no_obstacle() -> None:
    """It makes the raw mapping look like another one."""
    rows = [row("1.0", [], [(0, 2)])]
    cluster = Cluster(hosts(8)).pool(1, size=2).pg("1.0", [1, 2], objects=10, items=[(0, 2)])
    assert goals(undone(cluster, rows)) == [("1.0", ())]
    moving = Cluster(hosts(8)).pool(1, size=2).pg(
        "1.0", [1, 2], objects=10, items=[(0, 2)], acting=[1, 0], state="active+remapped",
        uncopied_ratio=1.0)
    assert goals(cancel_plan(moving.snapshot(), log_of(rows), lambda one: True)) == [("1.0", ())]


def test_what_has_not_begun_to_move_comes_first() -> None:
    cluster = arrived((0, 2), pgid="1.0")
    arrived((0, 2), pgid="1.1", cluster=cluster)
    under_way("1.2", 3, cluster, "active+remapped+backfilling", 0.4)
    under_way("1.3", 3, cluster, "active+remapped+backfill_wait")
    rows = [row(f"1.{ps}", [], [(0, 2 + ps // 2)]) for ps in (3, 2, 0, 1)]
    result = undone(cluster, rows)
    assert [change.pgid for change in result.plan.changes] == ["1.3", "1.2", "1.1", "1.0"]
    assert (result.not_begun, result.under_way) == (1, 1)
    assert [change.shards for change in result.plan.changes] == [0, 0, 1, 1]
    assert len(result.plan.moves) == 2


def cancelled(cluster: Cluster, rows: List[ChangeRow]) -> UndoResult:
    return cancel_plan(cluster.snapshot(), log_of(rows), lambda one: one.plan == "p")


@pytest.mark.parametrize("state, uncopied", [
    ("active+remapped+backfilling", 1.0), ("active+remapped+backfill_wait", 0.9),
    ("active+recovering+remapped", 1.0)])
def test_cancel_leaves_what_is_being_copied(state: str, uncopied: float) -> None:
    cluster = under_way("1.0", 2, Cluster(hosts(8)).pool(1, size=2), state, uncopied)
    assert not cancelled(cluster, [row("1.0", [], [(0, 2)])]).plan.changes


def test_cancel_takes_back_what_waits() -> None:
    cluster = under_way("1.0", 2, Cluster(hosts(8)).pool(1, size=2))
    result = cancelled(cluster, [row("1.0", [], [(0, 2)])])
    change, = result.plan.changes
    assert (change.up_after, change.items, change.shards) == (RAW, (), 0)
    assert (result.plan.kind, result.plan.bytes, result.not_begun) == (CANCEL, 0, 1)


def test_cancel_leaves_to_crush_what_it_moves() -> None:
    cluster = Cluster(hosts(8)).pool(1, size=2).pg(   # osd.1 is out, and osd.4 takes its place
        "1.0", [2, 4], objects=10, items=[(0, 2)], acting=RAW, state="active+remapped",
        uncopied_ratio=1.0)
    rows = [row("1.0", [(1, 3)], [(0, 2), (1, 3)])]
    change, = cancelled(cluster, rows).plan.changes
    assert (change.items, change.up_after, change.shards) == ((), (0, 4), 0)


def test_cancel_leaves_what_an_operator_has_taken_away() -> None:
    cluster = Cluster(hosts(8)).pool(1, size=2).pg(
        "1.0", RAW, objects=10, acting=(3, 1), state="active+remapped", uncopied_ratio=1.0)
    assert not cancelled(cluster, [row("1.0", [(0, 3)], [(0, 2)])]).plan.changes
    assert not cancelled(cluster, [row("1.0", [(0, 3)], [(0, 2), (1, 5)])]).plan.changes


def test_cancel_takes_back_the_last_move_alone() -> None:
    """The first has arrived: the data is on osd.2."""
    cluster = Cluster(hosts(8)).pool(1, size=2).pg(
        "1.0", [3, 1], objects=10, items=[(0, 3)], acting=[2, 1], state="active+remapped")
    rows = [row("1.0", [], [(0, 2)]), row("1.0", [(0, 2)], [(0, 3)])]
    assert goals(cancelled(cluster, rows)) == [("1.0", ((0, 2),))]
    assert goals(undone(cluster, rows)) == [("1.0", ())]


def test_cancel_leaves_what_others_move() -> None:
    cluster = under_way("1.0", 2, Cluster(hosts(8)).pool(1, size=2))
    assert not cancelled(cluster, []).plan.changes
    assert not cancelled(cluster, [row("1.0", [], [(0, 2)], plan="q")]).plan.changes
    assert not cancelled(cluster, [row("1.0", [], [(0, 5)])]).plan.changes


def test_nothing_returns_to_an_osd_that_is_being_drained() -> None:
    """It would be sent away again, whether it has arrived or waits."""
    cluster = under_way("1.0", 2, Cluster(hosts(8)).pool(1, size=2))
    arrived((0, 3), pgid="1.1", cluster=cluster)
    snapshot = cluster.snapshot()
    snapshot = snapshot._replace(osds={
        **snapshot.osds, 0: snapshot.osds[0]._replace(drained=True)})
    rows = [row("1.0", [], [(0, 2)]), row("1.1", [], [(0, 3)])]
    for result, count in ((undo_plan(snapshot, rows, lambda one: True), 2),
                          (cancel_plan(snapshot, log_of(rows), lambda one: True), 1)):
        assert not result.plan.changes
        assert [(why, why.osd) for _, why in result.not_restored] == [(DRAINED, 0)] * count


def test_a_pg_that_must_not_be_moved() -> None:
    cluster = arrived((0, 2))
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [2, 1]}]
    assert undone(cluster, [row("1.0", [], [(0, 2)])]).not_restored == [
        ("1.0", "placed by a full pg-upmap")]
