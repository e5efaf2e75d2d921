"""A plan that one event has come in between: the cluster before, and what is wanted after it."""
from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, List, NamedTuple

from mgr_stub.console.session import Session
from tests.support.replay import first_part

from equilibrium_mgr.plan.model import PgChange, Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.planner.replanning import FormerPlan, plan_result
from equilibrium_mgr.snapshot.model import Osd, Snapshot

#: The part of a plan's bytes that has been sent when the event comes.
SENT = 0.3

#: Virtual seconds in which the PGs report what has become of them.
_SECONDS = 60.0

#: By how much the largest pool grows.
_GROWTH = 0.06


class PlanUnderWay(NamedTuple):
    """`before` is what `plan` was made from, `after` what the event has left."""

    before: Snapshot
    plan: Plan
    wanted: List[PgChange]    # of the plan, not sent yet
    after: Snapshot

    def former(self, options: PlanOptions = PlanOptions()) -> FormerPlan:
        """What a plan after the event starts from."""
        return FormerPlan(tuple(self.wanted), plan_result(self.before, options, self.plan))


def under_way(session: Session, event: str, options: PlanOptions = PlanOptions()) -> PlanUnderWay:
    """Plans the session's cluster, sends the first part, and lets one of EVENTS happen."""
    before: Snapshot = session.module.gateway.snapshot()
    plan = make_plan(before, options)
    sent = first_part(plan, SENT)
    for change in sent:
        run(session, change.command())
    session.host.run_for(_SECONDS)
    line = EVENTS[event](before)
    if line:
        run(session, line)
        session.host.run_for(_SECONDS)
    after: Snapshot = session.module.gateway.snapshot()
    return PlanUnderWay(before, plan, list(plan.changes[len(sent):]), after)


def run(session: Session, line: str) -> None:
    """One command line, which must succeed."""
    code, _, message = session.command(line)
    assert code == 0, f"'{line}' failed: {message}"


def _members(snapshot: Snapshot) -> List[Osd]:
    """The usable OSDs of the class with most OSDs, the emptiest first."""
    usable = [osd for osd in snapshot.osds.values() if osd.unusable_reason() is None]
    classes = Counter(osd.device_class for osd in usable)
    name = min(classes, key=lambda one: (-classes[one], one))
    return sorted((osd for osd in usable if osd.device_class == name and osd.used_bytes),
                  key=lambda osd: (osd.target_utilization or 0.0, osd.id))


def _osd_out(snapshot: Snapshot) -> str:
    members = _members(snapshot)
    return f"sim osd out {members[len(members) // 2].id}"


def _host_added(snapshot: Snapshot) -> str:
    members = _members(snapshot)
    counts = sorted(Counter(osd.host for osd in members).values())
    sizes = sorted(osd.size_bytes for osd in members)
    return (f"sim host add added {counts[len(counts) // 2]} {sizes[len(sizes) // 2] >> 30}G"
            f" class={members[0].device_class}")


def _pool_grown(snapshot: Snapshot) -> str:
    pool = max(snapshot.pools.values(), key=lambda p: p.stored_bytes * p.size / p.data_shards)
    return f"sim write {pool.name} {int(_GROWTH * pool.stored_bytes) >> 20}M"


#: Name → the command of the simulation for it, none where nothing happens.
EVENTS: Dict[str, Callable[[Snapshot], str]] = {
    "nothing": lambda _snapshot: "", "OSD out": _osd_out, "host added": _host_added,
    "pool grown": _pool_grown}
