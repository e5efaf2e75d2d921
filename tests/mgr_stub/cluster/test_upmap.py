"""Cleaning and checking of upmap items by the monitor, as seen on real monitors."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters


def choose_osd_state(**changes: Any) -> Any:
    """PG 2.0 with the raw set [3, 1, 0], as in the table of observations."""
    return clusters.state([clusters.pg("2.0", [3, 1, 0])], osds=5, **changes)


@pytest.mark.parametrize("line, code, text", [
    ("osd pg-upmap-items 2.0 3 3", -22,
     "from osd.3 == to osd.3, no valid upmap items(pairs) is specified"),
    ("osd pg-upmap-items 2.0 3", -22, "you must specify pairs of osd ids to be remapped"),
    ("osd pg-upmap-items 2.0 3 2 1 4 0 2 3 4", -22, "num of osd pairs (4) > pool size (3)"),
    ("osd pg-upmap-items 2.0 3 99", -2, "osd.99 does not exist"),
    ("osd pg-upmap-items 2.99 3 2", -2, "pg 2.99 does not exist"),
    ("osd pg-upmap-items 9.0 3 2", -2, "pg 9.0 does not exist"),
    ("osd pg-upmap-items 2.0 3 2 3 2", 0,
     "osd.3 -> osd.2 already exists, set 2.0 pg_upmap_items mapping to [3->2]"),
    ("osd rm-pg-upmap-items 2.0", 0, "clear 2.0 pg_upmap_items mapping"),
])
def test_texts_and_return_codes(make_session: Callable[..., Any], line: str, code: int,
                                text: str) -> None:
    assert make_session(choose_osd_state()).command(line) == (code, "", text)


def test_old_clients_are_in_the_way(make_session: Callable[..., Any]) -> None:
    state = choose_osd_state()
    state["osd_dump"]["require_min_compat_client"] = "jewel"
    session = make_session(state)
    rc, _, err = session.command("osd pg-upmap-items 2.0 3 2")
    assert rc == -1
    assert err.startswith("min_compat_client jewel < luminous, which is required for pg-upmap.")
    session.command("osd set-require-min-compat-client luminous")
    assert session.command("osd pg-upmap-items 2.0 3 2")[0] == 0
    assert session.command("osd set-require-min-compat-client nonsense")[0] == -22


def test_entries_of_the_file_are_cleaned_at_the_next_epoch(
        make_session: Callable[..., Any]) -> None:
    state = clusters.state([clusters.pg("2.0", [2, 1, 0]), clusters.pg("2.1", [0, 1, 2])],
                           items=[("2.0", [(3, 2), (4, 5)]), ("2.1", [(5, 4)])])
    session = make_session(state)
    assert session.cluster.map.upmap_items["2.0"] == ((3, 2), (4, 5))
    session.command("osd set noout")
    assert session.cluster.map.upmap_items == {"2.0": ((3, 2),)}
    assert session.cluster.map.up["2.0"] == (2, 1, 0)


def test_pg_with_inconsistent_items_is_unmovable() -> None:
    # osd.3 is out, so the items cannot have moved anything there, and yet it is in the set
    state = clusters.state([clusters.pg("2.0", [3, 1, 0])], items=[("2.0", [(2, 3)])])
    state["osd_dump"]["osds"][3]["weight"] = 0
    cluster = build_cluster(state, 16)
    assert cluster.pgs["2.0"].raw is None
    assert cluster.map.up["2.0"] == (3, 1, 0)
