"""Every health check: its summary, its details, and last what helps."""
from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any, Dict

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.record import check_record
from tests.support.units import GIB

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.execution import ExecutionProgress
from equilibrium_mgr.execution.outcomes import Rejection
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.execution.size_check import Misprediction
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.report import health
from equilibrium_mgr.settings import BadOption
from equilibrium_mgr.snapshot import reason_codes as codes

NOW = 86400.0
AN_HOUR_AGO = NOW - 3600.0
TOOFULL = "active+remapped+backfill_toofull"
RECORD = Path(__file__).with_name("health_texts.json")


def view(used: int = 50, state: str = "active+remapped+backfill_wait") -> ClusterView:
    """A PG of 10 GiB comes to osd.2, which has so many GiB of 100."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", "2 1", 10 * GIB, objects=10, acting="0 1", state=state)
    cluster.pg("1.1", "2 3", used * GIB, objects=10)
    return make_view(cluster.snapshot(), None, PendingMoves(), 0.05, False)


def waiting_for_two_osds() -> ClusterView:
    """A PG of two shards comes to osd.2 and osd.3, which are both full."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", "2 3", 10 * GIB, objects=10, acting="0 1",
               state=TOOFULL)
    cluster.pg("1.1", "2 3", 93 * GIB, objects=10)
    return make_view(cluster.snapshot(), None, PendingMoves(), 0.05, False)


def back(number: int) -> Dict[str, Rejection]:
    return {f"1.{ps:x}": Rejection("osd.3 has too many PGs", "m", NOW, withheld_by=((3, 400),))
            for ps in range(number)}


#: What is so, of the module's status and beside it; `health_texts.json` has the checks.
CASES: Dict[str, Dict[str, Any]] = {
    "the round failed": dict(failure="the round failed: KeyError('osd.7')"),
    "the round failed, and nothing is balanced": dict(
        rejected={"1.0": Rejection("refused", "m", NOW)}, builtin_active=True,
        failure="the round failed", active=False),
    "an option's value": dict(bad=[BadOption("fill_limit", "2", "at most 1; 0.98 holds")]),
    "pool ids that are gone": dict(bad=[BadOption("pool_ids", one, "gone") for one in "78"]),
    "a pool's shards took more than was predicted": dict(
        view=view(), mispredicted={1: Misprediction(1, 2, GIB, 3 * GIB, NOW)}),
    "upmaps that were refused": dict(rejected=dict.fromkeys(
        ["1.0", "1.1"], Rejection("refused", "m", NOW))),
    "an upmap that was refused, and one of an hour ago": dict(rejected={
        "1.0": Rejection("refused", "m", NOW), "1.1": Rejection("refused", "m", NOW - 3600.0)}),
    "upmaps that were withheld": dict(rejected=back(2)),
    "many PGs that are withheld": dict(rejected=back(1), withheld={
        f"1.{ps}": (f"pg 1.{ps} is inactive", f"ceph osd rm-pg-upmap-items 1.{ps}")
        for ps in range(30, 60)}),
    "the built-in balancer is on": dict(builtin_active=True),
    "the built-in balancer is on beside a plan": dict(
        builtin_active=True, progress=ExecutionProgress("p", {}), active=False),
    "an OSD is too full": dict(view=view(93, TOOFULL)),
    "an OSD would be too full": dict(view=view(88, TOOFULL)),
    "two OSDs are too full": dict(view=waiting_for_two_osds()),
    "what comes does not fit": dict(view=view(86)),
    "what comes does not fit, and what helps is known": dict(view=view(86), cure="add OSDs"),
    "an OSD does not report": dict(view=view(), silent_osds=frozenset([2])),
    "an OSD does not report, nor does one that is down": dict(
        view=view(), silent_osds=frozenset([2, 7])),
    "two OSDs do not report": dict(view=view(), silent_osds=frozenset([2, 3])),
    "no OSD reports": dict(view=view(), silent_osds=frozenset(range(4))),
    "nothing can be moved": dict(
        reason="osd.1 is far", reason_code=codes.FILL_LIMIT, stuck_since=AN_HOUR_AGO),
    "shards cannot leave": dict(
        reason="no place", reason_code=codes.CANNOT_LEAVE, stuck_since=AN_HOUR_AGO,
        cure=codes.NOTHING)}


def checks_of(active: bool = True, **known: Any) -> Any:
    fields = {name: known.pop(name) for name in BalancerStatus._fields if name in known}
    return health.health_checks(BalancerStatus(**fields), NOW, active, **known)


@pytest.mark.parametrize("name", CASES)
def test_texts(name: str, request: pytest.FixtureRequest) -> None:
    check_record(RECORD, name, checks_of(**CASES[name]), request.config)


def test_all_checks_are_recorded() -> None:
    text = RECORD.read_text()
    for code in re.findall(r"MGR_EQUILIBRIUM_\w+", inspect.getsource(health)):
        assert f'"{code}"' in text
