"""Collects the oracle tests only where they are asked for: they need crushtool and osdmaptool.

EQUILIBRIUM_ORACLE=1 asks for them; without the tools they then fail, they are not skipped.
EQUILIBRIUM_ORACLE_SEEDS=N makes N clusters of each shape and variant (default 1).
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, Counter as CounterType, Dict, List

import pytest

from .ceph_tools import missing_tools, version
from .maps.shapes import SHAPES
from .maps.cluster import MappedCluster, build
from .maps.cluster_spec import VARIANTS, make_spec
from .maps.random_moves import with_prior_items

WANTED = os.environ.get("EQUILIBRIUM_ORACLE", "") not in ("", "0")
SEEDS = int(os.environ.get("EQUILIBRIUM_ORACLE_SEEDS", "1"))

collect_ignore_glob: List[str] = [] if WANTED else ["test_*.py", "*/test_*.py"]

_tally: CounterType[str] = Counter()


@pytest.fixture(scope="session", autouse=True)
def ceph_tools_present() -> None:
    """Fails every test where the real tools are missing."""
    missing = missing_tools()
    if missing:
        pytest.fail(f"the oracle tests were asked for, but {' and '.join(missing)} is not on the"
                    " PATH", pytrace=False)


@pytest.fixture(scope="session")
def tally() -> CounterType[str]:
    """What has been checked, counted under a word each."""
    return _tally


def pytest_generate_tests(metafunc: Any) -> None:
    """Every test that takes `cluster` runs on every shape, variant and seed."""
    if "cluster" in metafunc.fixturenames:
        cases = list(product(SHAPES, VARIANTS, range(SEEDS)))
        metafunc.parametrize("cluster", cases, indirect=True, scope="session",
                             ids=[f"{a}-{b}-{number}" for a, b, number in cases])


@pytest.fixture(scope="session")
def cluster(request: Any, tmp_path_factory: Any, ceph_tools_present: None) -> MappedCluster:
    """A made cluster, with the upmap items that its variant asks for."""
    shape, variant, seed = request.param
    spec = make_spec(shape, SHAPES[shape], variant, seed)
    folder: Path = tmp_path_factory.mktemp(spec.name)
    made = with_prior_items(build(spec, folder))
    _tally.update({"clusters": 1, "PGs": len(made.pgs), "prior upmap entries": len(made.items)})
    return made


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says how much was checked, so that an empty run cannot pass for a good one."""
    if WANTED and _tally:
        counts: Dict[str, int] = dict(_tally)
        terminalreporter.section(f"oracle: osdmaptool {version()}")
        terminalreporter.line(", ".join(f"{name}: {count}" for name, count in counts.items()))
