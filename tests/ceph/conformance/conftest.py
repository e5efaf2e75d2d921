"""Which releases the simulator is held against."""

from __future__ import annotations

import pytest

MAJORS = (16, 20)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "major" in metafunc.fixturenames:
        wanted = str(metafunc.config.getoption("--ceph") or "").split(",")
        metafunc.parametrize("major", [major for major in MAJORS if str(major) in wanted])
