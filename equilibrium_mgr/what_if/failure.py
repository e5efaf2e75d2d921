"""What fails: an OSD, a host or another bucket, or several; the failure domains of a cluster."""
from __future__ import annotations

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set

from ..crush.hierarchy import OSD_TYPE, CrushHierarchy
from ..plan.osd_filter import osd_id
from ..snapshot.model import Snapshot

_HOST_TYPE = "host"
#: In the names of Ceph's shadow buckets, before the device class.
_SHADOW = "~"


class Failure(NamedTuple):
    """OSDs that fail together."""

    name: str           # as it was asked for: osd.3, the bucket's name, several with commas
    type_name: str      # osd, host, rack ...; empty for several
    osds: FrozenSet[int]   # of them that are in: others serve nothing


def find_failure(snapshot: Snapshot, text: str) -> Optional[Failure]:
    """What a text names: `3`, `osd.3`, a bucket's name, or several of them with commas between.
    None where something of it is not in the CRUSH map."""
    parts = [_find_one(snapshot, name.strip()) for name in text.split(",")]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or not found:
        return None
    if len(found) == 1:
        return found[0]
    return Failure(",".join(part.name for part in found), "",
                   frozenset().union(*(part.osds for part in found)))


def failure_domains(snapshot: Snapshot) -> Dict[str, List[Failure]]:
    """Type → the failures of one bucket of that type, by name; of hosts, and of the types that the
    rules of the pools keep shards apart by. Buckets without OSDs that are in are left out."""
    types = {_HOST_TYPE}
    for rule_id in {pool.rule_id for pool in snapshot.pools.values()}:
        types |= _kept_apart(snapshot.crush, rule_id)
    found = {type_name: [failure for failure in _of_type(snapshot, type_name) if failure.osds]
             for type_name in sorted(types)}
    return {type_name: failures for type_name, failures in found.items() if failures}


def _find_one(snapshot: Snapshot, name: str) -> Optional[Failure]:
    osd = osd_id(name)
    if osd is not None:
        return None if osd not in snapshot.osds else _failure(
            snapshot, f"osd.{osd}", OSD_TYPE, [osd])
    for bucket in snapshot.crush.buckets.values():
        if bucket.name == name:
            return _failure(snapshot, name, bucket.type_name,
                            list(snapshot.crush.subtree(bucket.id).weights))
    return None


def _failure(snapshot: Snapshot, name: str, type_name: str, osds: List[int]) -> Failure:
    return Failure(name, type_name, frozenset(
        osd for osd in osds if osd in snapshot.osds and is_in(snapshot, osd)))


def is_in(snapshot: Snapshot, osd: int) -> bool:
    """True where CRUSH may map PGs to the OSD: it exists and its reweight is not 0."""
    entry = snapshot.osds.get(osd)
    return entry is not None and entry.is_in and entry.reweight > 0.0


def _kept_apart(crush: CrushHierarchy, rule_id: int) -> Set[str]:
    """The types of buckets that a rule chooses; OSDs where it chooses no buckets."""
    types = {str(step["type"]) for step in crush.rules.get(rule_id, {}).get("steps", [])
             if str(step.get("op", "")).startswith("choose") and "type" in step}
    return types - {OSD_TYPE} or {OSD_TYPE}


def _of_type(snapshot: Snapshot, type_name: str) -> List[Failure]:
    if type_name == OSD_TYPE:
        return [_failure(snapshot, f"osd.{osd}", OSD_TYPE, [osd]) for osd in sorted(snapshot.osds)]
    buckets = [bucket for bucket in snapshot.crush.buckets.values()
               if bucket.type_name == type_name and _SHADOW not in bucket.name]
    return [_failure(snapshot, bucket.name, type_name,
                     list(snapshot.crush.subtree(bucket.id).weights))
            for bucket in sorted(buckets, key=lambda bucket: bucket.name)]
