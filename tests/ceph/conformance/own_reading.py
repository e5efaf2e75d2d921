"""What equilibrium has read (`dump-state`) against `ceph osd dump`, `pg ls` and `osd df`."""

from __future__ import annotations

from typing import Any, Dict, List

from ..daemons import ClusterError, wait_for
from .compare import Comparison, Difference
from .real_side import RealCluster

USED_KB_TOLERANCE = 2048
"""OSDs report at other moments than those at which they are asked."""


def compare_reading(cluster: RealCluster) -> Comparison:
    """A fresh reading of the module in the running mgr, held against Ceph's own commands."""
    state = _fresh_state(cluster)
    count, found = 0, []

    def check(place: str, ceph: Any, own: Any) -> None:
        nonlocal count
        count += 1
        if ceph != own:
            found.append(Difference(f"reading.{place}", ceph, own))

    _check_pgs(cluster, state, check)
    _check_osds(cluster, state, check)
    osdmap = cluster.mon_json("osd dump")
    for name in ("epoch", "pg_upmap_items", "flags_set", "full_ratio", "backfillfull_ratio"):
        check(f"osd_dump.{name}", osdmap[name], state["osd_dump"][name])
    return Comparison(count, found)


def _fresh_state(cluster: RealCluster) -> Dict[str, Any]:
    epoch = cluster.mon_json("osd dump")["epoch"]

    def ready() -> Dict[str, Any]:
        cluster.mgr("equilibrium eval")  # begins a look where the last is too old
        answer = cluster.mgr("equilibrium dump-state")
        state = answer.json() if answer.rc == 0 else {}
        return dict(state) if state and state["osd_dump"]["epoch"] >= epoch else {}
    return wait_for("a reading of the present map", ready, 60)


def _check_pgs(cluster: RealCluster, state: Dict[str, Any], check: Any) -> None:
    own = {pg["pgid"]: pg for pg in state["pg_dump"]["pg_map"]["pg_stats"]}
    listed: List[Dict[str, Any]] = cluster.mgr_json("pg ls")["pg_stats"]
    if not listed:
        raise ClusterError("pg ls shows nothing")
    for pg in listed:
        there = own.get(pg["pgid"], {})
        for name in ("up", "acting", "state"):
            check(f"pgs.{pg['pgid']}.{name}", pg[name], there.get(name))
        check(f"pgs.{pg['pgid']}.num_bytes", pg["stat_sum"]["num_bytes"],
              there.get("stat_sum", {}).get("num_bytes"))


def _check_osds(cluster: RealCluster, state: Dict[str, Any], check: Any) -> None:
    own = {node["id"]: node for node in state["osd_df_dump"]["nodes"]}
    for node in cluster.mgr_json("osd df")["nodes"]:
        there = own.get(node["id"], {})
        for name in ("kb", "crush_weight", "reweight", "status"):
            check(f"osds.{node['id']}.{name}", _rounded(node[name]), _rounded(there.get(name)))
        apart = abs(node["kb_used"] - there.get("kb_used", 0))
        check(f"osds.{node['id']}.kb_used", True, apart <= USED_KB_TOLERANCE)


def _rounded(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
