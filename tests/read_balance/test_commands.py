"""Read balance on a simulated cluster, from the command to what the map has in the end."""
from __future__ import annotations

import errno
from typing import Dict, Iterator, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask as asked
from tests.commands.asking import run as said

ON = "config set mgr mgr/equilibrium/read_balance true"
REEF = "osd set-require-min-compat-client reef"


@pytest.fixture
def session() -> Iterator[Session]:
    """The demo cluster at rest; primaries may be set."""
    opened = Session.from_state(None, release=20)
    for line in ("config set mgr mgr/equilibrium/start_delay 0", ON, REEF):
        said(opened, line)
    opened.command("equilibrium upmap ls")   # has it looked at the cluster
    opened.host.run_for(60.0)
    yield opened
    opened.close()


def refused(session: Session, line: str) -> Tuple[int, str]:
    code, out, message = session.command(f"equilibrium {line}")
    assert code < 0 and out == "" and "\n" not in message.strip()
    return -code, message


def primaries(session: Session) -> Dict[str, int]:
    return dict(session.cluster.map.chosen_primaries)


def test_a_plan_is_made_carried_out_and_undone(session: Session) -> None:
    up = {pgid: set(osds) for pgid, osds in session.cluster.map.up.items()}
    made = asked(session, "optimize r --read-balance")
    assert made["pgs"] == len(made["primaries"]) > 0 and made["kind"] == "read-balance"
    assert all(row["score_after"] <= row["score_before"] for row in made["reads"])
    said(session, "equilibrium execute r")
    session.host.run_for(600.0)
    status = asked(session, "status")
    assert status["last_execution"]["outcome"] == "completed" and status["misplaced_ratio"] == 0
    assert primaries(session) == made["primaries"]
    assert all(session.cluster.map.up_primary(pgid) == osd
               for pgid, osd in made["primaries"].items())
    assert {pgid: set(osds) for pgid, osds in session.cluster.map.up.items()} == up
    assert asked(session, "optimize s --read-balance")["pgs"] == 0
    answer = asked(session, "undo r")
    assert answer["pgs"] == made["pgs"] and answer["shards"] == 0 == len(answer["not_restored"])
    session.host.run_for(600.0)
    assert primaries(session) == {}


def test_it_is_shown(session: Session) -> None:
    made = asked(session, "optimize r --read-balance")
    shown = said(session, "equilibrium show r")
    assert shown.count("ceph osd pg-upmap-primary ") == made["pgs"]
    assert "no data moves" in shown and "score" in shown and "max utilization" not in shown
    plan, = asked(session, "ls")["plans"]
    assert plan["kind"] == "read-balance" and plan["shards"] == 0
    assert asked(session, "dump r")["primaries"] == made["primaries"]
    assert "primaries on an OSD" in said(session, "equilibrium eval r")
    assert asked(session, "report r")["rollback"] == []
    pgid = next(iter(made["primaries"]))
    pool = session.cluster.map.pools[int(pgid.split(".")[0])]["pool_name"]
    pgs = asked(session, f"optimize t {pool} --read-balance")["primaries"]
    assert {one.split(".")[0] for one in pgs} == {pgid.split(".")[0]}


def test_it_is_refused_where_it_cannot_be(session: Session) -> None:
    said(session, "equilibrium optimize r --read-balance")
    assert refused(session, "optimize s --read-balance --max-moves 3")[0] == errno.EINVAL
    said(session, "config set mgr mgr/equilibrium/read_balance false")
    for line in ("optimize s --read-balance", "execute r"):
        code, message = refused(session, line)
        assert code == errno.EPERM and "read_balance is off" in message
    said(session, ON)
    said(session, "osd set-require-min-compat-client luminous")
    for line in ("optimize s --read-balance", "execute r"):
        code, message = refused(session, line)
        assert code == errno.EPERM and REEF in message


