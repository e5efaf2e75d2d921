"""A second root beside a cluster's own, with hosts, OSDs and a pool that nothing else touches."""
from __future__ import annotations

from typing import Any, Dict, Sequence

from tests.support.clusters.crush_maps import crush_map
from tests.support.clusters.unit_cluster import Cluster
from tests.support.units import GIB, MIB

_FIRST_OSD = 900
_FIRST_BUCKET = -900
_RULE = 90
_POOL = 90


def with_unrelated_root(cluster: Cluster, device_class: str, mib: Sequence[int]) -> Cluster:
    """Three hosts of two OSDs; single copies of so many MiB, in turn, eight per OSD and value."""
    osds = list(range(_FIRST_OSD, _FIRST_OSD + 2 * len(mib)))
    added = crush_map(
        {"root elsewhere": {f"host e{number}": osds[2 * number:2 * number + 2]
                            for number in range(len(mib))}},
        {_RULE: "take elsewhere; choose firstn 0 osd; emit"},
        {osd: device_class for osd in osds})
    for bucket in added["buckets"]:
        cluster.crush["buckets"].append(dict(bucket, id=_elsewhere(bucket["id"]), items=[
            dict(item, id=_elsewhere(item["id"])) for item in bucket["items"]]))
    cluster.crush["devices"] += added["devices"]
    cluster.crush["rules"] += [_moved_rule(rule) for rule in added["rules"]]
    for osd in osds:
        cluster.osds[osd] = {"osd": osd, "up": 1, "in": 1, "weight": 1.0,
                             "state": ["exists", "up"]}
        cluster.sizes[osd] = 20 * GIB
    cluster.pool(_POOL, size=1, rule=_RULE)
    for ps in range(8 * len(osds)):
        osd = osds[ps % len(osds)]
        cluster.pg(f"{_POOL}.{ps:x}", [osd], num_bytes=mib[(osd - _FIRST_OSD) // 2] * MIB)
    return cluster


def _elsewhere(item: int) -> int:
    return item if item >= 0 else item + _FIRST_BUCKET


def _moved_rule(rule: Dict[str, Any]) -> Dict[str, Any]:
    return dict(rule, steps=[dict(step, item=_elsewhere(step["item"])) if "item" in step else step
                             for step in rule["steps"]])
