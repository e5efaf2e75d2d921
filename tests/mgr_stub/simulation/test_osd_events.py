"""Adding, failing and reweighting OSDs and hosts; raw mappings are those of CRUSH.

OSDs that the monitor marked out are marked in when up; those of operators stay out.
"""
from __future__ import annotations

import pytest
import random
from typing import Any, Callable, Dict, List, Tuple

from mgr_stub.console.sim_commands import _COMMANDS
from mgr_stub.state.state_file import read_state
from tests.support.clusters import stub_states
from tests.support.clusters.crush_cluster import (
    check_accounts, raw_of, recompute_raw, run, states, used)
from tests.support.tables import rows

MakeSession = Callable[..., Any]
AWAY = ("sim osd out {}", "sim osd down {}", "sim osd reweight {} 0.5")


def test_loading_computes_no_crush(session: Any) -> None:
    run(session, "sim run 10m", "osd set noout", "osd pg-upmap-items 1.0 0 3")
    assert session.cluster.raw_mapping.computed == 0
    before = raw_of(session.cluster)
    assert recompute_raw(session.cluster) == before


def test_up_from_of_a_restarted_osd(session: Any) -> None:
    """In the osdmap, and in the OSD's reports, which the mgr gets without a dump."""
    get = session.mgr.get
    run(session, "sim osd down 3", "sim osd up 3")
    epoch = get("osd_map")["epoch"]
    assert get("osd_map")["osds"][3]["up_from"] == epoch
    _, _, _, restarted, other, *_ = get("osd_stats")["osd_stats"]
    assert restarted["up_from"] == epoch > other.get("up_from", 0)
    run(session, "osd set noout", "sim osd up 3", "sim run 1h")   # no effect: it is already up
    assert get("osd_map")["osds"][3]["up_from"] == epoch


def test_mappings_depend_on_the_map_and_not_on_what_was_before(make_session: MakeSession) -> None:
    """Whether they are CRUSH's or not: OSDs that come back have the PGs that they had."""
    rng = random.Random(7)
    pgs = []
    for n in range(32):
        hosts = rng.sample(range(6), 3)
        pgs.append(stub_states.pg(f"3.{n:x}", [2 * host + rng.randrange(2) for host in hosts]))
    session = make_session(stub_states.state(pgs, osds=12, pools=[stub_states.BY_HOST]))
    before = raw_of(session.cluster)
    for _ in range(12):
        away = rng.sample(range(12), 3)
        for osd in away:
            run(session, rng.choice(AWAY).format(osd))
        run(session, "sim run 11m")
        assert raw_of(session.cluster) != before
        for osd in away:
            run(session, f"sim osd up {osd}", f"sim osd in {osd}", f"sim osd reweight {osd} 1")
        run(session, "sim run idle")
        assert raw_of(session.cluster) == before, away


def test_pgs_of_a_state_file_with_a_down_osd_heal(make_session: MakeSession, state: Dict[str, Any],
                                                  tmp_path: Any) -> None:
    first = make_session(state)
    run(first, "sim flag set noout", "sim osd down 3", "sim run 5s",
        f"sim save {tmp_path / 'degraded.json'}")
    session = make_session(read_state(str(tmp_path / "degraded.json")))
    degraded = states(session)
    assert degraded["active+undersized+degraded"] > 0
    run(session, "sim run 1h")
    assert states(session) == degraded and session.cluster.raw_mapping.computed == 0
    run(session, "sim osd up 3", "sim run 5s")
    assert states(session) == {"active+clean": 48}
    assert raw_of(session.cluster) == recompute_raw(session.cluster)


def test_flags_and_scrubs(session: Any) -> None:
    run(session, "sim flag set norebalance", "sim flag set pause", "sim scrub 1.0 5m")
    assert {"norebalance", "pauserd", "pausewr"} <= set(session.mgr.get("osd_map")["flags_set"])
    assert session.mgr.get("pg_progress")["pgs"]["1.0"]["state"] == "active+clean+scrubbing"
    run(session, "sim run 6m", "sim flag unset pause", "sim flag unset norebalance")
    assert states(session) == {"active+clean": 48}
    assert session.mgr.get("osd_map")["flags_set"] == ["sortbitwise"]


