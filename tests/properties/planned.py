"""One random cluster with its plan, and what follows from it: made once, shared by all tests."""
from __future__ import annotations

import random
from functools import cached_property
from typing import List, NamedTuple
from unittest import mock

from tests.properties.plan_clusters import plan_cluster
from tests.support.clusters.unit_cluster import Cluster
from tests.support.plan_legality import ended_plan
from tests.support.replay import follow_up

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner import planner
from equilibrium_mgr.planner.state.placement_state import PlacementState
from equilibrium_mgr.snapshot.model import Snapshot

_AIMS = ("space",) * 5 + ("even",) * 2 + ("least-motion",) * 3


class Effort(NamedTuple):
    """A plan and how many candidates were looked at for it, all searches together."""

    plan: Plan
    examined: int


class Planned:
    """The cluster of a seed. All parts are made when they are first asked for."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.options = PlanOptions(aim=random.Random(seed).choice(_AIMS))

    def rng(self, what: str) -> random.Random:
        """Chance for one property, whichever others are tested."""
        return random.Random(f"{what} {self.seed}")

    @cached_property
    def cluster(self) -> Cluster:
        """Do not change it: `another_cluster` is for that."""
        return plan_cluster(self.seed)

    def another_cluster(self) -> Cluster:
        return plan_cluster(self.seed)

    @cached_property
    def snapshot(self) -> Snapshot:
        return self.cluster.snapshot()

    @cached_property
    def effort(self) -> Effort:
        return planned_with_effort(self.snapshot, self.options)

    @property
    def plan(self) -> Plan:
        return self.effort.plan

    @cached_property
    def later(self) -> Snapshot:
        """The cluster once the plan is carried out."""
        return follow_up(self.snapshot, self.plan.changes)

    @cached_property
    def again(self) -> Plan:
        """What is planned then."""
        return ended_plan(self.later, self.options)


def planned_with_effort(snapshot: Snapshot, options: PlanOptions) -> Effort:
    placements: List[PlacementState] = []

    class Noted(PlacementState):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            placements.append(self)
    with mock.patch.object(planner, "PlacementState", Noted):
        plan = ended_plan(snapshot, options)
    return Effort(plan, sum(placement.candidates_examined for placement in placements))
