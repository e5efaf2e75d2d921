"""`python3 -m tests.benchmark`, from the top of the repository."""
from __future__ import annotations

import sys

from mgr_stub.frozen import collect_less_often  # noqa: E402
from mgr_stub.mgr.install import install  # noqa: E402

install(18)

from tests.benchmark.cli import main  # noqa: E402

if __name__ == "__main__":
    collect_less_often()
    sys.exit(main())
