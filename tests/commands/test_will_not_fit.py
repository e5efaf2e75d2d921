"""What comes and will not fit: what `do:` says helps; and a PG that stands still for a full OSD."""
from __future__ import annotations

import re
from typing import Callable

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.observation.cluster_view import make_view
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.explain.advice import with_room
from equilibrium_mgr.report.health import health_checks

PREFIX = "MGR_EQUILIBRIUM_"
_WAIT = "nothing; it ends by itself"


def coming(used: int, shard: int = 10, state: str = "active+remapped+backfill_wait") -> Cluster:
    """A PG moves from osd.0 to osd.2, which has so many GiB of 100."""
    made = Cluster(hosts(4), classes=dict.fromkeys(range(4), "hdd")).pool(1, size=2)
    made.pg("1.0", "2 1", shard * GIB, objects=10, acting="0 1", state=state)
    return made.pg("1.1", "2 3", used * GIB, objects=10)


@pytest.mark.parametrize("used, ratio_name, text, action", [
    (75, None, "", _WAIT),
    (76, "nearfull_ratio", "below nearfull_ratio 85.00%: osd.2 (86.00%)", _WAIT),
    (81, "backfillfull_ratio", "below backfillfull_ratio 90.00%: osd.2 (91.00%)",
     "add capacity to class hdd, or delete data: osd.2 has no room for what comes"),
    (86, "full_ratio", "below full_ratio 95.00%: osd.2 (96.00%)",
     "add capacity to class hdd, or delete data: osd.2 has no room for what comes"),
    (96, None, "", _WAIT)])   # it is there already, and Ceph says so
def test_which_ratio_is_passed(used: int, ratio_name: str, text: str, action: str) -> None:
    snapshot = coming(used).snapshot()
    view = make_view(snapshot, None, PendingMoves(), 0.05, False)
    assert [one.ratio_name for one in view.will_not_fit()] == [ratio_name] * bool(ratio_name)
    assert with_room(_WAIT, BalancerStatus(), view) == action
    assert with_room("'ceph osd unset noup'", BalancerStatus(), view) == "'ceph osd unset noup'"
    check = health_checks(BalancerStatus(view=view), 0.0, True).get(PREFIX + "WILL_NOT_FIT")
    assert bool(check) == bool(ratio_name)
    assert not check or check["detail"][0] == f"what comes will not fit {text}"
    assert health_checks(BalancerStatus(view=view), 0.0, False) == {}


def test_where_no_placement_has_room() -> None:
    made = coming(86).pg("1.2", "0 1", 86 * GIB, objects=10)
    snapshot = made.snapshot()
    view = make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)
    assert re.fullmatch(r"add capacity to class hdd, or delete data: no placement is"
                        r" below 9\d\.\d\d%", with_room(_WAIT, BalancerStatus(), view))


def test_a_toofull_pg_goes_on_by_what_status_says(open_session: Callable[..., Session]) -> None:
    session = open_session(18)
    run(session, "equilibrium on", "sim run 2m", "sim osd full-ratios 0.4 0.45 0.97", "sim run 10m")
    assert PREFIX + "TOOFULL" in session.mgr.health_checks
    run(session, "sim osd full-ratios 0.85 0.90 0.95", "sim run 10m")
    assert PREFIX + "TOOFULL" not in session.mgr.health_checks


@pytest.mark.full
def test_osds_that_are_down_and_out_are_the_first_room_there_is(
        open_session: Callable[..., Session]) -> None:
    """Ceph marks OSDs out after ten minutes: starting them ends it still. By steering it would
    fit."""
    session = open_session()
    run(session, "config set mgr mgr/equilibrium/steer_recovery false", "equilibrium on",
        "sim run 10m", "sim host down host5", "sim run 25m")
    status = ask(session, "status")
    assert status["will_not_fit"]
    assert ("start osd.20 of host5, osd.21 of host5, osd.22 of host5, or add capacity to class hdd,"
            " or delete data") in status["action"]
    run(session, "sim host up host5", "sim run 30m")
    assert not ask(session, "status")["will_not_fit"]
