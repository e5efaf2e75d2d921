"""The page of a large cluster: how large it is, and how long it takes."""
from __future__ import annotations

import time
from typing import List

import pytest
from tests.benchmark.made.scale import large_reading

from equilibrium_mgr.observation.cluster_view import ClusterView
from equilibrium_mgr.plan.model import Move, PgChange, Plan
from equilibrium_mgr.report.page.page import report_page
from equilibrium_mgr.runtime.time_slice import giving_way
from equilibrium_mgr.snapshot.builder import build_snapshot

from .html_reader import Page
from .views import sources_of, view_of

MOST_BYTES = 500_000
_OSDS = 1000
_CHANGES = 5000


@pytest.fixture(scope="module")
def large_view() -> ClusterView:
    """1,000 OSDs, 100 pools, 33,300 PGs."""
    return view_of(build_snapshot(large_reading(_OSDS, 100)))


def large_plan(view: ClusterView) -> Plan:
    """A shard of each of many PGs goes to the next OSD."""
    moves: List[Move] = []
    changes: List[PgChange] = []
    for pg in list(view.snapshot.pgs.values())[:_CHANGES]:
        source = pg.up[0]
        target = next(osd for osd in range(source + 1, source + 9) if osd % _OSDS not in pg.up)
        target %= _OSDS
        after = (target, *pg.up[1:])
        moves.append(Move(pg.pgid, source, target, pg.shard_bytes, 1, 0.5, 0.5, 0.5, 0.5))
        changes.append(PgChange(pg.pgid, pg.raw, pg.up, after, ((source, target),), 1,
                                pg.shard_bytes, 1))
    return Plan(view.snapshot.epoch, "converged", tuple(moves), tuple(changes), view.usage,
                view.usage, {}, "luminous", "space", view.bounds)


def test_the_page_of_a_thousand_osds(large_view: ClusterView) -> None:
    sources = sources_of(large_view, ("p", large_plan(large_view)))
    began = time.process_time()
    answer = report_page(sources)
    seconds = time.process_time() - began
    assert len(answer.plain.encode()) <= MOST_BYTES
    assert seconds <= 1.0
    found = Page(answer.plain)
    assert found.table("HOST", "CLASS", "OSDS") and not found.table("OSD", "CLASS")
    assert len(answer.data["rollback"]) == _CHANGES
    shown = [line for line in found.preformatted.splitlines() if line.startswith("ceph osd")]
    assert shown == answer.data["rollback"][:len(shown)]
    assert f"{len(shown)} of {_CHANGES} commands are shown" in found.text or (
        len(shown) == _CHANGES)
    assert len(found.table("PG", "POOL", "FROM")) == 20


def test_it_is_made_in_slices(large_view: ClusterView) -> None:
    """Other threads get their turn: the longest piece takes a small part of all."""
    moments: List[float] = [time.process_time()]

    def note(_moves: int) -> bool:
        moments.append(time.process_time())
        return True
    with giving_way(note):
        report_page(sources_of(large_view, ("p", large_plan(large_view))))
    moments.append(time.process_time())
    longest = max(b - a for a, b in zip(moments, moments[1:]))
    assert len(moments) > 20
    assert longest <= 0.15, longest


