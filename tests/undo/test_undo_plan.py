"""Plans that take changes back: what each PG gets, in which order, and what is not restored."""
from __future__ import annotations

from typing import Any, Iterator, Sequence, Tuple

import pytest

from equilibrium_mgr.plan.model import BALANCE, UNDO
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
from tests.support.placed import pairs
from tests.support.units import GIB

RAW = (0, 1)
WAITS = "active+remapped+backfill_wait"


def row(before: str, after: str, plan: str = "p", pgid: str = "1.0", raw: Tuple[int, ...] = RAW,
        kind: str = BALANCE) -> ChangeRow:
    """The pairs of a PG were others before."""
    return ChangeRow(900.0, plan, kind, 900.0, 7, pgid, raw, pairs(before), pairs(after), 1)


def empty() -> Cluster:
    return Cluster(hosts(8)).pool(1, size=2)


def arrived(items: str, pgid: str = "1.0", cluster: Any = None) -> Cluster:
    """A PG that CRUSH maps to osd.0 and osd.1, with these items, at rest."""
    targets = dict(pairs(items))
    up = [targets.get(osd, osd) for osd in RAW]
    return (cluster or empty()).pg(pgid, up, objects=10, items=pairs(items))


def under_way(items: str, up: Sequence[int], acting: Sequence[int] = RAW, state: str = WAITS,
              uncopied: float = 1.0, pgid: str = "1.0", cluster: Any = None) -> Cluster:
    return (cluster or empty()).pg(pgid, up, objects=10, items=pairs(items), acting=acting,
                                   state=state, uncopied_ratio=uncopied)


def undone(cluster: Cluster, *rows: ChangeRow, plan: str = "p") -> UndoResult:
    """Undoes the rows of a plan, or every row without a name."""
    return undo_plan(cluster.snapshot(), rows, lambda one: plan in ("", one.plan))


def cancelled(cluster: Cluster, *rows: ChangeRow) -> UndoResult:
    def log(named: Any) -> Iterator[ChangeRow]:
        return reversed(rows)
    return cancel_plan(cluster.snapshot(), log, lambda one: one.plan == "p")


def gets(result: UndoResult, items: str) -> bool:
    """Returns True if the plan gives its only PG these pairs."""
    change, = result.plan.changes
    return change.items == pairs(items)


def why_not(result: UndoResult) -> str:
    """Returns why the only PG is not restored."""
    assert not result.plan.changes
    (_, why), = result.not_restored
    return str(why)


def test_each_pg_gets_the_pairs_that_it_had() -> None:
    result = undone(arrived("0>2 1>3"), row("1>3", "0>2 1>3"))
    assert gets(result, "1>3")
    assert result.plan.changes[0].up_after == (0, 3)
    assert (result.plan.bytes, result.plan.kind) == (GIB, UNDO)
    move, = result.plan.moves
    assert (move.source, move.target) == (2, 0)
    assert not result.not_restored


def test_what_the_monitor_never_kept_is_no_obstacle() -> None:
    never = row("", "0>2")
    assert gets(undone(arrived("0>2"), never, never, row("0>2", "0>3")), "")
    nothing = undone(arrived(""), never)
    assert not nothing.plan.changes and not nothing.not_restored


def test_a_later_plan_that_was_taken_back_is_no_obstacle() -> None:
    rows = row("", "0>2"), row("0>2", "0>3", "q")
    back = row("0>3", "0>2", "undo-1", kind=UNDO)
    assert gets(undone(arrived("0>2"), *rows, back), "")
    between = row("0>3", "0>4"), row("0>4", "0>3", "undo-1", kind=UNDO)
    assert why_not(undone(arrived("0>3"), *rows, *between)) == "plan 'undo-1' has changed it since"


@pytest.mark.parametrize("present, rows", [
    ("0>5", [row("", "0>2")]),
    ("0>4", [row("", "0>2"), row("0>3", "0>4")]),
    ("", [row("0>3", "0>2")])])
def test_somebody_elses_change_is_left_alone(present: str, rows: Sequence[ChangeRow]) -> None:
    assert why_not(undone(arrived(present), *rows)) == FOREIGN


@pytest.mark.parametrize("plan, named", [("q", "plan 'q'"), ("", "automatic balancing")])
def test_a_later_plans_change_is_named(plan: str, named: str) -> None:
    rows = row("", "0>2"), row("0>2", "0>3", plan)
    assert why_not(undone(arrived("0>3"), *rows)) == f"{named} has changed it since"
    assert gets(undone(arrived("0>3"), *rows, plan=""), "")


