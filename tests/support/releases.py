"""The releases of Ceph that tests of the whole module run on."""
from __future__ import annotations

import pytest

#: For `parametrize` and `params`. By default the one that most tests run on: for Ceph 20 the
#: package is imported again by each test.
RELEASES = [pytest.param(16, marks=pytest.mark.full), 18, pytest.param(20, marks=pytest.mark.full)]
