"""Sources of pages, made without a mgr."""
from __future__ import annotations

from typing import Any, Optional, Tuple

from tests.support.clusters.unit_cluster import Cluster

from equilibrium_mgr.control.status import BalancerStatus
from equilibrium_mgr.execution.pending_moves import PendingMoves
from equilibrium_mgr.gateway.pool_space import PoolSpaceNow
from equilibrium_mgr.observation.cluster_view import ClusterView, make_view
from equilibrium_mgr.plan.model import Plan
from equilibrium_mgr.planner.bound.lower_bound import utilization_bounds
from equilibrium_mgr.report.page.facts.sources import ClusterIdentity, PageSources
from equilibrium_mgr.report.page.page import report_page
from equilibrium_mgr.settings import read_settings
from equilibrium_mgr.snapshot.model import Snapshot

from .html_reader import Page


def view_of(snapshot: Snapshot) -> ClusterView:
    """What the serve loop would show of a snapshot."""
    return make_view(snapshot, utilization_bounds(snapshot), PendingMoves(), 0.05, False)


def sources_of(view: ClusterView, plan: Optional[Tuple[str, Plan]] = None,
               **options: Any) -> PageSources:
    """Of a mgr that has just looked at the cluster."""
    snapshot = view.snapshot
    space = {pool.id: PoolSpaceNow(pool.name, pool.stored_bytes, 0.5, pool.max_avail_bytes)
             for pool in snapshot.pools.values()}
    return PageSources(ClusterIdentity("f", "ceph version 18", snapshot.epoch, snapshot.taken_at),
                       view, BalancerStatus(view=view), read_settings(options.get), options.get,
                       space, plan)


def page_of(cluster: Cluster, plan: Optional[Tuple[str, Plan]] = None, **options: Any) -> Page:
    """The parsed page about a small cluster."""
    sources = sources_of(view_of(cluster.snapshot()), plan, **options)
    return Page(report_page(sources).plain)
