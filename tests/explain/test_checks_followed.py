"""The command with which a health check ends takes the check away, in the simulator."""
from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Dict, NamedTuple, Tuple

import pytest
from tests.commands.asking import health, run
from tests.explain.followed import OPTION, open_cluster

from equilibrium_mgr.report import health as module

_TOO_FULL = ("sim osd full-ratios 0.75 0.8 0.95", "sim osd out 9", "equilibrium on", "sim run 30m")
_AS_STATUS = ("what `status` says, which the check names",)


class Case(NamedTuple):
    """How a check comes about, and for how long its cure takes."""

    setup: Tuple[str, ...]
    wait: str
    follow: Tuple[str, ...] = ()   # what a person does where the check can name no whole command
    cluster: Tuple[str, int] = ("random", 20)


CASES: Dict[str, Case] = {
    "BAD_OPTION": Case((OPTION + "device_classes nvme", "equilibrium on", "sim run 5m"), "5m",
                       ("config rm mgr mgr/equilibrium/device_classes",)),
    "BAD_OPTION of a pool that is gone": Case((
        OPTION + "pool_ids 2,7", "equilibrium on", "sim run 5m"), "5m"),
    "CONFLICT": Case(("equilibrium on", "sim balancer on", "sim run 5m"), "20m"),
    "MISPREDICTED": Case((
        "sim swell rbd 2", "sim backfill rate 100M", "equilibrium on", "sim run 40m",
        "sim swell rbd 1"), "5m", cluster=("random", 6)),
    "APPLY_FAILED": Case((
        "sim mon drop 1", "equilibrium on", "sim run 10m", "sim mon drop 0"), "20m"),
    "TOOFULL": Case(_TOO_FULL, "6h", _AS_STATUS),
    "STALE_STATS": Case(("equilibrium on", "sim run 1h", "sim stats hang 5h 3", "sim run 10m"),
                        "5m", ("sim stats hang 0s 3",)),
    "STUCK": Case((
        OPTION + "fill_limit 0.4", "equilibrium on", "sim run 6h"), "6h"),
    "STUCK of a drain": Case((
        OPTION + "max_misplaced_ratio 0.3", "equilibrium drain add r0 r1", "sim run 14h"), "1h",
        ("equilibrium drain rm r0 r1",), ("random", 16)),
    "WILL_NOT_FIT": Case((
        "sim backfill rate 8M", "equilibrium on", "sim osd full-ratios 0.85 0.9 0.95",
        "sim host down h0", "sim osd out 0 1 2", "sim run 10m"), "5m",
        ("sim host up h0", "osd in 0", "osd in 1", "osd in 2")),
    "WITHHELD": Case((
        OPTION + "max_misplaced_ratio 0.3", "config set osd mon_max_pg_per_osd 23",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "equilibrium on", "sim run 10m"), "30m", (
        "config set osd mon_max_pg_per_osd 250", "config set osd osd_max_pg_per_osd_hard_ratio 4",
        "config set global osd_max_pg_per_osd_hard_ratio 4")),
}


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_the_cure_ends_the_check(name: str, tmp_path: Path) -> None:
    """It stays where nobody acts."""
    case, code = CASES[name], f"MGR_EQUILIBRIUM_{name.split()[0]}"
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
    assert named - {"ERROR"} == {name.split()[0] for name in CASES}
