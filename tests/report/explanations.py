"""Explanations of clusters made by hand, for tests."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.fakes import Harness
from tests.support.units import GIB

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.outcomes import ExcludedPgs
from equilibrium_mgr.plan.model import Usage
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.report.answer import CommandAnswer
from equilibrium_mgr.report.explain.context import ExplainContext
from equilibrium_mgr.report.explain.explain import explain
from equilibrium_mgr.snapshot import reason_codes as codes
from equilibrium_mgr.snapshot.model import Snapshot
from equilibrium_mgr.what_if.change import with_pg_num


RACK_RULE = "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit"


def giant() -> Cluster:
    """Three hosts of 100 GiB, one of 900; two copies of 60 GiB, 50 of them on osd.0."""
    cluster = Cluster(hosts(4)).osd(3, size=900 * GIB).pool(1, size=2, name="rbd")
    for ps in range(60):
        cluster.pg(f"1.{ps:x}", "0 3" if ps < 50 else [1, 3], GIB)
    return cluster


def says(plain: str, *sentences: str) -> bool:
    """Whether a text that is wrapped has all of the sentences."""
    words = " ".join(plain.split())
    return all(" ".join(sentence.split()) in words for sentence in sentences)


def planned(snapshot: Snapshot, options: PlanOptions, pool: int, pg_num: int) -> Usage:
    """What a plan with another pg_num comes to, at once."""
    return make_plan(with_pg_num(snapshot, pool, pg_num), options).after


def explained(harness: Harness, what: Optional[str] = "",
              status: Optional[BalancerStatus] = None) -> Optional[CommandAnswer]:
    """The answer of the command; None where nothing has that name."""
    status = status or harness.balancer.status
    assert status.view is not None
    excluded = ExcludedPgs(dict.fromkeys(status.rejected, codes.REJECTED),
                           dict.fromkeys(status.rejected, 60.0))
    context = ExplainContext(status.view, status, harness.settings(), excluded, now=harness.now,
                             plan_pg_num=planned)
    return explain(what or None, what, context, 3.0)


def looked_at(cluster: Cluster, **options: Any) -> Harness:
    harness = Harness(cluster, **options)
    harness.look()
    return harness


def answer_of(harness: Harness, what: str = "") -> CommandAnswer:
    answer = explained(harness, what)
    assert answer is not None
    data = json.loads(json.dumps(answer.data))
    assert says(answer.plain, *data["sentences"], data["what"], data["action"])
    assert max(map(len, answer.plain.split("\n"))) <= 80
    assert data["osdmap_epoch"] == 100
    assert data["snapshot_age_seconds"] == 3.0
    return answer


def facts(cluster: Cluster, what: str = "", **options: Any) -> Dict[str, Any]:
    data: Dict[str, Any] = answer_of(looked_at(cluster, **options), what).data
    return data


def said(cluster: Cluster, what: str = "", **options: Any) -> List[str]:
    sentences: List[str] = facts(cluster, what, **options)["sentences"]
    return sentences

