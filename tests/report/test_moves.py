"""`moves`: every shard in flight in a row, those that are being copied first."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

import pytest
from tests.observation.test_movements import FILLING, WAITING, ours, pool_of_two, view_of
from tests.support.units import GIB

from equilibrium_mgr.control.steering import Steered
from equilibrium_mgr.observation.cluster_view import ClusterView
from equilibrium_mgr.observation.movements import STEERED, Rate
from equilibrium_mgr.report.cluster.moves import report_moves
from equilibrium_mgr.report.answer import CommandAnswer, CommandError


def busy() -> ClusterView:
    """1.0 is ours and fills osd.2; 1.1 waits, somebody else's; a copy of 2.0 is lost."""
    cluster = pool_of_two().pool(2, size=2, name="other")
    cluster.osd(5, up=0, state=["exists"]).mark_out(5)
    cluster.pg("1.0", "2 1", 8 * GIB, items="0>2", acting="0 1", state=FILLING,
               uncopied_ratio=0.25)
    cluster.pg("1.1", "3 1", 8 * GIB, items="0>3", acting="0 1", state=WAITING)
    cluster.pg("2.0", "3 1", 8 * GIB, acting="1", objects=10,
               state="active+undersized+degraded+remapped+backfilling")
    return view_of(cluster.snapshot(), ours())


def report(view: ClusterView, what: Optional[str] = None, waiting: int = 0,
           limit: Optional[int] = None) -> CommandAnswer:
    return report_moves(view, 4.0, what, what, waiting, limit)


def rows(answer: CommandAnswer) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = answer.data["moves"]
    return found


def test_the_screen() -> None:
    assert report(busy(), waiting=14).plain.splitlines() == [
        "PG   POOL    FROM     TO   SIZE   LEFT  STATE          WHOSE",
        "1.0  pool1  osd.0  osd.2  8 GiB  2 GiB  backfilling    plan",
        "2.0  other         osd.3  8 GiB  8 GiB  backfilling    recovery",
        "1.1  pool1  osd.0  osd.3  8 GiB  8 GiB  backfill_wait  upmap",
        "3 shards, 18 GiB left: 2 backfilling, 1 backfill_wait",
        "14 planned shards not sent yet; 'ceph equilibrium status' tells why",
        "placement of osdmap e100, 4s old"]


def test_what_is_steered_and_what_is_held_is_counted() -> None:
    view = busy()
    steered = Steered(0.0, 1, 13, 0.9)
    view = view._replace(movements=(
        *view.movements[:2], view.movements[2]._replace(origin=STEERED)))
    found = report_moves(view, 4.0, None, None, 0, None, steered)
    assert ("whose: 1 plan, 1 steered, 1 upmap; 13 shards held where their data is, and not\n"
            "       moving") in found.plain
    assert "whose" not in report_moves(view, 4.0, "1.0", None, 0, None, steered).plain


def test_no_rate_beside_a_flag_that_halts_what_is_being_copied() -> None:
    view = busy()
    view = view._replace(rates=view.rates._replace(all_now=Rate(8.0 * GIB, 8.0)))
    assert "left, at 1 GiB/s:" in report(view).plain
    view = view._replace(snapshot=view.snapshot._replace(flags=("norebalance",)))
    halted = report(view)
    assert halted.data["bytes_per_second"] is None
    assert "/s" not in halted.plain


@pytest.mark.parametrize("what, pgids", [
    ("osd.0", ["1.0", "1.1"]), ("3", ["2.0", "1.1"]), ("1.1", ["1.1"]), ("other", ["2.0"]),
    ("4", [])])
def test_of_an_osd_a_pool_or_a_pg(what: str, pgids: List[str]) -> None:
    assert [row["pgid"] for row in rows(report(busy(), what))] == pgids


@pytest.mark.parametrize("what", ["nothing", "9.9", "osd.77", "osd." + "9" * 5000])
def test_what_is_neither_an_osd_nor_a_pool_nor_a_pg(what: str) -> None:
    with pytest.raises(CommandError):
        report(busy(), what)
