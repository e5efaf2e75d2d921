"""PGs, changes, batches and limits for tests; only the given limits bind."""
from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence

from equilibrium_mgr.execution.batch import Decision, next_batch
from equilibrium_mgr.execution.guards import PoolGuard
from equilibrium_mgr.execution.pending_moves import PendingMove
from equilibrium_mgr.execution.round_state import ThrottleLimits
from equilibrium_mgr.execution.traffic import osd_traffic
from equilibrium_mgr.plan.model import PgChange
from equilibrium_mgr.settings import default_settings
from tests.support.clusters.unit_cluster import Cluster, change_of, hosts
from tests.support.units import GIB

_NONE = ThrottleLimits(default_settings()._replace(
    max_moves_per_round=1000, max_backfills_per_osd=0, max_transit_ratio=0.0, max_upmap_items=0.0),
    max_misplaced_ratio=1.0, misplaced_copies=0, in_flight=())


def limited(**fields: Any) -> ThrottleLimits:
    """By fields of ThrottleLimits and options."""
    own = {name: value for name, value in fields.items() if name in ThrottleLimits._fields}
    options = {name: value for name, value in fields.items() if name not in own}
    return _NONE._replace(settings=_NONE.settings._replace(**options), **own)


FREE = limited()


def throttled(decision: Decision) -> bool:
    """Whether most shards that wait do so for the throttle."""
    return decision.leading is not None and decision.leading.is_throttle


def why(decision: Decision) -> Optional[str]:
    """What most shards wait for."""
    return decision.leading.reason if decision.leading is not None else None


def pgs(count: int = 10, num_bytes: int = GIB, **fields: Any) -> Cluster:
    """PGs 1.0, 1.1, … on osd.0 and osd.1 of eight, with 20 copies of objects each."""
    cluster = Cluster(hosts(8)).pool(1, size=2)
    for ps in range(count):
        cluster.pg(f"1.{ps:x}", "0 1", num_bytes, objects=10, **fields)
    return cluster


def wanted(*targets: int) -> List[PgChange]:
    """1.0, 1.1, … leave osd.0, each for its target."""
    return [change_of(f"1.{ps:x}", "0 1", [osd, 1]) for ps, osd in enumerate(targets)]


def batch(cluster: Cluster, changes: Sequence[PgChange], limits: ThrottleLimits = FREE,
          troubled: Mapping[int, PoolGuard] = {}, pending: Mapping[str, PendingMove] = {},
          ) -> Decision:
    snapshot = cluster.snapshot()
    return next_batch(snapshot, changes, limits, troubled, osd_traffic(snapshot, pending))


def sent(decision: Decision) -> List[str]:
    return [change.pgid for change in decision.send]
