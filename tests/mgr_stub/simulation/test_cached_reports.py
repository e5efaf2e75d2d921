"""Cached reports are equal to recomputed ones."""

from __future__ import annotations

import copy
import random
from typing import Any, Callable, Dict

import pytest

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.simulation.reports import REPORTED
from tests.mgr_stub.mgr.test_frozen_readings import parts
from tests.mgr_stub.random_commands import next_line, pause
from tests.support.clusters.crush_cluster import crush_state

MakeSession = Callable[..., Any]

_EVENTS = 60


@pytest.fixture(scope="module")
def state() -> Dict[str, Any]:
    """Contains an unmovable PG whose acting set differs from its up set."""
    made = crush_state()
    stats = made["pg_dump"]["pg_map"]["pg_stats"][0]
    made["osd_dump"]["pg_upmap"] = [{"pgid": stats["pgid"], "osds": stats["up"]}]
    stats["acting"] = [osd for osd in range(12) if osd not in stats["up"]][:3]
    return made


def readings(cluster: Cluster) -> Dict[str, Any]:
    return {name: make(cluster) for name, make in REPORTED.items()}


def recomputed(cluster: Cluster) -> Dict[str, Any]:
    for pg in cluster.pgs.values():
        pg.forget_reports()
    cluster.invalidate_sums()
    return readings(cluster)


@pytest.mark.parametrize("seed", range(8))
def test_readings_are_never_stale(make_session: MakeSession, state: Dict[str, Any],
                                  seed: int) -> None:
    session, rng = make_session(state, release=18), random.Random(seed)
    states = set()
    for _ in range(_EVENTS):
        line = rng.choice((next_line, lambda _, rng: pause(rng)))(session, rng)
        session.command(line)
        readings(session.cluster)
        session.simulation.idle()   # this may plan the backfills
        kept = readings(session.cluster)
        assert kept == recomputed(session.cluster), line
        assert list(kept["pg_progress"]["pgs"]) == list(session.cluster.pgs), line
        states |= {pg["state"] for pg in kept["pg_progress"]["pgs"].values()}
    # the run must have had backfills that waited and ran
    assert any("wait" in state for state in states) and any("ing" in state for state in states)


@pytest.mark.parametrize("name", sorted(REPORTED))
def test_older_readings_do_not_change(make_session: MakeSession, state: Dict[str, Any],
                                      name: str) -> None:
    session = make_session(state, release=18)
    session.command("sim osd out 3")
    before = session.mgr.get(name)
    text = repr(before)
    for line in ("sim run 5m", "sim write rbd 9G", "sim pool pg_num rbd 48", "sim run 1h"):
        assert session.command(line)[0] == 0
        session.mgr.get(name)
    assert repr(before) == text


@pytest.mark.parametrize("frozen", [True, False])
def test_a_module_cannot_change_what_the_simulator_keeps(make_session: MakeSession,
                                                         state: Dict[str, Any],
                                                         frozen: bool) -> None:
    state = copy.deepcopy(state)
    state["pg_dump"]["pg_map"]["osd_stats"][0]["hb_peers"] = [1, 2]
    session = make_session(state, release=18, frozen=frozen)
    get = session.module.get
    # the many lists of all PGs are not copied for a module of an older release
    names = [name for name in REPORTED if frozen or name not in ("pg_stats", "pg_dump")]
    before = {name: repr(get(name)) for name in names}
    for part in [part for name in names for part in parts(get(name))]:
        try:
            part.clear()
        except (AttributeError, TypeError):
            pass   # read-only, or no container
    assert {name: repr(get(name)) for name in names} == before


def test_noise_lasts_for_the_span_asked_for(make_session: MakeSession,
                                            state: Dict[str, Any]) -> None:
    session = make_session(state, release=18)

    def osds() -> Any:
        return [record["statfs"] for record in session.module.get("osd_stats")["osd_stats"]]
    session.command("sim stats noise 0.1 1h")
    session.command("sim run 1h")
    noisy = osds()
    session.command("sim run 50m")
    last = osds()
    session.command("sim run 20m")
    assert noisy == last != osds()
    assert session.command("sim stats noise 0.1 1h 1h")[0] != 0