#: Lines and what real 16.2.15 and 20.2.4 answer on stderr; the last two with EINVAL.
GROUP_LINES = """
osd set-group noout,noin h1
osd set-group noup osd.0 1
osd set-group nodown,noout 2 h0
osd set-group noout default
osd set-group noout hdd tape     unable to parse osd id or crush node or device class: "tape".
osd set-group noout nohost       unable to parse osd id or crush node or device class: "nohost".
osd set-group nobackfill h0      unrecognized flag 'nobackfill', must be one of {FLAGS}
"""


def test_flags_of_groups_are_in_the_map_as_in_cephs(session: Any) -> None:
    def shown() -> Tuple[Any, ...]:
        dump = session.mgr.get("osd_map")
        return dump["crush_node_flags"], dump["device_class_flags"], dump["flags"]
    codes = []
    for line, sentence in rows(GROUP_LINES.format(FLAGS="{noup,nodown,noin,noout}")):
        code, _, err = session.command(line)
        codes.append(code)
        assert err.rstrip() == sentence
    assert codes == [0, 0, 0, 0, 0, -22, -22]
    nodes = {"h1": ["noin", "noout"], "h0": ["nodown", "noout"], "default": ["noout"]}
    assert shown() == (nodes, {"hdd": ["noout"]}, "sortbitwise")
    assert [osd["state"] for osd in session.mgr.get("osd_map")["osds"][1:3]] == [
        ["exists", "noup", "up"], ["exists", "nodown", "noout", "up"]]
    run(session, "osd unset-group noout h1", "osd unset-group noup 0 1",
        "osd unset-group nodown,noout 2 h0", "osd unset-group noin h1 osd.1")
    assert shown()[:2] == ({"default": ["noout"]}, {"hdd": ["noout"]})


@pytest.mark.parametrize("who", ["3", "h1", "default", "hdd"])
def test_flags_of_groups_keep_osds_in_or_out(session: Any, who: str) -> None:
    run(session, f"osd set-group noout,noin {who}", "sim osd down 3", "sim run 1h")
    assert session.cluster.map.reweight(3) == 1.0
    run(session, f"osd unset-group noout {who}", "sim run 1s")
    assert session.cluster.map.reweight(3) == 0.0
    run(session, "sim osd up 3", "sim run 1m")
    assert session.cluster.map.reweight(3) == 0.0


def test_help_names_every_command(session: Any) -> None:
    text, = run(session, "sim help")
    for name in " ".join(_COMMANDS).split():
        assert name in text


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


@pytest.mark.parametrize("lines, old_weight", [
    (("sim osd out 3", "sim osd down 3"), 0x10000),
    (("sim osd down 3", "sim run 1m", "sim osd out 3"), 0x10000),
    (("sim osd reweight 3 0", "sim osd down 3"), 0)])
def test_operators_out_stays_when_the_osd_is_up(session: Any, lines: Tuple[str, ...],
                                                old_weight: int) -> None:
    run(session, *lines, "sim run 11m", "sim osd up 3")
    assert osd_state(session, 3) == (1, 0.0, ["exists", "up"], old_weight)


def test_state_file_keeps_the_automatic_out(session: Any, make_session: MakeSession,
                                            tmp_path: Any) -> None:
    run(session, "sim osd reweight 3 0.5", "sim run idle", "sim osd down 3", "sim run 11m",
        f"sim save {tmp_path / 'out.json'}")
    later = make_session(read_state(str(tmp_path / "out.json")), release=18)
    assert osd_state(later, 3) == osd_state(session, 3)
    assert osd_state(later, 3) == (0, 0.0, ["autoout", "exists"], 0x8000)
    run(later, "sim osd up 3")
    assert osd_state(later, 3) == (1, 0.5, ["exists", "up"], 0)