def test_an_older_ceph_has_none() -> None:
    session = Session.from_state(None, release=16)
    said(session, ON)
    assert "Ceph 16" in refused(session, "optimize s --read-balance")[1]
    session.close()


def test_switching_the_option_off_stops_it(session: Session) -> None:
    said(session, "config set mgr mgr/equilibrium/max_moves_per_round 2")
    made = asked(session, "optimize r --read-balance")
    said(session, "equilibrium execute r")
    session.host.run_for(15.0)
    said(session, "config set mgr mgr/equilibrium/read_balance false")
    session.host.run_for(300.0)
    assert 2 <= len(primaries(session)) < made["pgs"]
    assert asked(session, "status")["execution"] is None


def test_automatic_balancing_evens_out_primaries_once_it_rests(session: Session) -> None:
    said(session, "sim backfill rate 1G")
    said(session, "equilibrium on")
    session.host.run_for(21600.0)
    status = asked(session, "status")
    assert status["state"] == "balanced" and primaries(session)
    sent = len([entry for entry in session.simulation.monitor.log
                if entry.prefix == "osd pg-upmap-primary"])
    session.host.run_for(7200.0)
    assert sent == len([entry for entry in session.simulation.monitor.log
                        if entry.prefix == "osd pg-upmap-primary"])


def test_it_goes_on_after_a_failover(session: Session) -> None:
    said(session, "config set mgr mgr/equilibrium/max_moves_per_round 2")
    made = asked(session, "optimize r --read-balance")
    said(session, "equilibrium execute r")
    session.host.run_for(15.0)
    said(session, "sim mgr fail takeover=10s")
    session.host.run_for(1200.0)
    assert primaries(session) == made["primaries"]
    session.command("equilibrium undo r --dry-run")   # has it looked at the cluster
    session.host.run_for(5.0)
    answer = asked(session, "undo r")
    assert answer["pgs"] == made["pgs"] and not answer["not_restored"]


def test_an_old_look_is_renewed_however_long_rounds_are(session: Session) -> None:
    said(session, "config set mgr mgr/equilibrium/sleep_interval 86400")
    session.host.run_for(1800.0)
    code, message = refused(session, "optimize r --read-balance")
    assert code == errno.EAGAIN and "a look has been started" in message
    session.host.run_for(5.0)
    assert asked(session, "optimize r --read-balance")["pgs"] > 0


def test_how_far_it_is_counts_pgs(session: Session) -> None:
    """Nothing of it is in bytes or shards."""
    said(session, "config set mgr mgr/equilibrium/max_moves_per_round 2")
    planned = asked(session, "optimize r --read-balance")["pgs"]
    said(session, "equilibrium execute r")
    session.host.run_for(15.0)
    changed = len(primaries(session))
    screen = said(session, "equilibrium status")
    assert f"{changed} of {planned} PGs changed; no data moves" in screen
    assert "arrived" not in screen and "0 B" not in screen
    execution = asked(session, "status")["execution"]
    assert (execution["planned_pgs"], execution["remaining_pgs"]) == (planned, planned - changed)
    session.host.run_for(600.0)
    evaluated = " ".join(said(session, "equilibrium eval r").split())
    assert f"{planned} of its {planned} PGs have other primaries by now" in evaluated


def test_refused_primaries_do_not_hold_moves_up(session: Session) -> None:
    """What monitors make of them tells nothing of upmap items."""
    asked(session, "optimize r --read-balance")
    made = asked(session, "optimize m --max-moves 3")
    assert made["state"] == "planning"
    session.host.run_for(10.0)
    said(session, "config set mgr mgr/equilibrium/max_moves_per_round 10")
    said(session, "sim mon reject 1")
    said(session, "equilibrium execute r")
    session.host.run_for(60.0)
    assert asked(session, "status")["last_execution"]["outcome"].startswith("dropped")
    said(session, "sim mon reject 0")
    said(session, "equilibrium execute m")
    session.host.run_for(5.0)
    assert asked(session, "status")["execution"]["sent_moves"] == 3
