"""The same snapshot and options give the same plan, in any process and whatever the order."""
from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster, snapshot_of
from tests.support.clusters.random_clusters import random_cluster, shuffled
from tests.support.few import few

from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.plan.options import AIMS, PlanOptions
from equilibrium_mgr.planner.planner import make_plan
from equilibrium_mgr.snapshot.model import Snapshot

_REPOSITORY = Path(__file__).resolve().parents[2]
_NAMES = ["random", "demo", "hybrid", "racks", "many-pools"]

#: Run in another process; prints a plan's fingerprint per cluster.
_SCRIPT = """
import sys
import tests.conftest
from tests.planner import test_determinism
for name in sys.argv[1:]:
    print(test_determinism.fingerprint(test_determinism.plan_of_cluster(name)))
"""


def fingerprint(plan: Plan) -> str:
    return hashlib.sha256(json.dumps(plan.to_dict()).encode()).hexdigest()


def mixed(mapping: Dict[Any, Any], rng: random.Random) -> Dict[Any, Any]:
    keys = list(mapping)
    rng.shuffle(keys)
    return {key: mapping[key] for key in keys}


def disordered(snapshot: Snapshot, seed: int) -> Snapshot:
    """The same snapshot with all its dictionaries in another order."""
    rng = random.Random(seed)
    fields = ("osds", "pools", "pgs", "upmap_items", "pool_states", "skipped")
    changed: Dict[str, Any] = {field: mixed(dict(getattr(snapshot, field)), rng)
                               for field in fields}
    return snapshot._replace(**changed)


@pytest.mark.parametrize("seed", few(range(2), 1))
@pytest.mark.parametrize("name", few(_NAMES, 1))
def test_order_of_the_snapshots_dictionaries_does_not_matter(name: str, seed: int) -> None:
    plan = make_plan(disordered(snapshot_of(name), seed))
    assert plan.moves and plan.to_dict() == plan_of_cluster(name).to_dict()
    assert fingerprint(plan) == fingerprint(plan_of_cluster(name))


@pytest.mark.parametrize("seed", few(range(6), 1))
def test_order_of_the_readings_dictionaries_does_not_matter(seed: int) -> None:
    """CRUSH buckets, rules and devices come in another order, too."""
    plain = make_plan(random_cluster(seed, hybrid=True).snapshot())
    other = make_plan(shuffled(random_cluster(seed, hybrid=True), seed).snapshot())
    assert plain.moves and other.to_dict() == plain.to_dict()


@pytest.mark.parametrize("names, hash_seed", [
    (_NAMES[:1], "1"),
    *(pytest.param(_NAMES, seed, marks=pytest.mark.full) for seed in ("1", "4711"))])
def test_another_process_makes_the_same_plan(names: List[str], hash_seed: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _SCRIPT] + names, check=True, capture_output=True,
        text=True, cwd=_REPOSITORY, env=dict(os.environ, PYTHONHASHSEED=hash_seed)).stdout.split()
    assert told == [fingerprint(plan_of_cluster(name)) for name in names]


@pytest.mark.parametrize("aim", AIMS)
def test_planning_leaves_the_snapshot_as_it_was(aim: str) -> None:
    snapshot = random_cluster(2, hybrid=True).snapshot()
    untouched = repr((snapshot.osds, snapshot.pgs, snapshot.upmap_items, snapshot.skipped))
    first = make_plan(snapshot, PlanOptions(aim=aim))
    assert repr((snapshot.osds, snapshot.pgs, snapshot.upmap_items,
                 snapshot.skipped)) == untouched
    assert make_plan(snapshot, PlanOptions(aim=aim)).to_dict() == first.to_dict()
