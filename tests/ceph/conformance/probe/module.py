"""Test-only mgr module: what the API of a real mgr gives, and how it is shaped."""
import json
from typing import Any, Tuple

import mgr_module
from mgr_module import MgrModule

ProbeCLI: Any
if hasattr(mgr_module, "CLICommandBase"):
    ProbeCLI = mgr_module.CLICommandBase.make_registry_subtype("ProbeCLI")
else:  # up to Ceph 19
    ProbeCLI = mgr_module.CLICommand


class Module(MgrModule):
    """Answers with what it reads."""

    CLICommand = ProbeCLI

    @ProbeCLI("probe status")
    def _cmd_status(self) -> Tuple[int, str, str]:
        """Whether it is there"""
        return 0, "here", ""

    @ProbeCLI("probe view")
    def _cmd_view(self) -> Tuple[int, str, str]:
        """Placement and counts of every PG"""
        from .view import view_of
        return 0, json.dumps(view_of(self)), ""

    @ProbeCLI("probe shapes")
    def _cmd_shapes(self) -> Tuple[int, str, str]:
        """Types and keys of what get() gives"""
        from .shapes import shape_of
        from .view import NAMES
        return 0, json.dumps({name: sorted(shape_of(self.get(name))) for name in NAMES}), ""

    @ProbeCLI("probe get")
    def _cmd_get(self, name: str) -> Tuple[int, str, str]:
        """One structure as JSON"""
        return 0, json.dumps(self.get(name), default=str), ""

    def serve(self) -> None:
        """Nothing goes on by itself."""

    def shutdown(self) -> None:
        """Nothing to end."""
