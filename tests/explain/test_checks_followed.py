"""The command with which a health check ends takes the check away, in the simulator."""
from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from tests.commands.asking import health, run
from tests.explain.followed import Situation, open_cluster
from tests.explain.situations import read_situations

from equilibrium_mgr.report import health as module

CASES = read_situations(Path(__file__).with_name("checks.txt"))
_AS_STATUS = ("STATUS",)


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cure_ends_the_check(case: Situation, tmp_path: Path) -> None:
    """It stays where nobody acts."""
    code = f"MGR_EQUILIBRIUM_{case.code}"
    for acts in (False, True):
        session = open_cluster(*case.cluster, tmp_path)
        run(session, *case.setup)
        cure = health(session)[code]["detail"][-1]
        lines = case.follow
        if lines in ((), _AS_STATUS):
            lines = tuple(re.findall("'ceph ([^']+)'", cure)[:1])
        if case.follow == _AS_STATUS:
            said = " ".join(run(session, *lines).split())
            lines = tuple(re.findall("do: 'ceph ([^']+)'", said))
        assert lines, cure
        run(session, *lines if acts else (), f"sim run {case.wait}")
        assert (code in health(session)) != acts, (cure, lines, acts)
        session.close()


def test_each_check_is_followed() -> None:
    """But for ERROR, which the mgr log explains."""
    named = set(re.findall(r"MGR_EQUILIBRIUM_(\w+)", inspect.getsource(module)))
    assert named - {"ERROR"} == {case.code for case in CASES}
