"""The limits per OSD hold in every moment of automatic balancing, over failovers, too."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import pytest

from equilibrium_mgr.snapshot.model import shard_changes

from mgr_stub.console.session import Session

from ..asking import ask, optimize, refused, run, state

Loads = Dict[Tuple[int, str], List[float]]   # (OSD, direction) → bytes left of each shard


class Watch:
    """Looks at what moves after every epoch."""

    def __init__(self, session: Session) -> None:
        self.most_shards = 0
        self.highest_share = 0.0     # of what does not go alone
        self.fullest_target = 0.0
        self._session = session
        self._commit = session.simulation.commit
        session.simulation.commit = self._watched  # type: ignore[method-assign]

    def _watched(self) -> None:
        self._commit()
        cluster = self._session.cluster
        loads: Loads = {}
        for pg in self._session.simulation.backfill.moving():
            left = max(transfer.remaining for transfer in pg.transfers.values())
            gains, losses = shard_changes(tuple(pg.held), tuple(cluster.map.up[pg.pgid]),
                                          pg.erasure)
            for direction, osds in (("in", gains), ("out", losses)):
                for osd in osds:
                    loads.setdefault((osd, direction), []).append(left)
        for (osd, direction), shards in loads.items():
            usage = cluster.usage[osd]
            self.most_shards = max(self.most_shards, len(shards))
            if len(shards) > 1:
                self.highest_share = max(self.highest_share, sum(shards) / usage.total)
            if direction == "in":
                self.fullest_target = max(self.fullest_target,
                                          (usage.used + sum(shards)) / usage.total)


def set_options(session: Session, **options: Any) -> None:
    run(session, *(f"config set mgr mgr/equilibrium/{name} {value}"
                   for name, value in options.items()))


@pytest.mark.full
def test_defaults_hold_over_failovers(session: Session) -> None:
    watch = Watch(session)
    run(session, "equilibrium on")
    for _ in range(4):
        run(session, "sim run 3m", "sim failover")
    run(session, "sim run idle")
    assert state(session) == "balanced"
    assert 1 < watch.most_shards <= 4 and 0.0 < watch.highest_share <= 0.1
    assert watch.fullest_target <= 0.88
    history = session.module.balancer.status.history
    assert [entry["outcome"] for entry in history] == ["balanced"]
    assert history[0]["moves"] > 0
    assert history[0]["max_after"]["hdd"] < history[0]["max_before"]["hdd"]


def test_one_shard_at_a_time(session: Session) -> None:
    set_options(session, max_backfills_per_osd=1)
    optimize(session, "p --max-moves 30")
    watch = Watch(session)
    run(session, "equilibrium execute p", "sim run idle")
    assert watch.most_shards == 1
    assert ask(session, "status")["last_execution"]["sent_moves"] >= 28


def test_start_delay_after_a_failover(session: Session) -> None:
    set_options(session, start_delay=300, max_moves_per_round=5)
    optimize(session)
    run(session, "sim failover", "equilibrium execute p", "sim run 4m")
    assert state(session) == "waiting" and "start_delay" in ask(session, "status")["reason"]
    assert ask(session, "status")["execution"]["sent_moves"] == 0
    run(session, "sim run 2m")
    assert ask(session, "status")["execution"]["sent_moves"] > 0


def test_bad_values_are_refused_or_ignored(session: Session) -> None:
    for bad in ("max_backfills_per_osd -1", "max_transit_ratio 2", "min_gain x",
                "begin_weekday 8", "pg_cooldown soon"):
        refused(session, "config set mgr mgr/equilibrium/" + bad)


def test_a_window_that_cannot_be_read_never_opens(session: Session) -> None:
    set_options(session, begin_time="noon")
    run(session, "equilibrium on", "sim run 2m")
    status = ask(session, "status")
    assert state(session) == "waiting" and "begin_time" in status["reason"]
    assert status["action"].startswith("set begin_time and end_time so that the window opens;")
    assert ask(session, "explain")["action"] == status["action"]
    set_options(session, begin_time="0000")
    run(session, "sim run 2m")
    assert state(session) == "moving"


@pytest.mark.full
def test_failovers_at_odd_moments_leave_legal_upmaps_only(session: Session) -> None:
    """Every upmap in the map is one that the monitor keeps, and the end is a rest."""
    run(session, "equilibrium on")
    for seconds in (1, 61, 2, 59, 60, 7, 120):
        run(session, f"sim run {seconds}s", "sim failover")
        assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks
    run(session, "sim run idle")
    assert state(session) == "balanced" and ask(session, "status")["rejected"] == []
    stored = session.simulation.store.keys
    assert max(len(value.encode()) for value in stored.values()) <= 65536
    writes = session.mgr.store.writes
    run(session, "sim run 30m")
    assert session.mgr.store.writes == writes
