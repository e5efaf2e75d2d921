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

MakeSession = Callable[..., Any]


def test_loading_computes_no_crush(session: Any) -> None:
    run(session, "sim run 10m", "osd set noout", "osd pg-upmap-items 1.0 0 3")
    assert session.cluster.raw_mapping.computed == 0
    before = raw_of(session.cluster)
    assert recompute_raw(session.cluster) == before


def test_up_from_of_a_restarted_osd(session: Any) -> None:
    """In the osdmap, and in the OSD's reports, which the mgr gets without a dump."""
    run(session, "sim osd down 3", "sim osd up 3")
    epoch = session.mgr.get("osd_map")["epoch"]
    assert session.mgr.get("osd_map")["osds"][3]["up_from"] == epoch
    reported = {record["osd"]: record.get("up_from", 0)
            for record in session.mgr.get("osd_stats")["osd_stats"]}
    assert reported[3] == epoch and reported[4] < epoch
    run(session, "osd set noout", "sim osd up 3", "sim run 1h")   # no effect: it is already up
    assert session.mgr.get("osd_map")["osds"][3]["up_from"] == epoch


def test_mappings_depend_on_the_map_and_not_on_what_was_before(make_session: MakeSession) -> None:
    """Whether they are CRUSH's or not: OSDs that come back have the PGs that they had."""
    rng = random.Random(7)
    pgs = [stub_states.pg(f"3.{n:x}", [2 * host + rng.randrange(2)
                                       for host in rng.sample(range(6), 3)]) for n in range(32)]
    session = make_session(stub_states.state(pgs, osds=12, pools=[stub_states.BY_HOST]))
    before = raw_of(session.cluster)
    for _ in range(12):
        away = rng.sample(range(12), 3)
        changes = [f"sim osd {rng.choice(('out', 'down', 'reweight'))} {osd}" for osd in away]
        run(session, *(line + " 0.5" if "reweight" in line else line for line in changes),
            "sim run 11m")
        assert raw_of(session.cluster) != before
        run(session, "sim osd up " + " ".join(map(str, away)), *(f"sim osd in {osd}" for osd in away),
            *(f"sim osd reweight {osd} 1" for osd in away), "sim run idle")
        assert raw_of(session.cluster) == before, changes


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


#: Lines that are refused with EINVAL, and others with their code.
_INVALID = [
    "sim mgr", "sim mgr fail now", "sim mgr fail at", "sim mgr fail at noon",
    "sim mgr fail at before-lunch", "sim mgr fail at before-send 0",
    "sim mgr fail at before-send x", "sim mgr fail takeover=soon", "sim mgr fail after=1s",
    "sim mon", "sim mon delay", "sim mon delay long", "sim mon reject", "sim mon reject 2",
    "sim mon lose x", "sim mon drop", "sim mon drop 2", "sim mon down now",
    "sim stats", "sim stats freeze", "sim stats lag x",
    "sim stats noise -1", "sim clock", "sim clock jump", "sim clock jump -x",
    "sim inconsistent 2.0", "sim inconsistent 2.0 maybe", "sim failover x",
    "sim osd allocation", "sim osd allocation 1.5", "sim osd allocation 0 1",
    "sim osd allocation x 1", "sim pool optimize rbd 16K",
    "sim pool optimize ec 5000"]
_REFUSED = [
    ("sim osd allocation 2 0 pool=none", 2),
    ("sim osd", 22), ("sim osd out", 22), ("sim osd out x", 22), ("sim osd out 99", 2),
    ("sim osd out 1 99", 2), ("sim osd dance 1", 22), ("sim osd reweight 1", 22),
    ("sim osd reweight 1 2", 22), ("sim osd reweight 1 nan", 22), ("sim osd reweight 99 1", 2),
    ("sim osd crush-reweight 1 -1", 22), ("sim osd crush-reweight 99 1", 2),
    ("sim osd lose 99", 2), ("sim osd lose", 22), ("sim osd full-ratios 0.8 0.9", 22),
    ("sim osd full-ratios 0.9 0.8 0.95", 22), ("sim host", 22), ("sim host add x", 22),
    ("sim host add x 0 1T", 22), ("sim host add x 1 big", 22), ("sim host add x 1 1T rack=r", 22),
    ("sim host add x 1 1T under=nowhere", 22), ("sim host add default 1 1T", 22),
    ("sim host down nowhere", 2), ("sim flag set dance", 22), ("sim flag set", 22),
    ("sim scrub 9.0 1m", 2), ("sim scrub 1.0", 22), ("sim backfill rate fast", 22),
    ("sim peering 0", 22), ("sim balancer dance", 22), ("sim help me", 22),
    ("sim stats hang 1m", 22), ("sim swell rbd", 22), ("sim swell nowhere 1", 2),
    ("sim meanwhile before-send 1 sim flag set noout", 22), ("sim meanwhile 1 off", 22),
    ("sim pool", 22), ("sim pool create", 22), ("sim pool create x", 22),
    ("sim pool create x pg_num=4", 22), ("sim pool create x pg_num=0 size=3", 22),
    ("sim pool create x pg_num=four size=3", 22), ("sim pool create x pg_num=4 size=3 k=3", 22),
    ("sim pool create rbd pg_num=4 size=3", 17), ("sim pool create x pg_num=4 size=3 m=1", 22),
    ("sim pool create x pg_num=4 size=3 rule=none", 2), ("sim pool rm", 22),
    ("sim pool rm none", 2), ("sim pool pg_num none 4", 2), ("sim pool pg_num rbd 0", 22),
    ("sim pool pg_num rbd 99999999", 22), ("sim write none 1G", 2), ("sim write rbd much", 22),
    ("sim write rbd", 22), ("sim delete none 1G", 2), ("sim grow none 1G/1h", 2),
    ("sim grow rbd 1G", 22), ("sim grow rbd 1G/", 22), ("sim grow rbd 1G/0s", 22),
    ("sim grow rbd x/1h", 22)]


