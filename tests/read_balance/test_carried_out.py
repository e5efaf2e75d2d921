"""Primaries that are sent, held back, verified, logged and restored."""
from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.execution.batch_selection import Decision, next_batch
from equilibrium_mgr.execution.execution import verify_batch
from equilibrium_mgr.execution.guards import primaries_refused
from equilibrium_mgr.execution.throttle_state import ThrottleLimits
from equilibrium_mgr.gateway.gateway import UpmapReply
from equilibrium_mgr.plan.kinds import BALANCE, READ_BALANCE, UNDO
from equilibrium_mgr.plan.model import NO_PRIMARY, PgChange, change_of_primary
from equilibrium_mgr.snapshot.builder import build_snapshot
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.undo import primaries as undo
from equilibrium_mgr.undo.change_log import ChangeRow
from equilibrium_mgr.undo.undo_plan import undo_plan

#: Nothing may move.
SHUT = ThrottleLimits(max_misplaced_ratio=0.0, max_moves=1, fill_limit=0.0, misplaced_copies=99,
                      in_flight=("1.0",), cooling={"1.0": 900.0}, max_upmap_pairs=1)


def cluster(up: Sequence[int] = (0, 1), set_to: Optional[int] = None,
            state: str = "active+clean") -> Cluster:
    found = Cluster(hosts(4)).pool(1, size=2).pg("1.0", up, objects=10, state=state)
    if set_to is not None:
        found.extra["pg_upmap_primaries"] = [{"pgid": "1.0", "primary_osd": set_to}]
    return found


def to(primary: int, made: Optional[Cluster] = None) -> PgChange:
    return change_of_primary((made or cluster()).snapshot().pgs["1.0"], primary)


def decided(made: Cluster, change: PgChange, kind: str = READ_BALANCE) -> Decision:
    return next_batch(made.snapshot(), [change], SHUT, {1: "degraded"}, kind=kind)


def test_no_limit_of_movement_binds() -> None:
    assert decided(cluster(), to(1)).send == [to(1)]


def test_what_is_so_is_done() -> None:
    assert decided(cluster((1, 0), set_to=1), to(1)).done == [to(1)]
    assert decided(cluster((1, 0)), to(1)).done == [to(1)]   # by CRUSH itself
    assert decided(cluster(), to(NO_PRIMARY), UNDO).done
    assert decided(cluster((1, 0), set_to=1), to(NO_PRIMARY), UNDO).send


@pytest.mark.parametrize("made, said", [
    (cluster(state="active+undersized+degraded"), "not active+clean"),
    (cluster((0, 2)), "CRUSH maps the PG differently now"),
    (cluster((0, 1, 2)), "")])
def test_what_has_changed_is_dropped(made: Cluster, said: str) -> None:
    dropped, = decided(made, to(1)).dropped
    assert said in dropped.reason


def test_a_scrub_is_waited_for() -> None:
    decision = decided(cluster(state="active+clean+scrubbing+deep"), to(1))
    assert decision.send == [] and decision.leading is not None
    assert decision.leading.code == "busy"


def answered(made: Cluster, change: PgChange, code: Optional[int] = 0) -> Tuple[List[str], ...]:
    result = verify_batch([UpmapReply(change, code, "no")], made.snapshot())
    return ([one.pgid for one in result.kept], [one.reason for one in result.rejected],
            [one.pgid for one in result.unanswered])


def test_the_map_tells_what_was_kept() -> None:
    assert answered(cluster((1, 0), set_to=1), to(1)) == (["1.0"], [], [])
    assert answered(cluster((1, 0)), to(1)) == (["1.0"], [], [])   # not needed, and dropped
    assert answered(cluster(), to(1)) == ([], ["the monitor did not keep its primary"], [])
    assert answered(cluster(), to(1), -22) == ([], ["the monitor refused it: no"], [])
    assert answered(cluster(), to(1), None) == ([], [], ["1.0"])
    assert answered(cluster(), to(NO_PRIMARY)) == (["1.0"], [], [])


@pytest.mark.parametrize("is_on, version, clients, said", [
    (True, "20.2.4", "reef", None), (True, "ceph version 18.2.7 (x) reef", "squid", None),
    (False, "20.2.4", "reef", "mgr/equilibrium/read_balance true"),
    (True, "16.2.15", "reef", "Ceph 16 has no pg-upmap-primary"),
    (True, "20.2.4", "quincy", "ceph osd set-require-min-compat-client reef"),
    (True, "20.2.4", "", "'unset'")])
def test_what_is_refused(is_on: bool, version: str, clients: str, said: Optional[str]) -> None:
    found = primaries_refused(is_on, version, clients, "reef")
    assert found == said if said is None else found is not None and said in found


