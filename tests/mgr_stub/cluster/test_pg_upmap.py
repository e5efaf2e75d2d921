"""pg_upmap and pg_upmap_primaries entries, cache tiers and stretch mode.

Cleaning and checking of upmap items by the monitor, as seen on real monitors; what it cancels is in
test_recorded_streams.
"""
from __future__ import annotations

import json
from typing import Any, Callable, List, Tuple

import pytest

from mgr_stub.state.cluster_builder import build_cluster
from tests.support.clusters import stub_states as clusters
from tests.support.clusters.crush_cluster import crush_state, run
from tests.support.tables import rows

Make = Callable[..., Any]
Case = Tuple[Any, str]


def choose_osd_state() -> Any:
    """PG 2.0 with the raw set [3, 1, 0], as in the table of observations."""
    return clusters.state([clusters.pg("2.0", [3, 1, 0])], osds=5)


@pytest.mark.parametrize("code, line, text", rows("""
-22  osd pg-upmap-items 2.0 3 3                 \
  from osd.3 == to osd.3, no valid upmap items(pairs) is specified
-22  osd pg-upmap-items 2.0 3                   you must specify pairs of osd ids to be remapped
-22  osd pg-upmap-items 2.0 3 2 1 4 0 2 3 4     num of osd pairs (4) > pool size (3)
 -2  osd pg-upmap-items 2.0 3 99                osd.99 does not exist
 -2  osd pg-upmap-items 2.99 3 2                pg 2.99 does not exist
 -2  osd pg-upmap-items 9.0 3 2                 pg 9.0 does not exist
  0  osd pg-upmap-items 2.0 3 2 3 2             \
  osd.3 -> osd.2 already exists, set 2.0 pg_upmap_items mapping to [3->2]
  0  osd rm-pg-upmap-items 2.0                  clear 2.0 pg_upmap_items mapping
"""))
def test_texts_and_return_codes(make_session: Make, code: str, line: str, text: str) -> None:
    assert make_session(choose_osd_state()).command(line) == (int(code), "", text)


def test_old_clients_are_in_the_way(make_session: Make) -> None:
    state = choose_osd_state()
    state["osd_dump"]["require_min_compat_client"] = "jewel"
    session = make_session(state)
    rc, _, err = session.command("osd pg-upmap-items 2.0 3 2")
    assert rc == -1
    assert err.startswith("min_compat_client jewel < luminous, which is required for pg-upmap.")
    run(session, "osd set-require-min-compat-client luminous", "osd pg-upmap-items 2.0 3 2")
    assert session.command("osd set-require-min-compat-client nonsense")[0] == -22


def test_entries_of_the_file_are_cleaned_at_the_next_epoch(make_session: Make) -> None:
    pgs = [clusters.pg("2.0", [2, 1, 0]), clusters.pg("2.1", [0, 1, 2])]
    items = [("2.0", [(3, 2), (4, 5)]), ("2.1", [(5, 4)])]
    session = make_session(clusters.state(pgs, items=items))
    assert session.cluster.map.upmap_items["2.0"] == ((3, 2), (4, 5))
    run(session, "osd set noout")
    assert session.cluster.map.upmap_items == {"2.0": ((3, 2),)}
    assert session.cluster.map.up["2.0"] == (2, 1, 0)


def test_pg_with_inconsistent_items_is_unmovable() -> None:
    # osd.3 is out, so the items cannot have moved anything there, and yet it is in the set
    state = clusters.state([clusters.pg("2.0", [3, 1, 0])], items=[("2.0", [(2, 3)])])
    state["osd_dump"]["osds"][3]["weight"] = 0
    cluster = build_cluster(state, 16)
    assert cluster.pgs["2.0"].raw is None
    assert cluster.map.up["2.0"] == (3, 1, 0)


def opened(make_session: Make, release: int) -> Case:
    """A session whose clients are new enough, and a replicated PG in it."""
    session = make_session(crush_state(), release=release)
    run(session, "osd set-require-min-compat-client reef")
    return session, next(pgid for pgid, pg in session.cluster.pgs.items() if not pg.erasure)


@pytest.fixture
def reef(make_session: Make) -> Case:
    return opened(make_session, 18)


@pytest.fixture(params=[18, 20])
def either(make_session: Make, request: Any) -> Case:
    return opened(make_session, request.param)


