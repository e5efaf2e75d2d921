"""Cached reports are equal to recomputed ones."""

from __future__ import annotations

import random
from typing import Any, Callable, Dict

import pytest

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.simulation.reports import REPORTED
from tests.mgr_stub.random_commands import any_line
from tests.support.clusters.crush_cluster import crush_state, run
from tests.support.few import few

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


@pytest.mark.parametrize("seed", few(range(8), 2))
def test_readings_are_never_stale(make_session: MakeSession, state: Dict[str, Any],
                                  seed: int) -> None:
    session, rng = make_session(state, release=18), random.Random(seed)
    seen = ""
    for _ in range(_EVENTS):
        line = any_line(session, rng)
        session.command(line)
        readings(session.cluster)
        session.simulation.idle()   # this may plan the backfills
        kept = readings(session.cluster)
        assert kept == recomputed(session.cluster), line
        assert list(kept["pg_progress"]["pgs"]) == list(session.cluster.pgs), line
        seen += " ".join(pg["state"] for pg in kept["pg_progress"]["pgs"].values())
    assert "backfill_wait" in seen and "backfilling" in seen


def test_noise_lasts_for_the_span_asked_for(make_session: MakeSession,
                                            state: Dict[str, Any]) -> None:
    session = make_session(state, release=18)

    def osds() -> Any:
        return [record["statfs"] for record in session.module.get("osd_stats")["osd_stats"]]
    run(session, "sim stats noise 0.1 1h", "sim run 1h")
    noisy = osds()
    run(session, "sim run 50m")
    last = osds()
    run(session, "sim run 20m")
    assert noisy == last != osds()
    assert session.command("sim stats noise 0.1 1h 1h")[0] != 0
