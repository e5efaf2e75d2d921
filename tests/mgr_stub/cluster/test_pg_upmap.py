"""Upmaps in states that no command line makes; the rest is in the stories."""
from __future__ import annotations

import json
from typing import Any, Callable

from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import crush_state, run


def test_pg_with_inconsistent_items_is_unmovable() -> None:
    # osd.3 is out, so the items cannot have moved anything there, and yet it is in the set
    state = clusters.state([clusters.pg("2.0", [3, 1, 0])], items=[("2.0", [(2, 3)])])
    state["osd_dump"]["osds"][3]["weight"] = 0
    cluster = build_cluster(state, 16)
    assert cluster.pgs["2.0"].raw is None
    assert cluster.map.up["2.0"] == (3, 1, 0)


def test_a_merge_of_a_pg_with_a_primary_drops_those_of_its_pool(
        make_session: Callable[..., Any]) -> None:
    """OSDMap::clean_pg_upmaps of 20."""
    session = make_session(crush_state(), release=20)
    run(session, "osd set-require-min-compat-client reef", "osd pg-upmap-primary 1.0 11",
        "osd pg-upmap-primary 1.1f 2")
    assert set(session.cluster.map.chosen_primaries) == {"1.0", "1.1f"}
    command = {"prefix": "osd pool set", "pool": "rbd", "var": "pg_num_actual", "val": "31"}
    session.simulation.monitor.submit(json.dumps(command), lambda *answer: None)
    run(session, "sim run 1s")
    assert not session.cluster.map.chosen_primaries
