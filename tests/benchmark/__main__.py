"""`python3 tests/benchmark` (or `python3 -m tests.benchmark`), from any folder."""
from __future__ import annotations

import gc
import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
# the test helpers are imported as pytest does it, with tests/ itself on the path
sys.path[:0] = [str(_TESTS.parent), str(_TESTS)]

from mgr_stub.install import install  # noqa: E402

install(18)

from benchmark.cli import main  # noqa: E402

if __name__ == "__main__":
    gc.set_threshold(100_000, 50, 100)   # as in the tests
    sys.exit(main())
