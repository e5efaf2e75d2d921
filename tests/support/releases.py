"""The releases of Ceph that tests of the whole module run on."""
from __future__ import annotations

import pytest

#: For `parametrize` and `params`: the newest by default, with `--full` the older ones as well.
RELEASES = [pytest.param(16, marks=pytest.mark.full), pytest.param(18, marks=pytest.mark.full), 20]
