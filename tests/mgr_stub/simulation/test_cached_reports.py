"""Cached reports, and plans of backfills made only when they may change, are as if made anew.

The reference is a session that plans at every epoch.
"""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, Tuple

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.cluster import Cluster
from mgr_stub.console.session import Session
from mgr_stub.simulation.backfill import Backfill
from mgr_stub.simulation.reports import REPORTED
from tests.support.clusters.crush_cluster import check_accounts, crush_state
from tests.support.few import few
from tests.support.units import GIB

MakeSession = Callable[..., Any]

_EVENTS = 60

#: Flags that stop backfills, and one that does not.
_FLAGS = ("norebalance", "nobackfill", "norecover", "noscrub")


def next_line(session: Session, rng: random.Random) -> str:
    """A random event; the command may be rejected."""
    cluster = session.cluster
    osd, pgid = rng.choice(sorted(cluster.map.osds)), rng.choice(sorted(cluster.pgs))
    other = rng.choice(sorted(cluster.map.osds))
    pool = rng.choice([str(pool["pool_name"]) for pool in cluster.map.pools.values()])
    lines: List[str] = [
        f"sim osd {rng.choice(('out', 'in', 'down', 'up'))} {osd}", f"sim osd up {osd}",
        f"sim osd in {osd}", f"sim osd reweight {osd} {rng.random():.2f}",
        f"sim osd crush-reweight {osd} {rng.uniform(0.5, 1.5):.2f}", f"sim osd lose {osd}",
        f"sim write {pool} {rng.randrange(1, 30)}G", f"sim delete {pool} {rng.randrange(1, 30)}G",
        f"sim grow {pool} {rng.randrange(0, 9)}G/1h",
        f"sim pool pg_num {pool} {rng.choice((8, 16, 24, 32, 48))}", f"sim scrub {pgid} 90s",
        f"osd pg-upmap-items {pgid} {cluster.map.up[pgid][0]} {other}",
        f"osd pg-upmap-items {pgid} {cluster.map.up[pgid][-1]} {other}",
        f"osd rm-pg-upmap-items {pgid}", f"sim flag set {rng.choice(_FLAGS)}",
        f"sim flag unset {rng.choice(_FLAGS)}", f"config set osd osd_max_backfills {osd % 3 + 1}",
        f"sim osd full-ratios 0.3 {rng.uniform(0.3, 0.9):.2f} 0.95", f"sim stats lag {osd}m",
        f"sim pool create new{osd} pg_num=8 size=3 rule=firstn"]
    if pool.startswith("new"):
        lines.append(f"sim pool rm {pool}")
    return rng.choice(lines)


def pause(rng: random.Random) -> str:
    """A `sim run` of a fraction of a peering up to several backfills."""
    return f"sim run {rng.choice((0.3, 1, 5, 40, 300, 1800))}s"


def small_osds() -> Dict[str, Any]:
    """OSDs so small that targets become too full."""
    return crush_state(osd_bytes=400 * GIB)


@pytest.fixture(scope="module")
def state() -> Dict[str, Any]:
    """With an unmovable PG whose acting set differs from its up set."""
    made = small_osds()
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


def data_state(session: Any) -> Tuple[Any, ...]:
    """Map, bytes and transfers of the cluster."""
    cluster = session.cluster
    return (cluster.map, {osd: usage.used for osd, usage in cluster.usage.items()},
            [(pgid, pg.held, pg_reports.state_of(cluster, pg), pg.toofull,
              sorted((place, transfer.source, transfer.copied, transfer.rate)
                     for place, transfer in pg.transfers.items()))
             for pgid, pg in cluster.pgs.items()])


@pytest.mark.parametrize("seed", few(range(8), 2))
def test_nothing_is_stale(make_session: MakeSession, state: Dict[str, Any], seed: int,
                          monkeypatch: pytest.MonkeyPatch) -> None:
    decided: Dict[Backfill, int] = {}
    plan = Backfill._plan

    def counted(backfill: Backfill) -> None:
        decided[backfill] = decided.get(backfill, 0) + 1
        plan(backfill)
    monkeypatch.setattr(Backfill, "_plan", counted)
    is_whole = seed % 2 == 0   # all PGs can be moved
    session, reference = (make_session(small_osds() if is_whole else state, release=18)
                          for _ in range(2))
    always = reference.simulation.backfill
    monkeypatch.setattr(always, "_all_targets_have_space", lambda: False)
    monkeypatch.setattr(always, "_replan_unless_space", always.replan)
    rng, states = random.Random(seed), set()
    for _ in range(_EVENTS):
        line = rng.choice((next_line, lambda _, rng: pause(rng)))(session, rng)
        assert session.command(line) == reference.command(line)
        readings(session.cluster)
        session.simulation.idle()   # this may plan the backfills
        kept = readings(session.cluster)
        assert kept == recomputed(session.cluster), line
        assert list(kept["pg_progress"]["pgs"]) == list(session.cluster.pgs), line
        reference.simulation.idle()
        assert data_state(session) == data_state(reference), line
        states |= {pg["state"] for pg in kept["pg_progress"]["pgs"].values()}
    # the run must have had backfills that waited and ran
    assert any("wait" in state for state in states) and any("ing" in state for state in states)
    assert 0 < decided[session.simulation.backfill] < decided[always]
    if is_whole:
        check_accounts(session)


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
