"""What monitors make of pg-upmap-primary: the answers, what they drop, and the score.

`tests/mgr_stub/cluster/test_pg_upmap.py` holds the simulated monitor to the same. At last what
automatic balancing makes of it.
"""

from __future__ import annotations

import re
import time
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ..cluster import DaemonCluster
from ..daemons import ClusterError, wait_for
from ..harness import workload
from ..harness.commands import equilibrium
from .test_read_balance import POOL, looked_at, pool_of, primaries

pytestmark = [pytest.mark.long, pytest.mark.releases(18, 20)]

SET, REMOVE = "osd pg-upmap-primary", "osd rm-pg-upmap-primary"


@pytest.fixture(scope="module")
def plain(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """A clean cluster without upmaps, for clients of any release."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")
    workload.clear_upmaps(cluster)
    workload.wait_clean(cluster)
    yield cluster
    for pgid in primaries(cluster):
        cluster.mon(REMOVE, pgid=pgid)
    workload.clear_upmaps(cluster)
    cluster.mon("osd set-require-min-compat-client", version="luminous",
                yes_i_really_mean_it=True)


def refused(cluster: DaemonCluster, prefix: str, **arguments: Any) -> str:
    with pytest.raises(ClusterError) as error:
        cluster.mon(prefix, **arguments)
    return re.sub(r"^.*? rc ", "", str(error.value))


def some_pg(cluster: DaemonCluster) -> Tuple[str, List[int]]:
    number = pool_of(cluster)["pool"]
    return next((pgid, up) for pgid, up in sorted(workload.up_sets(cluster).items())
                if pgid.startswith(f"{number}."))


def stranger(cluster: DaemonCluster, up: List[int]) -> int:
    """An OSD that has no shard of the PG."""
    return next(osd["osd"] for osd in cluster.mon_json("osd dump")["osds"]
                if osd["osd"] not in up)


def test_answers(plain: DaemonCluster) -> None:
    pgid, up = some_pg(plain)
    for prefix, arguments in ((SET, {"id": up[1]}), (REMOVE, {})):
        said = refused(plain, prefix, pgid=pgid, **arguments)
        assert said.startswith("-1: min_compat_client luminous < reef, which is required for"
                               " pg-upmap-primary."), said
    plain.mon("osd set-require-min-compat-client", version="reef")
    assert "already primary" in refused(plain, SET, pgid=pgid, id=up[0])
    assert "not in acting set" in refused(plain, SET, pgid=pgid, id=stranger(plain, up))
    coded, osds = next((other, osds) for other, osds in workload.up_sets(plain).items()
                       if other.split(".")[0] != pgid.split(".")[0])
    assert "only supported for replicated pools" in refused(plain, SET, pgid=coded, id=osds[1])


def test_what_is_dropped(plain: DaemonCluster, figure: Any) -> None:
    pgid, up = some_pg(plain)
    found: Dict[str, Dict[str, int]] = {}
    plain.mon(SET, pgid=pgid, id=up[1])
    assert primaries(plain) == {pgid: up[1]}
    plain.mon(SET, pgid=pgid, id=up[0])
    found["what CRUSH chooses"] = primaries(plain)
    plain.mon(REMOVE, pgid=pgid)
    plain.mon(SET, pgid=pgid, id=up[1])
    other = stranger(plain, up)
    plain.mon("osd pg-upmap-items", pgid=pgid, id=[other, up[0]])
    found["beside a pair without effect"] = primaries(plain)
    assert workload.upmap_items(plain).get(pgid) is None
    plain.mon(REMOVE, pgid=pgid)
    figure(f"pg {pgid} {up}: primaries that are kept: {found}")
    drops = plain.release.major >= 20
    assert found == {"what CRUSH chooses": {} if drops else {pgid: up[0]},
                     "beside a pair without effect": {} if drops else {pgid: up[1]}}


def read_plan(cluster: DaemonCluster) -> Dict[str, Any]:
    """A plan of primaries, made anew."""
    return looked_at(cluster, "optimize", plan="a", read_balance=True, replace=True)


# the mgr of 18.2.7 died here once, at the first look after the affinity was set; why is not known
@pytest.mark.releases(20)
def test_the_score_where_an_osd_is_not_to_lead(plain: DaemonCluster, figure: Any) -> None:
    plain.mon("osd set-require-min-compat-client", version="reef")
    workload.wait_clean(plain)
    plain.mon("osd primary-affinity", id=0, weight=0.0)
    try:
        number = pool_of(plain)["pool"]
        wait_for("PGs led by others", lambda: all(
            up[0] != 0 for pgid, up in workload.up_sets(plain).items()
            if pgid.startswith(f"{number}.")), 60)
        workload.wait_clean(plain)
        plain.set_option("read_balance", "true")
        balance = pool_of(plain)["read_balance"]
        equilibrium(plain, "upmap ls")
        row = next(one for one in read_plan(plain)["reads"] if one["name"] == POOL)
        figure(f"score of {POOL} with osd.0 of affinity 0: {balance}, said {row}")
        assert row["score_before"] == pytest.approx(balance["score_acting"], abs=0.03)
    finally:
        plain.mon("osd primary-affinity", id=0, weight=1.0)
        plain.mon("config rm", who="mgr", name="mgr/equilibrium/read_balance")
        equilibrium(plain, "reset")


def test_automatic_balancing_goes_on_while_pgs_peer(plain: DaemonCluster, figure: Any) -> None:
    """Two PGs at a time: none of the rest is dropped for those that peer."""
    plain.mon("osd set-require-min-compat-client", version="reef")
    options = {"read_balance": "true", "max_moves_per_round": 2, "min_gain": 0.9}
    before = float(pool_of(plain)["read_balance"]["score_acting"])
    for name, value in options.items():
        plain.set_option(name, value)
    try:
        wanted = len(read_plan(plain)["primaries"])
        started = time.monotonic()
        equilibrium(plain, "on")
        wait_for("primaries of automatic balancing", lambda: len(primaries(plain)) >= wanted, 150)
        took = time.monotonic() - started
        workload.wait_clean(plain)
        after = float(pool_of(plain)["read_balance"]["score_acting"])
        figure(f"automatic read balance: {wanted} PGs, two at a time, in {took:.0f} s; score of"
               f" {POOL} {before:.2f} -> {after:.2f}")
        assert wanted > 4 and after < before
    finally:
        equilibrium(plain, "off")
        equilibrium(plain, "reset")
        for name in options:
            plain.mon("config rm", who="mgr", name=f"mgr/equilibrium/{name}")
    assert plain.module_failures() == ""
