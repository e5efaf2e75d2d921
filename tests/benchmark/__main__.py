"""`python3 tests/benchmark` (or `python3 -m tests.benchmark`), from any folder."""
from __future__ import annotations

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
# the test helpers are imported as pytest does it, with tests/ itself on the path
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

from mgr_stub.garbage import search_seldom  # noqa: E402
from mgr_stub.install import install  # noqa: E402

install(18)

from benchmark.cli import main  # noqa: E402

if __name__ == "__main__":
    search_seldom()
    sys.exit(main())
