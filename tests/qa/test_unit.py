"""The unit for Ceph's suites can be loaded without teuthology; the fragment names it."""

from __future__ import annotations

import importlib
import sys
import unittest
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from equilibrium_mgr.settings import OPTIONS

QA = Path(__file__).resolve().parent
UNIT = "tasks.mgr.test_equilibrium"


def load(base: type) -> Any:
    """The unit's class, derived from a stand-in for MgrTestCase."""
    stand_in = ModuleType("mgr_test_case")
    stand_in.__dict__["MgrTestCase"] = base
    with mock.patch.dict(sys.modules, {"tasks.mgr.mgr_test_case": stand_in}), mock.patch.object(
            sys, "path", [str(QA), *sys.path]):
        return importlib.import_module(UNIT).TestEquilibrium


def test_the_fragment_runs_a_unit_that_sets_options_which_are_there() -> None:
    assert f"\n      modules:\n        - {UNIT}\n" in (
        QA / "suites/rados/mgr/tasks/4-units/equilibrium.yaml").read_text(encoding="utf-8")
    unit = load(unittest.TestCase)
    assert len(unittest.defaultTestLoader.getTestCaseNames(unit)) == 3
    assert unit.OPTIONS.keys() <= {option["name"] for option in OPTIONS}