@pytest.mark.parametrize("line, code", [*_REFUSED, *((line, 22) for line in _INVALID)])
def test_bad_input(session: Any, line: str, code: int) -> None:
    before = session.cluster.map
    rc, out, err = session.command(line)
    assert (rc, out) == (-code, "") and err and "\n" not in err
    assert session.cluster.map is before and session.module is not None


def test_flags_and_scrubs(session: Any) -> None:
    run(session, "sim flag set norebalance", "sim flag set pause", "sim scrub 1.0 5m")
    assert {"norebalance", "pauserd", "pausewr"} <= set(session.mgr.get("osd_map")["flags_set"])
    assert session.mgr.get("pg_progress")["pgs"]["1.0"]["state"] == "active+clean+scrubbing"
    run(session, "sim run 6m", "sim flag unset pause", "sim flag unset norebalance")
    assert states(session) == {"active+clean": 48}
    assert session.mgr.get("osd_map")["flags_set"] == ["sortbitwise"]


#: Lines and what real 16.2.15 and 20.2.4 answer: the code, and the sentence on stderr.
GROUP_LINES = (
    ("osd set-group noout,noin h1", 0, ""),
    ("osd set-group noup osd.0 1", 0, ""),
    ("osd set-group noout hdd tape", 0,
     'unable to parse osd id or crush node or device class: "tape". '),
    ("osd set-group nodown,noout 2 h0", 0, ""),
    ("osd set-group nobackfill h0", -22,
     "unrecognized flag 'nobackfill', must be one of {noup,nodown,noin,noout}"),
    ("osd set-group noout nohost", -22,
     'unable to parse osd id or crush node or device class: "nohost". '),
    ("osd set-group noout default", 0, ""))


def test_flags_of_groups_are_in_the_map_as_in_cephs(session: Any) -> None:
    def shown() -> Tuple[Any, ...]:
        dump = session.mgr.get("osd_map")
        return (dump["crush_node_flags"], dump["device_class_flags"],
                [osd["state"] for osd in dump["osds"][:3]], "noout" in dump["flags"])
    for line, code, sentence in GROUP_LINES:
        assert session.command(line)[::2] == (code, sentence), line
    assert shown() == (
        {"h1": ["noin", "noout"], "h0": ["nodown", "noout"], "default": ["noout"]},
        {"hdd": ["noout"]},
        [["exists", "noup", "up"], ["exists", "noup", "up"], ["exists", "nodown", "noout", "up"]],
        False)
    run(session, "osd unset-group noout h1", "osd unset-group noup 0 1",
        "osd unset-group nodown,noout 2 h0", "osd unset-group noin h1 osd.1")
    assert shown()[:2] == ({"default": ["noout"]}, {"hdd": ["noout"]})


@pytest.mark.parametrize("who", ["3", "h1", "default", "hdd"])
def test_flags_of_groups_keep_osds_in_or_out(session: Any, who: str) -> None:
    for lines, weight in (
            ((f"osd set-group noout,noin {who}", "sim osd down 3", "sim run 1h"), 1.0),
            ((f"osd unset-group noout {who}", "sim run 1s"), 0.0),
            (("sim osd up 3", "sim run 1m"), 0.0)):
        run(session, *lines)
        assert session.cluster.map.reweight(3) == weight, lines


def test_help_names_every_command(session: Any) -> None:
    text, = run(session, "sim help")
    for name in _COMMANDS:
        assert name.split()[0] in text and name.split()[-1] in text


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
