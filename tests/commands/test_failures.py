"""`eval --fail` and `eval --worst-failure`, and that the simulated cluster ends as they say."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest

from mgr_stub.console.session import Session
from tests.commands.asking import ask, by, refused, run
from tests.support.few import few

from equilibrium_mgr.crush.placement import NO_OSD

#: Points that the prediction may be off by, of each OSD's size.
_HALF_A_POINT = 0.005
_OTHER_RATIOS = {"full_ratio": 1.5, "backfillfull_ratio": 1.4, "nearfull_ratio": 1.3}


@pytest.fixture
def roomy(open_session: Callable[..., Session], demo_state: Dict[str, Any]) -> Session:
    """The demo with so much space below backfillfull_ratio that all can be recovered."""
    demo_state["osd_dump"].update(_OTHER_RATIOS)
    session = open_session(18, demo_state)
    run(session, "sim run 1s")
    session.command("equilibrium eval")
    return session


def utilizations(session: Session) -> Dict[int, float]:
    """OSD id → used ÷ size, as the simulated devices have it."""
    found: Dict[int, float] = {}
    for row in session.cluster.utilizations().values():
        found.update(row)
    return found


def check_ends_as_predicted(session: Session, predicted: Dict[str, Any]) -> None:
    """Marks the OSDs out and holds the end against the prediction, OSD by OSD."""
    assert predicted["backfill_toofull_pgs"] == predicted["lost_pgs"] == 0
    # in one epoch: the demo's mapping is not CRUSH's, so what it leads to depends on the way there
    failed = " ".join(map(str, predicted["failure"]["osds"]))
    run(session, f"sim osd out {failed}", "sim run 2d")
    ended, osd_map = utilizations(session), session.cluster.map
    assert {osd for osd in ended if osd_map.reweight(osd)} == set(by("osd", predicted["osds"]))
    for row in predicted["osds"]:
        assert row["utilization"] == pytest.approx(ended[row["osd"]], abs=_HALF_A_POINT), row
    short = 0
    for pgid, up in osd_map.up.items():
        size = osd_map.pools[int(pgid.split(".")[0])]["size"]
        short += len(set(up) - {NO_OSD}) < size
    assert short == predicted["undersized_pgs"]


@pytest.mark.parametrize("what", few(["host1", "osd.2,osd.11"], 1))
def test_the_cluster_ends_as_predicted(roomy: Session, what: str) -> None:
    what = first_host(roomy) if what == "host1" else what
    predicted = ask(roomy, f"eval --fail {what}")
    assert predicted["copied_bytes"] > 0
    before = utilizations(roomy)
    moved = [row["osd"] for row in predicted["osds"]
             if abs(row["utilization"] - before[row["osd"]]) > _HALF_A_POINT]
    assert len(moved) > 3   # the failure shows
    check_ends_as_predicted(roomy, predicted)


def first_host(session: Session) -> str:
    """A host's name."""
    return sorted({osd.host for osd in session.module.gateway.snapshot().osds.values()})[0]


def test_the_same_is_foretold_once_the_osds_are_down(roomy: Session) -> None:
    """Until they are out their PGs lack a shard."""
    host = first_host(roomy)
    line = f"eval --fail {host}"
    told = ask(roomy, line)["steered"]
    assert told["elsewhere_shards"] > 0
    run(roomy, f"sim host down {host}", "sim run 2m")
    assert ask(roomy, line)["steered"] == told


def test_an_osd_that_is_out_cannot_fail(session: Session) -> None:
    run(session, "sim osd out 4", "sim run 2m", "equilibrium eval", "sim run 1s")
    assert "is in" in refused(session, "equilibrium eval --fail 4")[1]
