"""The same snapshot and options give the same plan, in any process and whatever the order."""
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List

import pytest
from tests.support.clusters.made_clusters import plan_of_cluster

from equilibrium_mgr.plan.model import Plan

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


@pytest.mark.parametrize("names, hash_seed", [
    (_NAMES[:1], "1"),
    *(pytest.param(_NAMES, seed, marks=pytest.mark.full) for seed in ("1", "4711"))])
def test_another_process_makes_the_same_plan(names: List[str], hash_seed: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", _SCRIPT] + names, check=True, capture_output=True,
        text=True, cwd=_REPOSITORY, env=dict(os.environ, PYTHONHASHSEED=hash_seed)).stdout.split()
    assert told == [fingerprint(plan_of_cluster(name)) for name in names]
