"""Plans after a freeze: pins are dropped as data goes to where CRUSH wants it."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Tuple

import pytest
from tests.scenarios import clusters
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.plan_legality import assert_legal, ended_plan
from tests.support.rules import EC_HOST_RULE, OSD_RULE
from tests.support.units import GIB

from equilibrium_mgr.freeze.freeze import freeze
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.search import single_moves
from equilibrium_mgr.planner.search.move_reduction import MoveReduction
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.snapshot.upmap_items import items_for
from mgr_stub.console.session import Session


def frozen_expansion() -> Snapshot:
    """Four OSDs hold twelve PGs each, of which CRUSH wants four on one of two new OSDs."""
    cluster = Cluster(hosts(1, 6), {0: OSD_RULE}).pool(1, size=1)
    for number in range(48):
        osd, new = number % 4, 4 + number // 4 % 2
        is_pinned = number // 8 % 3 == 0
        cluster.pg(f"1.{number:x}", [osd], num_bytes=5 * GIB,
                   items=[(new, osd)] if is_pinned else [])
    return cluster.snapshot()


def pairs_after(snapshot: Snapshot, plan: Plan) -> int:
    items = {**snapshot.upmap_items, **{change.pgid: change.items for change in plan.changes}}
    return sum(map(len, items.values()))


def unpinned(plan: Plan) -> int:
    """Moves of the plan that leave a PG without items."""
    return sum(not change.items for change in plan.changes)


def test_what_moves_goes_where_crush_wants_it() -> None:
    snapshot = frozen_expansion()
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    assert len(plan.changes) == 16 == unpinned(plan)
    assert pairs_after(snapshot, plan) == 0


def test_the_descent_prefers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MoveReduction, "drop_pins", lambda *_: 0)
    plan = ended_plan(frozen_expansion())
    assert len(plan.changes) == 16 == unpinned(plan)


def test_other_moves_are_exchanged_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single_moves, "_NEARLY", float("inf"))
    exchanged = ended_plan(frozen_expansion())
    monkeypatch.setattr(MoveReduction, "drop_pins", lambda *_: 0)
    plain = ended_plan(frozen_expansion())
    assert (len(exchanged.changes), exchanged.bytes) == (len(plain.changes), plain.bytes)
    assert unpinned(exchanged) >= 8 > unpinned(plain)


@pytest.mark.parametrize("seed", range(4))
def test_of_shards_that_stay_exchanged_only_those_move_that_leave_it_expressible(seed: int) -> None:
    """Each PG needs four pairs and may have five; without its third shard's it can have none."""
    rng = random.Random(seed)
    cluster = Cluster(hosts(9), {0: EC_HOST_RULE}).pool(1, size=5, k=4)
    for number in range(48):
        raw = rng.sample(range(6), 5)
        up = (raw[1], raw[0], rng.randrange(6, 9), *raw[3:])
        cluster.pg(f"1.{number:x}", up, num_bytes=rng.randrange(2, 9) * GIB,
                   items=items_for(raw, up))
    snapshot = cluster.snapshot()
    assert not any(pg.immovable for pg in snapshot.pgs.values())
    plan = ended_plan(snapshot)
    assert_legal(snapshot, plan)
    assert len(plan.changes) > 20 and max(len(change.items) for change in plan.changes) == 5


def expanded(folder: Path) -> Tuple[Session, Snapshot]:
    """An erasure-coded cluster to which two hosts have been added under norebalance."""
    session = clusters.session_of("erasure", 4, folder)
    for line in ("sim flag set norebalance", "sim host add new0 4 8T", "sim host add new1 4 8T",
                 "sim run 2m"):
        assert session.command(line)[0] == 0
    return session, session.module.gateway.snapshot()


def test_an_expansion_that_was_frozen_ends_as_even_for_fewer_bytes(tmp_path: Path) -> None:
    session, direct = expanded(tmp_path)
    for change in freeze(direct).plan.changes:
        pairs = " ".join(f"{source} {target}" for source, target in change.items)
        assert session.command(f"osd pg-upmap-items {change.pgid} {pairs}")[0] == 0
    session.command("sim run 1m")
    frozen = session.module.gateway.snapshot()
    session.close()
    assert len(frozen.in_flight()) < len(direct.in_flight()) / 50
    with_crush, with_pins = ended_plan(direct), ended_plan(frozen)
    shard = max(pg.shard_bytes for pg in direct.pgs.values()) / min(
        osd.size_bytes for osd in direct.osds.values())
    assert with_pins.after.classes["hdd"].max < with_crush.after.classes["hdd"].max + shard
    assert _bytes(frozen, with_pins) <= 1.1 * _bytes(direct, with_crush)
    assert pairs_after(frozen, with_pins) < 0.75 * pairs_after(frozen, with_crush._replace(
        changes=()))


def _bytes(snapshot: Snapshot, plan: Plan) -> int:
    """What is in flight and what the plan moves."""
    return plan.bytes + sum(pg.shard_bytes * len(snapshot.transfers(pg)[0])
                            for pg in snapshot.in_flight().values())
