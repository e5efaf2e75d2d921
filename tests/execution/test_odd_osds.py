"""OSDs on which shards take another size: the throttle, what is pending, plans and predictions."""
from __future__ import annotations

import pytest
from tests.execution.limits import limited
from tests.snapshot.test_osd_factors import odd_cluster
from tests.support.clusters.unit_cluster import Cluster, change_of
from tests.support.units import GIB

from equilibrium_mgr.execution.batch import next_batch
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.plan.model import PgChange

ODD, USUAL = 0, 5   # a shard of pool 1 takes four times as much on the one as on the other


def to(cluster: Cluster, target: int) -> PgChange:
    """A change that brings a shard of pool 1 from osd.7 to a target."""
    pgid = next(p for p, up in sorted(cluster.up.items())
                if p.startswith("1.") and 7 in up and target not in up)
    up = cluster.up[pgid]
    return change_of(pgid, up, [target if osd == 7 else osd for osd in up])


def free(cluster: Cluster, osd: int, count: int) -> None:
    """Leaves an OSD so many bytes below a fill limit of 0.8."""
    cluster.used[osd] = int(0.8 * cluster.sizes[osd]) - count


@pytest.mark.parametrize(("osd", "goes"), [(ODD, False), (USUAL, True)])
def test_the_fill_limit_counts_what_a_shard_takes_there(osd: int, goes: bool) -> None:
    cluster = odd_cluster()
    free(cluster, osd, 2 * GIB)   # a shard has about one, and four on an odd OSD
    snapshot = cluster.snapshot()
    decision = next_batch(snapshot, [to(cluster, osd)], limited(fill_limit=0.8), {},
                          osd_traffic(snapshot, {}))
    assert bool(decision.send) == goes


def test_what_is_pending_counts_as_much_as_it_takes_there() -> None:
    cluster, pending = odd_cluster(), PendingMoves()
    snapshot, change = cluster.snapshot(), to(cluster, ODD)
    pending.add(change, snapshot, 1000.0)
    traffic, osd = osd_traffic(snapshot, pending.entries), snapshot.osds[ODD]
    stored = cluster.shard_bytes(change.pgid)
    assert osd.device_bytes(traffic.of(ODD).bytes_in) == pytest.approx(4 * stored, rel=0.02)
    assert traffic.of(7).leaving_bytes == pytest.approx(stored, rel=0.02)
