"""pg_upmap and pg_upmap_primaries entries, cache tiers and stretch mode.

Cleaning and checking of upmap items by the monitor, as seen on real monitors.

Primary affinity, and pools with nonprimary shards (EC optimizations, Ceph 20).
"""
from __future__ import annotations

import json
import pytest
from typing import Any, Callable, Dict, Tuple

from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import crush_state


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


Make = Callable[..., Any]


@pytest.fixture
def session_and_pg(make_session: Make, state: Dict[str, Any]) -> Tuple[Any, str]:
    """A session and a replicated PG in it."""
    session = make_session(crush_state(), release=18)
    session.command("osd set-require-min-compat-client reef")
    pgid = next(p for p, pg in session.cluster.pgs.items() if not pg.erasure)
    return session, pgid


def other_up(session: Any, pgid: str) -> Tuple[int, ...]:
    """A legal up set with another last OSD, on the same host."""
    cluster = session.cluster
    up, rule = cluster.map.up[pgid], int(
        cluster.map.pools[cluster.pgs[pgid].pool_id]["crush_rule"])
    host = cluster.crush.parent_of_type(up[-1], "host", rule)
    return (*up[:-1], next(o for o in cluster.map.osds if o not in up
                           and cluster.crush.parent_of_type(o, "host", rule) == host))


def test_pg_upmap_replaces_crush_until_its_osd_is_out(session_and_pg: Tuple[Any, str]) -> None:
    session, pgid = session_and_pg
    before, wanted = session.cluster.map.up[pgid], other_up(session, pgid)
    command = f"osd pg-upmap {pgid} {' '.join(map(str, wanted))}"
    assert session.command(command)[0] == 0
    assert session.cluster.map.up[pgid] == wanted
    dump = session.cluster.map.dump(18)
    assert dump["pg_upmap"] == [{"pgid": pgid, "osds": list(wanted)}]
    assert session.command(f"sim osd reweight {wanted[-1]} 0")[0] == 0   # it is out
    assert session.cluster.map.dump(18)["pg_upmap"] == []
    assert session.cluster.map.up[pgid][:-1] == before[:-1]


def test_invalid_pg_upmaps_are_rejected(session_and_pg: Tuple[Any, str],
                                        make_session: Make) -> None:
    session, pgid = session_and_pg
    up = session.cluster.map.up[pgid]
    stranger = next(osd for osd in session.cluster.map.osds if osd not in up)
    for line, code in ((f"osd pg-upmap {pgid} 0", -22), (f"osd pg-upmap {pgid} 0 0", -22),
                       (f"osd pg-upmap {pgid} 0 999", -2), ("osd pg-upmap 99.0 0 1", -2),
                       (f"osd pg-upmap-primary {pgid} {stranger}", -22),
                       (f"osd pg-upmap-primary {pgid}", -22)):
        assert session.command(line)[0] == code
    old = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]), release=16)
    assert old.command("osd pg-upmap-primary 2.0 1")[0] == -22


@pytest.mark.parametrize("release", [18, 20])
def test_primaries_that_crush_does_not_choose(make_session: Make, release: int) -> None:
    """Seen with osdmaptool 20.2.4: it drops the target of a pair, and what comes first anyway."""
    session = make_session(crush_state(), release=release)
    session.command("osd set-require-min-compat-client reef")
    pgid = next(p for p, pg in session.cluster.pgs.items() if not pg.erasure)
    up, target = session.cluster.map.up[pgid], other_up(session, pgid)[-1]
    assert session.command(f"osd pg-upmap-primary {pgid} {up[0]}")[0] == -22   # it is already
    assert session.command(f"osd pg-upmap-items {pgid} {up[-1]} {target}")[0] == 0
    session.command("sim run 1d")
    assert session.command(f"osd pg-upmap-primary {pgid} {target}")[0] == 0
    kept = release < 20
    assert (pgid in session.cluster.map.chosen_primaries) == kept
    assert (session.cluster.map.up[pgid][0] == target) == kept
    assert session.cluster.map.upmap_items[pgid] == ((up[-1], target),)
    assert session.command(f"osd pg-upmap-primary {pgid} {up[1]}")[0] == 0
    assert session.cluster.map.up[pgid] == (up[1], up[0], target)


@pytest.mark.parametrize("release", [18, 20])
def test_primaries_beside_pairs_that_are_cancelled(make_session: Make, release: int) -> None:
    """Seen on 18.2.7, which keeps the primary, and 20.2.4, which drops it."""
    session = make_session(crush_state(), release=release)
    session.command("osd set-require-min-compat-client reef")
    pgid = next(p for p, pg in session.cluster.pgs.items() if not pg.erasure)
    up = session.cluster.map.up[pgid]
    stranger = next(osd for osd in session.cluster.map.osds if osd not in up)
    assert session.command(f"osd pg-upmap-primary {pgid} {up[1]}")[0] == 0
    session.command(f"osd pg-upmap-items {pgid} {stranger} {up[0]}")
    assert session.cluster.map.upmap_items.get(pgid) is None
    assert (pgid in session.cluster.map.chosen_primaries) == (release < 20)


def test_a_merge_drops_the_primaries_of_its_pool(make_session: Make) -> None:
    """OSDMap::clean_pg_upmaps of 20."""
    session = make_session(crush_state(), release=20)
    session.command("osd set-require-min-compat-client reef")
    pool = next(pg.pool_id for pg in session.cluster.pgs.values() if not pg.erasure)
    for pg in session.cluster.pgs_of(pool):
        session.command(f"osd pg-upmap-primary {pg.pgid} {session.cluster.map.up[pg.pgid][1]}")
    entry = session.cluster.map.pools[pool]
    assert session.cluster.map.chosen_primaries
    session.simulation.monitor.submit(json.dumps(
        {"prefix": "osd pool set", "pool": entry["pool_name"], "var": "pg_num_actual",
         "val": str(int(entry["pg_num"]) - 1)}), lambda *answer: None)
    session.command("sim run 1s")
    assert not [pgid for pgid in session.cluster.map.chosen_primaries
                if pgid.startswith(f"{pool}.")]
