"""The module in an mgr whose Python is too old to run it: it reports that and does nothing.

Written for Python 3.6, as `__init__.py` is.
"""
import sys
from typing import Any, List, Tuple

from mgr_module import MgrModule

_SENTENCE = ("equilibrium needs Python 3.9 or newer and this ceph-mgr has {}.{}; the official"
             " containers have it from Ceph 18 on")


class Module(MgrModule):
    """`ceph mgr module enable` refuses a module that cannot run, and shows the reason."""

    COMMANDS: List[Any] = []
    MODULE_OPTIONS: List[Any] = []
    NOTIFY_TYPES: List[Any] = []

    @staticmethod
    def can_run() -> Tuple[bool, str]:
        """Returns False and a sentence, which ceph-mgr shows in `mgr module ls` and in the
        health."""
        return False, _SENTENCE.format(*sys.version_info[:2])
