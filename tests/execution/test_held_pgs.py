"""The kept PGs of some OSDs are those that a pass over all PGs finds."""
from __future__ import annotations

from typing import Dict, List, Set

import pytest
from tests.snapshot.amend.kept_readers import open_reader
from tests.snapshot.amend.random_changes import Changes

from equilibrium_mgr.execution.size_check.held_pgs import HeldPgs
from equilibrium_mgr.gateway.snapshot_reader import NotReady
from equilibrium_mgr.snapshot.model import Snapshot


def held_by(osds: List[int], snapshot: Snapshot) -> Dict[int, Set[str]]:
    return {osd: {pg.pgid for pg in snapshot.pgs.values() if osd in pg.up or osd in pg.holders}
            for osd in osds}


@pytest.mark.parametrize("seed", range(4))
def test_kept_is_what_a_pass_over_all_pgs_finds(seed: int) -> None:
    changes, held = Changes(seed), HeldPgs()
    reader, watched = open_reader(changes.mgr, changes.clock), [changes.osd()]
    found = 0
    for _ in range(60):
        changes.one()
        if changes.rng.random() < 0.3:   # others are watched
            watched = sorted(changes.rng.sample(sorted(changes.cluster.osds), 3))
        if changes.rng.random() < 0.05:
            held.forget()
        try:
            snapshot = reader.snapshot(False)
        except NotReady:
            continue
        of = {osd: set(pgids) for osd, pgids in held.of(watched, snapshot.pgs).items()}
        assert of == held_by(watched, snapshot)
        found += reader.has_amended
    assert found > 20


def test_other_mappings_than_those_of_readers_are_gone_over_each_time() -> None:
    changes, held = Changes(0), HeldPgs()
    snapshot = open_reader(changes.mgr, changes.clock).snapshot(False)
    plain = dict(snapshot.pgs)
    pgid = next(iter(plain))
    assert {*held.of([0], plain)[0]} == held_by([0], snapshot)[0]
    plain[pgid] = plain[pgid]._replace(up=(0,), holders=(0,))
    assert pgid in held.of([0], plain)[0]