def test_osds_of_an_older_release_refuse_it() -> None:
    """Monitors cannot store a primary in a map for these."""
    said = primaries_refused(True, "18.2.7", "reef", "quincy")
    assert said is not None and "ceph osd require-osd-release reef" in said
    assert primaries_refused(True, "18.2.7", "reef", "") is None
    reading = cluster().reading()
    assert build_snapshot(reading._replace(osd_map=dict(
        reading.osd_map, require_osd_release="quincy"))).osd_release == "quincy"


def row(before: int, after: int, plan: str = "p") -> ChangeRow:
    return ChangeRow(900.0, plan, READ_BALANCE, 900.0, "1.0", (0, 1), (), (), (before, after))


def undone(made: Cluster, rows: Sequence[ChangeRow]) -> Tuple[List[Optional[int]], List[str]]:
    result = undo_plan(made.snapshot(), rows, lambda one: one.plan == "p")
    return ([change.primary for change in result.plan.changes],
            [reason for _, reason in result.not_restored])


@pytest.mark.parametrize("made, rows, primaries, reasons", [
    (cluster((1, 0), set_to=1), [row(NO_PRIMARY, 1)], [NO_PRIMARY], []),
    (cluster((0, 1), set_to=0), [row(1, 0)], [1], []),
    (cluster((0, 1), set_to=0), [row(1, NO_PRIMARY), row(NO_PRIMARY, 0)], [1], []),
    (cluster((0, 1)), [row(1, 0)], [1], []),                    # the monitor has dropped it
    (cluster((0, 1)), [row(NO_PRIMARY, 1)], [], []),            # nothing is set any more
    (cluster((1, 0)), [row(1, 0)], [], []),
    (cluster((0, 1), set_to=0), [row(NO_PRIMARY, 1)], [], [undo.FOREIGN_PRIMARY]),
    (cluster((0, 1), set_to=0), [row(NO_PRIMARY, 1), row(1, 0, "q")], [], [undo.SET_LATER]),
    (cluster((0, 2), set_to=0), [row(1, 0)], [], [undo.NOT_A_MEMBER]),
    (Cluster(hosts(4)), [row(1, 0)], [], [undo.GONE])])
def test_undo_restores_what_was_set(made: Cluster, rows: List[ChangeRow],
                                    primaries: List[int], reasons: List[str]) -> None:
    assert undone(made, rows) == (primaries, reasons)


def moved_on(items: Sequence[Tuple[int, int]], up: Sequence[int], set_to: int) -> Snapshot:
    """Upmap items and a primary of one PG, where read_balance is on."""
    made = Cluster(hosts(4)).pool(1, size=2).pg("1.0", up, objects=10, items=items)
    made.extra["pg_upmap_primaries"] = [{"pgid": "1.0", "primary_osd": set_to}]
    return build_snapshot(made.reading()._replace(moves_primaries=True))


def test_upmap_items_are_undone_first() -> None:
    rows = [row(NO_PRIMARY, 1),
            ChangeRow(901.0, "p", BALANCE, 900.0, "1.0", (1, 0), (), ((0, 2),))]
    result = undo_plan(moved_on([(0, 2)], [1, 2], 1), rows, lambda one: True)
    assert [(change.items, change.primary) for change in result.plan.changes] == [((), None)]
    assert result.not_restored == [("1.0", undo.ITEMS_FIRST)]


def test_rows_of_items_are_restored_whatever_the_order_of_the_up_set() -> None:
    """A primary that was set since makes the raw mapping look like another one."""
    rows = [ChangeRow(900.0, "p", BALANCE, 900.0, "1.0", (0, 1), (), ((0, 2),))]
    result = undo_plan(moved_on([(0, 2)], [1, 2], 1), rows, lambda one: True)
    assert [change.items for change in result.plan.changes] == [()]
    assert result.not_restored == []


def test_restored_items_are_done_whatever_the_order_of_the_up_set() -> None:
    """As after a failover in the middle of an undo: the primary that is set comes first."""
    back = PgChange("1.0", (0, 1), (2, 1), (0, 1), (), 1, 5, 10)
    decision = next_batch(moved_on((), [1, 0], 1), [back], SHUT, {}, kind=UNDO)
    assert decision.done == [back] and not decision.dropped


@pytest.mark.parametrize("is_on", [True, False])
def test_pgs_whose_primary_is_set_move_where_the_option_is_on(is_on: bool) -> None:
    reading = cluster((1, 0), set_to=1).reading()._replace(moves_primaries=is_on)
    assert (build_snapshot(reading).pgs["1.0"].immovable is None) == is_on
