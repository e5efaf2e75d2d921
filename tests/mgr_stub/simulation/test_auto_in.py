"""OSDs that the monitor marked out are marked in when up; those of operators stay out."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

from mgr_stub.state.state_file import read_state
from tests.support.clusters.crush_cluster import check_accounts, raw_of, run, states, used

MakeSession = Callable[..., Any]


def osd_state(session: Any, osd: int) -> Tuple[int, float, List[str], int]:
    """up, reweight, state and old reweight (16.16) of an OSD, as the osdmap's dump shows them."""
    dump = session.mgr.get("osd_map")
    entry = dump["osds"][osd]
    old = {record["osd"]: record["old_weight"] for record in dump["osd_xinfo"]}
    assert "old_weight" not in entry and entry["in"] == (entry["weight"] > 0)
    return entry["up"], entry["weight"], entry["state"], old.get(osd, 0)


def test_auto_out_osd_is_marked_in_and_backfilled(session: Any) -> None:
    before = raw_of(session.cluster), used(session)
    run(session, "sim osd down 3", "sim run 11m")
    assert osd_state(session, 3) == (0, 0.0, ["autoout", "exists"], 0x10000)
    run(session, "sim run idle", "sim osd up 3")
    assert osd_state(session, 3) == (1, 1.0, ["exists", "up"], 0)
    run(session, "sim run idle")
    assert (raw_of(session.cluster), used(session)) == before
    assert states(session) == {"active+clean": 48}
    check_accounts(session)


def test_operators_out_stays_when_the_osd_is_up(session: Any) -> None:
    run(session, "sim osd out 3", "sim osd down 3", "sim run 11m", "sim osd up 3")
    assert osd_state(session, 3) == (1, 0.0, ["exists", "up"], 0x10000)
    run(session, "sim osd down 4", "sim run 1m", "sim osd out 4", "sim run 11m", "sim osd up 4")
    assert osd_state(session, 4)[:2] == (1, 0.0)
    run(session, "sim osd reweight 5 0", "sim osd down 5", "sim run 11m", "sim osd up 5")
    assert osd_state(session, 5)[:2] == (1, 0.0)


def test_state_file_keeps_the_automatic_out(session: Any, make_session: MakeSession,
                                            tmp_path: Any) -> None:
    run(session, "sim osd reweight 3 0.5", "sim run idle", "sim osd down 3", "sim run 11m",
        f"sim save {tmp_path / 'out.json'}")
    later = make_session(read_state(str(tmp_path / "out.json")), release=18)
    assert osd_state(later, 3) == osd_state(session, 3)
    assert osd_state(later, 3) == (0, 0.0, ["autoout", "exists"], 0x8000)
    run(later, "sim osd up 3")
    assert osd_state(later, 3) == (1, 0.5, ["exists", "up"], 0)
