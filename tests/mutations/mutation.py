"""What a mutation is: it removes one rule of safety. `old` stands exactly once in its file.

A rule that is enforced in two independent places is removed from both, and is called `…-anywhere`:
one of the places alone keeps what is sent right.
"""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

TRAFFIC = "equilibrium_mgr/execution/traffic.py"
PG_NUM_STEPS = "equilibrium_mgr/execution/pg_num_steps.py"
ROUND_STATE = "equilibrium_mgr/execution/round_state.py"
CHECKS = "equilibrium_mgr/execution/checks.py"
BATCH = "equilibrium_mgr/execution/batch.py"
GUARDS = "equilibrium_mgr/execution/guards.py"
CLUSTER_GUARDS = "equilibrium_mgr/control/cluster_guards.py"
COOLDOWN = "equilibrium_mgr/execution/outcomes.py"
DISPATCHER = "equilibrium_mgr/execution/dispatcher.py"
BALANCER = "equilibrium_mgr/control/balancer.py"
PENDING_MOVES = "equilibrium_mgr/execution/pending_moves.py"
SNAPSHOT_BUILDER = "equilibrium_mgr/snapshot/builder.py"
SNAPSHOT_MODEL = "equilibrium_mgr/snapshot/model.py"
POOLS = "equilibrium_mgr/snapshot/pools.py"
PG_CHECKS = "equilibrium_mgr/snapshot/builder.py"
PLACEMENT = "equilibrium_mgr/crush/placement.py"
MSR = "equilibrium_mgr/crush/msr.py"
RULE_REPAIR = "equilibrium_mgr/planner/rule_repair.py"
UNDO_COMMANDS = "equilibrium_mgr/commands/undo_commands.py"
EXECUTION_SLOT = "equilibrium_mgr/execution/execution.py"
JOURNAL = "equilibrium_mgr/control/journal.py"
GATEWAY = "equilibrium_mgr/gateway/gateway.py"
TOO_FULL = "equilibrium_mgr/observation/cluster_view.py"
PLACEMENT_STATE = "equilibrium_mgr/planner/state/placement_state.py"
UPMAP_CHECK = "equilibrium_mgr/crush/upmap_check.py"
IN_FLIGHT = "equilibrium_mgr/snapshot/in_flight.py"
OPTIONS = "equilibrium_mgr/plan/options.py"
OBSERVER = "equilibrium_mgr/observation/observer.py"
EXECUTION = "equilibrium_mgr/execution/execution.py"
SIZE_MODEL = "equilibrium_mgr/snapshot/sizes/size_model.py"
OSD_FACTORS = "equilibrium_mgr/snapshot/sizes/osd_factors.py"
SNAPSHOT_MODEL = "equilibrium_mgr/snapshot/model.py"
DRAIN_STATUS = "equilibrium_mgr/drain/status.py"
KINDS = "equilibrium_mgr/plan/model.py"
UNDO_PLAN = "equilibrium_mgr/undo/undo_plan.py"
CURRENT_VIEW = "equilibrium_mgr/commands/base.py"
AUTO_PLANNER = "equilibrium_mgr/control/auto_planner.py"


class Edit(NamedTuple):
    """One place."""

    file: str
    old: str
    new: str


class Mutation(NamedTuple):
    """One rule removed."""

    name: str
    rule: str     # of safety, in a few words
    edits: Tuple[Edit, ...]
    likely: str   # arguments of pytest for the first runs, see `runs`


def runs(mutation: Mutation) -> List[List[str]]:
    """Returns the arguments of pytest for each run that is likely to notice."""
    return [[_told(word) for word in run.split()] for run in mutation.likely.split("; ")]


def _told(word: str) -> str:
    """`scenario:` and its name, a path below tests/, or an argument of pytest's."""
    if word.startswith(_SCENARIO):
        return _FILE % word[len(_SCENARIO):]
    is_path = "/" in word and not word.startswith("-")
    return "tests/" + word if is_path else word


_SCENARIO = "scenario:"
_FILE = "tests/scenarios/test_scenarios.py::test_scenario[%s]"
