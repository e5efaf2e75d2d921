"""What steering leaves alone."""

from __future__ import annotations

from typing import Tuple

from .mutation import Edit, Mutation

PLANNED = "equilibrium_mgr/planner/steering.py"
UNIT = "planner/test_steering.py"

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "steers-what-has-begun",
        "a shard that has begun to arrive gets no other target",
        (Edit(PLANNED,
              "        keeps_targets = has_begun(self._pg)\n",
              "        keeps_targets = False\n"),),
        UNIT),
    Mutation(
        "holds-what-has-nearly-arrived",
        "a shard that has nearly arrived is not held where it was",
        (Edit(PLANNED,
              "    if least_uncopied(pg) < _HELD_RATIO:\n",
              "    if False:\n"),),
        UNIT),
    Mutation(
        "steers-off-what-is-back",
        "what comes to an OSD that has come back is left to Ceph",
        (Edit(PLANNED,
              "    if not steering.returned.isdisjoint(coming):\n",
              "    if False:\n"),),
        UNIT),
    Mutation(
        "steers-what-others-move",
        "a PG that moved before the change goes on",
        (Edit(PLANNED,
              "    if pg.pgid not in steering.at_rest and not only_lacks_copies(pg, pool):\n",
              "    if False:\n"),),
        UNIT),
    Mutation(
        "steers-pgs-in-trouble",
        "PGs that are recovered by log, or whose copies differ, are left to Ceph",
        (Edit(PLANNED,
              "    if ACTIVE not in pg.state or has_any(pg.state, UNSTEERABLE):\n",
              "    if False:\n"),),
        UNIT),
    Mutation(
        "warns-of-what-steering-avoids",
        "what comes by CRUSH alone is no trouble while other targets are about to be chosen",
        (Edit("equilibrium_mgr/control/status.py",
              "        if self.steering_at is not None:\n",
              "        if False:\n"),),
        "scenarios/test_steering_scope.py"),
    Mutation(
        "forgets-what-the-last-mgr-steered",
        "a new mgr knows whose targets the last one chose",
        (Edit("equilibrium_mgr/control/journal.py",
              "            sent.steered[pgid] = at\n",
              "            pass\n"),),
        "scenarios/test_failover_forgets_nothing.py"))