def up_of(case: Case) -> List[int]:
    session, pgid = case
    return list(session.cluster.map.up[pgid])


def other_of_the_last_host(case: Case) -> int:
    """An OSD that the PG may have in place of its last one: hosts have two."""
    return up_of(case)[-1] ^ 1


def stranger_to(case: Case) -> int:
    session, up = case[0], up_of(case)
    return next(osd for osd in session.cluster.map.osds if osd not in up)


def test_pg_upmap_replaces_crush_until_its_osd_is_out(reef: Case) -> None:
    session, pgid = reef
    before = up_of(reef)
    wanted = [*before[:-1], other_of_the_last_host(reef)]
    run(session, f"osd pg-upmap {pgid} {' '.join(map(str, wanted))}")
    assert up_of(reef) == wanted
    assert session.cluster.map.dump(18)["pg_upmap"] == [{"pgid": pgid, "osds": wanted}]
    run(session, f"sim osd reweight {wanted[-1]} 0")   # it is out
    assert session.cluster.map.dump(18)["pg_upmap"] == []
    assert up_of(reef)[:-1] == before[:-1]


@pytest.mark.parametrize("code, line", rows("""
-22  osd pg-upmap PG 0
-22  osd pg-upmap PG 0 0
 -2  osd pg-upmap PG 0 999
 -2  osd pg-upmap 99.0 0 1
-22  osd pg-upmap-primary PG STRANGER
-22  osd pg-upmap-primary PG FIRST
-22  osd pg-upmap-primary PG
"""))
def test_invalid_pg_upmaps_are_rejected(reef: Case, code: str, line: str) -> None:
    session, pgid = reef
    for word, value in ("PG", pgid), ("STRANGER", stranger_to(reef)), ("FIRST", up_of(reef)[0]):
        line = line.replace(word, str(value))
    assert session.command(line)[0] == int(code)


def test_ceph_16_sets_no_primaries(make_session: Make) -> None:
    old = make_session(clusters.state([clusters.pg("2.0", [0, 1, 2])]), release=16)
    assert old.command("osd pg-upmap-primary 2.0 1")[0] == -22


def test_primaries_that_crush_does_not_choose(either: Case) -> None:
    """Seen with osdmaptool 20.2.4: it drops the target of a pair, and what comes first anyway."""
    session, pgid = either
    first, second, last = up_of(either)
    target = other_of_the_last_host(either)
    run(session, f"osd pg-upmap-items {pgid} {last} {target}", "sim run 1d",
        f"osd pg-upmap-primary {pgid} {target}")
    kept = session.mgr.release < 20
    assert (pgid in session.cluster.map.chosen_primaries) == kept
    assert (up_of(either)[0] == target) == kept
    assert session.cluster.map.upmap_items[pgid] == ((last, target),)
    run(session, f"osd pg-upmap-primary {pgid} {second}")
    assert up_of(either) == [second, first, target]


def test_primaries_beside_pairs_that_are_cancelled(either: Case) -> None:
    """Seen on 18.2.7, which keeps the primary, and 20.2.4, which drops it."""
    session, pgid = either
    first, second, _ = up_of(either)
    run(session, f"osd pg-upmap-primary {pgid} {second}",
        f"osd pg-upmap-items {pgid} {stranger_to(either)} {first}")
    assert session.cluster.map.upmap_items.get(pgid) is None
    assert (pgid in session.cluster.map.chosen_primaries) == (session.mgr.release < 20)


def test_a_merge_drops_the_primaries_of_its_pool(make_session: Make) -> None:
    """OSDMap::clean_pg_upmaps of 20."""
    session, pgid = opened(make_session, 20)
    cluster = session.cluster
    pool = cluster.map.pools[cluster.pgs[pgid].pool_id]
    for pg in cluster.pgs_of(pool["pool"]):
        run(session, f"osd pg-upmap-primary {pg.pgid} {cluster.map.up[pg.pgid][1]}")
    assert len(cluster.map.chosen_primaries) == pool["pg_num"]
    command = {"prefix": "osd pool set", "pool": pool["pool_name"], "var": "pg_num_actual",
               "val": str(pool["pg_num"] - 1)}
    session.simulation.monitor.submit(json.dumps(command), lambda *answer: None)
    run(session, "sim run 1s")
    assert not cluster.map.chosen_primaries