def test_another_raw_mapping() -> None:
    assert why_not(undone(arrived("0>2"), row("", "0>2", raw=(0, 6)))) == REMAPPED


def test_a_target_that_is_out_takes_no_pair() -> None:
    result = undone(arrived("0>2").mark_out(3), row("0>3", "0>2"))
    assert why_not(result) == "an OSD that it would return to is out"


def test_a_primary_that_was_set_since_is_no_obstacle() -> None:
    """It makes the raw mapping look like another one."""
    change = row("", "0>2")
    assert gets(undone(empty().pg("1.0", "1 2", objects=10, items="0>2"), change), "")
    assert gets(cancelled(under_way("0>2", [1, 2], [1, 0]), change), "")


def test_what_has_not_begun_to_move_comes_first() -> None:
    cluster = arrived("0>2")
    arrived("0>2", "1.1", cluster)
    under_way("0>3", (3, 1), state="active+remapped+backfilling", uncopied=0.4, pgid="1.2",
              cluster=cluster)
    under_way("0>3", (3, 1), pgid="1.3", cluster=cluster)
    result = undone(cluster, row("", "0>3", pgid="1.3"), row("", "0>3", pgid="1.2"),
                    row("", "0>2", pgid="1.0"), row("", "0>2", pgid="1.1"))
    changes = [(change.pgid, change.shards) for change in result.plan.changes]
    assert changes == [("1.3", 0), ("1.2", 0), ("1.1", 1), ("1.0", 1)]
    assert (result.not_begun, result.under_way) == (1, 1)
    assert len(result.plan.moves) == 2


@pytest.mark.parametrize("state, uncopied", [
    ("active+remapped+backfilling", 1.0), ("active+remapped+backfill_wait", 0.9),
    ("active+recovering+remapped", 1.0)])
def test_cancel_leaves_what_is_being_copied(state: str, uncopied: float) -> None:
    cluster = under_way("0>2", (2, 1), state=state, uncopied=uncopied)
    assert not cancelled(cluster, row("", "0>2")).plan.changes


def test_cancel_leaves_to_crush_what_it_moves() -> None:
    """osd.1 is out, and osd.4 takes its place."""
    result = cancelled(under_way("0>2", (2, 4)), row("1>3", "0>2 1>3"))
    assert gets(result, "")
    assert result.plan.changes[0].up_after == (0, 4)
    assert not result.plan.moves


@pytest.mark.parametrize("after", ["0>2", "0>2 1>5"])
def test_cancel_leaves_what_an_operator_has_taken_away(after: str) -> None:
    assert not cancelled(under_way("", RAW, (3, 1)), row("0>3", after)).plan.changes


def test_cancel_takes_back_the_last_move_alone() -> None:
    """The first has arrived: the data is on osd.2."""
    cluster, rows = under_way("0>3", (3, 1), (2, 1)), (row("", "0>2"), row("0>2", "0>3"))
    assert gets(cancelled(cluster, *rows), "0>2")
    assert gets(undone(cluster, *rows), "")


@pytest.mark.parametrize("rows", [[], [row("", "0>2", "q")], [row("", "0>5")]])
def test_cancel_leaves_what_others_move(rows: Sequence[ChangeRow]) -> None:
    assert not cancelled(under_way("0>2", (2, 1)), *rows).plan.changes


def test_nothing_returns_to_an_osd_that_is_being_drained() -> None:
    """It would be sent away again, whether it has arrived or waits."""
    cluster = under_way("0>2", (2, 1)).drain(0)
    arrived("0>3", "1.1", cluster)
    rows = row("", "0>2"), row("", "0>3", pgid="1.1")
    for result, pgids in (undone(cluster, *rows), ["1.0", "1.1"]), (cancelled(cluster, *rows),
                                                                    ["1.0"]):
        assert not result.plan.changes
        assert sorted(pgid for pgid, _ in result.not_restored) == pgids
        for _, why in result.not_restored:
            assert (why, why.osd) == (DRAINED, 0)


def test_a_pg_that_must_not_be_moved() -> None:
    cluster = arrived("0>2")
    cluster.extra["pg_upmap"] = [{"pgid": "1.0", "osds": [2, 1]}]
    assert why_not(undone(cluster, row("", "0>2"))) == "placed by a full pg-upmap"
