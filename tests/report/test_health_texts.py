"""Every health check: its summary, its details, and last what helps."""
from __future__ import annotations

import inspect
import re
from typing import Any, Dict, List, Mapping, Tuple

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
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
LASTING = {"stuck_since": NOW - 3600.0}
RAISE = ("raise osd_max_pg_per_osd_hard_ratio by 'ceph config set global"
         " osd_max_pg_per_osd_hard_ratio NUMBER', and leave osd.3 no lower value of it or of"
         " mon_max_pg_per_osd ('ceph config show osd.3'), or add OSDs")


def view(used: int = 50, state: str = "active+remapped+backfill_wait") -> ClusterView:
    """A PG of 10 GiB comes to osd.2, which has so many GiB of 100."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", [2, 1], 10 * GIB, objects=10, acting=[0, 1], state=state)
    cluster.pg("1.1", [2, 3], used * GIB, objects=10)
    return make_view(cluster.snapshot(), None, PendingMoves(), 0.05, False)


def waiting_for_two_osds() -> ClusterView:
    """A PG of two shards comes to osd.2 and osd.3, which are both full."""
    cluster = Cluster(hosts(4)).pool(1, size=2)
    cluster.pg("1.0", [2, 3], 10 * GIB, objects=10, acting=[0, 1],
               state="active+remapped+backfill_toofull")
    cluster.pg("1.1", [2, 3], 93 * GIB, objects=10)
    return make_view(cluster.snapshot(), None, PendingMoves(), 0.05, False)


def status(**known: Any) -> BalancerStatus:
    return BalancerStatus(**known)


def back(number: int) -> Dict[str, Rejection]:
    return {f"1.{ps:x}": Rejection("osd.3 has too many PGs", "m", NOW, withheld_by=((3, 400),))
            for ps in range(number)}


#: Code, what is so, the check's count, summary and lines of detail.
TABLE: List[Tuple[str, BalancerStatus, Mapping[str, Any], int, str, List[str]]] = [
    ("ERROR", status(), {"failure": "the round failed: KeyError('osd.7')"}, 1,
     "equilibrium failed and will try again", [
         "the round failed: KeyError('osd.7')",
         "nothing, unless it lasts: the mgr log has more, 'ceph mgr fail' starts afresh"]),
    ("ERROR", status(rejected={"1.0": Rejection("refused", "m", NOW)}, builtin_active=True),
     {"failure": "the round failed", "active": False}, 1,   # the others are for balancing
     "equilibrium failed and will try again", [
         "the round failed",
         "nothing, unless it lasts: the mgr log has more, 'ceph mgr fail' starts afresh"]),
    ("BAD_OPTION", status(), {"bad": [BadOption("fill_limit", "2", "at most 1; 0.98 holds")]}, 1,
     "1 value of equilibrium's options cannot be used", [
         "fill_limit is '2': at most 1; 0.98 holds",
         "run 'ceph config set mgr mgr/equilibrium/fill_limit VALUE' with a value that fits, or"
         " 'ceph config rm mgr mgr/equilibrium/fill_limit' for the default"]),
    ("BAD_OPTION", status(), {"bad": [BadOption("pool_ids", one, "gone") for one in "78"]}, 2,
     "2 values of equilibrium's options cannot be used", [
         "pool_ids is '7': gone", "pool_ids is '8': gone",
         "run 'ceph equilibrium pool rm 7 8'"]),
    ("MISPREDICTED", status(view=view(), mispredicted={
        1: Misprediction(1, 2, GIB, 3 * GIB, NOW)}), {}, 1,
     "shards of 1 pool took more than was predicted; few of them are moved now, or none", [
         "pool 'pool1' took 3 GiB on osd.2 where 1 GiB were predicted; a few of its shards go"
         " again from 1970-01-02 01:00 UTC, with the measured size",
         "'ceph equilibrium on' moves it again at once, by what was measured"]),
    ("APPLY_FAILED", status(rejected={
        "1.0": Rejection("refused", "m", NOW), "1.1": Rejection("refused", "m", NOW)}), {}, 2,
     "2 upmaps not kept by the monitor", [
         "2 upmaps: refused (pg 1.0, 1.1)", "'ceph equilibrium on' tries them again at once"]),
    ("APPLY_FAILED", status(rejected={
        "1.0": Rejection("refused", "m", NOW), "1.1": Rejection("refused", "m", NOW - 3600.0)}), {},
     1, "1 upmap not kept by the monitor", [   # the other is an hour old
         "1 upmap: refused (pg 1.0)", "'ceph equilibrium on' tries them again at once"]),
    ("WITHHELD", status(rejected=back(2)), {}, 2,
     "2 upmaps withheld by OSDs that have too many PGs, and taken back", [
         "2 upmaps: osd.3 has too many PGs (pg 1.0, 1.1)", RAISE]),
    ("WITHHELD", status(rejected=back(1), withheld={
        f"1.{ps}": (f"pg 1.{ps} is inactive", f"ceph osd rm-pg-upmap-items 1.{ps}")
        for ps in range(30, 60)}), {}, 31,
     "30 PGs inactive, withheld by OSDs that have too many PGs", [
         *[f"pg 1.{ps} is inactive" for ps in range(30, 49)],   # all commands, to be pasted
         RAISE, "run:", *[f"  ceph osd rm-pg-upmap-items 1.{ps}" for ps in range(30, 60)]]),
    ("CONFLICT", status(builtin_active=True), {}, 1,
     "the built-in balancer and equilibrium are both active", [
         "equilibrium sends nothing meanwhile", "run 'ceph balancer off'"]),
    ("CONFLICT", status(builtin_active=True, progress=ExecutionProgress("p", {})),
     {"active": False}, 1, "the built-in balancer and equilibrium are both active", [
         "equilibrium sends nothing meanwhile", "run 'ceph balancer off'"]),
    ("TOOFULL", status(view=view(93, "active+remapped+backfill_toofull")), {}, 1,
     "1 PG cannot move because an OSD is too full", [
         "pg 1.0 in backfill_toofull: osd.2 is too full, at 93.00% with backfillfull_ratio 90.00%",
         "'ceph equilibrium status' shows which moves wait, and what helps"]),
    ("TOOFULL", status(view=view(88, "active+remapped+backfill_toofull")), {}, 1,
     "1 PG cannot move because an OSD is too full", [
         "pg 1.0 in backfill_toofull: osd.2 with what comes would be too full, at 88.00% with"
         " backfillfull_ratio 90.00%",
         "'ceph equilibrium status' shows which moves wait, and what helps"]),
    ("TOOFULL", status(view=waiting_for_two_osds()), {}, 1,
     "1 PG cannot move because an OSD is too full", [
         "pg 1.0 in backfill_toofull: osd.2 is too full, at 93.00% with backfillfull_ratio 90.00%",
         "pg 1.0 in backfill_toofull: osd.3 is too full, at 93.00% with backfillfull_ratio 90.00%",
         "'ceph equilibrium status' shows which moves wait, and what helps"]),
    ("WILL_NOT_FIT", status(view=view(86)), {}, 1, "1 OSD will be too full with what comes", [
        "what comes will not fit: osd.2 (96.00%) will be above full_ratio 95.00%",
        "'ceph equilibrium status' tells what makes room"]),
    ("WILL_NOT_FIT", status(view=view(86)), {"cure": "add OSDs"}, 1,
     "1 OSD will be too full with what comes", [
         "what comes will not fit: osd.2 (96.00%) will be above full_ratio 95.00%", "add OSDs"]),
    ("STALE_STATS", status(view=view()), {"silent_osds": frozenset([2])}, 1,
     "statistics of 1 OSD are older than 5m00s", [
         "up and in, but silent: osd.2",
         "restart osd.2, or 'ceph mgr fail' where many OSDs do not report"]),
    ("STALE_STATS", status(view=view()), {"silent_osds": frozenset([2, 7])}, 1,   # no osd.7 is up
     "statistics of 1 OSD are older than 5m00s", [
         "up and in, but silent: osd.2",
         "restart osd.2, or 'ceph mgr fail' where many OSDs do not report"]),
    ("STALE_STATS", status(view=view()), {"silent_osds": frozenset([2, 3])}, 2,
     "statistics of 2 OSDs are older than 5m00s", [
         "up and in, but silent: osd.2, osd.3",
         "'ceph mgr fail' where OSDs do not report again by themselves"]),
    ("STALE_STATS", status(view=view()), {"silent_osds": frozenset(range(4))}, 4,
     "statistics of 4 OSDs are older than 5m00s", [
         "up and in, but silent: osd.0, osd.1, osd.2, osd.3",
         "'ceph mgr fail' where OSDs do not report again by themselves"]),
    ("STUCK", status(reason="osd.1 is far", reason_code=codes.FILL_LIMIT), LASTING, 1,
     "the placement has been far from its bound for 1h00m or longer, and nothing can be moved", [
         "osd.1 is far", "'ceph config set mgr mgr/equilibrium/fill_limit 0' where it is set"
         " lower, else add capacity or delete data"]),
    ("STUCK", status(reason="no place", reason_code=codes.CANNOT_LEAVE),
     {**LASTING, "cure": codes.NOTHING}, 1, "shards cannot leave OSDs that are being drained", [
         "no place", "'ceph equilibrium explain' tells why"]),
]


@pytest.mark.parametrize("code, found, more, count, summary, detail", TABLE)
def test_texts(code: str, found: BalancerStatus, more: Mapping[str, Any], count: int,
               summary: str, detail: List[str]) -> None:
    given: Dict[str, Any] = {"active": True, **more}
    checks = health.health_checks(found, NOW, **given)
    assert checks.pop(f"MGR_EQUILIBRIUM_{code}") == {
        "severity": "warning", "summary": summary, "count": count, "detail": detail}
    assert set(checks) <= {"MGR_EQUILIBRIUM_WILL_NOT_FIT"}


def test_the_table_has_all_checks() -> None:
    named = set(re.findall(r"MGR_EQUILIBRIUM_(\w+)", inspect.getsource(health)))
    assert named == {row[0] for row in TABLE}
