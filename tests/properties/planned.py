"""One random cluster with its plan, and what follows from it: made once, shared by all tests."""
from __future__ import annotations

import random
from functools import cached_property
from typing import List, NamedTuple
from unittest import mock

from builders import Cluster
from legality import ended_plan
from plan_clusters import plan_cluster
from replay import follow_up

from equilibrium_mgr.planner import attempts
from equilibrium_mgr.planner.board import Board
from equilibrium_mgr.planner.options import PlanOptions
from equilibrium_mgr.planner.plan import Plan
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
        return random.Random("%s %d" % (what, self.seed))

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
    boards: List[Board] = []

    class Noted(Board):
        def __init__(self, *args: object) -> None:
            super().__init__(*args)  # type: ignore[arg-type]
            boards.append(self)
    with mock.patch.object(attempts, "Board", Noted):
        plan = ended_plan(snapshot, options)
    return Effort(plan, sum(board.examined for board in boards))
