"""`explain <osd>`: its utilization, the utilization that it could have, and the obstacles."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from ...observation.cluster_view import ClusterView
from ...planner.bound.lower_bound import OsdSet
from ...runtime.formatting import format_bytes, format_percent
from ...snapshot.model import Osd, Snapshot
from ...snapshot.operator_weights import held_sentence
from .bound_text import describe_bound

#: JSON-ready facts, and the same as sentences.
Facts = Tuple[Dict[str, Any], List[str]]

#: Utilizations that differ by less count as equal.
SAME = 0.0005


def explain_osd(number: int, view: ClusterView) -> Facts:
    """Facts about one OSD; utilizations are ratios of its size."""
    osd = view.snapshot.osds[number]
    osd_set = set_of(number, view)
    bounds = view.utilization_bounds
    bound_utilization = bounds.utilizations.get(number) if bounds is not None else None
    limited = _limited_pools(number, view)
    too_full = [entry for entry in view.too_full if entry.osd == number]
    data = {
        "osd": number, "device_class": osd.device_class, "host": osd.host,
        "size_bytes": osd.device_size, "used_bytes": osd.device[1] or osd.used_bytes,
        "inbound_bytes": osd.device_bytes(osd.inbound_bytes),
        "outbound_bytes": osd.device_bytes(osd.outbound_bytes),
        "uncompacted_bytes": osd.device_bytes(osd.uncompacted_bytes),
        "undeleted_bytes": osd.device_bytes(osd.undeleted_bytes),
        "size_factor": osd.size_factor,
        "utilization": osd.utilization, "target_utilization": osd.target_utilization,
        "reachable": bound_utilization,
        "set": set_json(osd_set, view.snapshot) if osd_set else None,
        "bound": osd_set.bound if osd_set else None, "cannot_take": osd.unusable_reason(),
        "share": osd.share, "held_by": osd.held_by,
        "limited_pools": limited,
        "too_full": [entry.to_json(view.snapshot.full_ratio) for entry in too_full]}
    sentences = [_fill(osd)] + [entry.sentence() for entry in too_full] + _leftovers(osd)
    if osd.size_factor != 1.0:
        sentences.append(f"a shard takes {osd.size_factor:.2f} times there what it takes on most"
                         " OSDs (min_alloc_size, compression)")
    if osd.unusable_reason():
        sentences.append(f"no shard may go to it: it is {osd.unusable_reason()}")
    else:
        if osd.share < 1.0:
            sentences.append(held_sentence(osd))
        sentences += _reach(osd, bound_utilization, osd_set, view)
    sentences.append("no pool on it can take more" if osd.exceeds(view.snapshot.full_ratio)
                     else f"it limits the free space of pools: {', '.join(limited)}" if limited
                     else "it limits the free space of no pool that holds data")
    return data, sentences


def set_of(osd: int, view: ClusterView) -> Optional[OsdSet]:
    """The set of OSDs with which an OSD can exchange data, or None."""
    if view.utilization_bounds is not None:
        for osd_set in view.utilization_bounds.sets:
            if osd in osd_set.osds:
                return osd_set
    return None


def utilization_now(osd: int, view: ClusterView) -> float:
    """What the OSD reports, as a ratio of its size; 0 where that is not known."""
    found = view.snapshot.osds[osd]
    return view.used_now.get(osd, found.used_bytes) / max(1, found.size_bytes)


def set_json(osd_set: OsdSet, snapshot: Snapshot) -> Dict[str, Any]:
    """A set of OSDs with its bound, JSON-ready."""
    binding = osd_set.binding
    return {"device_class": osd_set.device_class, "takes": list(osd_set.takes),
            "osds": list(osd_set.osds), "bound": osd_set.bound,
            "description": describe_bound(osd_set, snapshot),
            "binding": {"kind": binding.kind, "osds": list(binding.osds),
                        "buckets": list(binding.buckets),
                        "pools": [snapshot.pools[pool].name for pool in binding.pools]}}


def _leftovers(osd: Osd) -> List[str]:
    """Sentences about what has left an OSD and takes space on it still."""
    sentences: List[str] = []
    if osd.uncompacted_bytes:
        left = format_bytes(osd.device_bytes(osd.uncompacted_bytes))
        sentences.append(f"{left} of that are omap that has left it, free once its RocksDB has"
                         f" compacted; 'ceph tell osd.{osd.id} compact' does that at once")
    if osd.undeleted_bytes:
        left = format_bytes(osd.device_bytes(osd.undeleted_bytes))
        sentences.append(f"{left} of that are shards that have left it, which it is still deleting")
    return sentences


def _fill(osd: Osd) -> str:
    now, then = osd.utilization, osd.target_utilization
    host = f"host {osd.host}" if osd.host else "no host"
    named = f"osd.{osd.id} (class {osd.device_class}, {host})"
    if now is None or then is None:
        return f"{named} has no statistics"
    used, size = format_bytes(osd.device[1] or osd.used_bytes), format_bytes(osd.device_size)
    into, out = [format_bytes(osd.device_bytes(count))
                 for count in (osd.inbound_bytes, osd.outbound_bytes)]
    sentence = f"{named} has {used} of {size} in use: {format_percent(now)}%"
    if not osd.inbound_bytes and not osd.outbound_bytes:
        return sentence
    return f"{sentence}; {format_percent(then)}% when {into} in and {out} out have moved"


def _reach(osd: Osd, bound_utilization: Optional[float], osd_set: Optional[OsdSet],
           view: ClusterView) -> List[str]:
    if view.utilization_bounds is None or osd.target_utilization is None:
        return []
    if osd_set is None or bound_utilization is None:
        return ["no pool that holds data may use it"]
    said = ("in the most even placement that the rules allow it would be at"
            f" {format_percent(bound_utilization)}%")
    difference = bound_utilization - utilization_now(osd.id, view)
    if abs(difference) >= SAME:
        said += (f", {100.0 * abs(difference):.1f} points"
                 f" {'lower' if difference < 0.0 else 'higher'} than now")
    sentences = [said, describe_bound(osd_set, view.snapshot)]
    if osd.id in osd_set.binding.osds and len(osd_set.binding.osds) < len(osd_set.osds):
        sentences.append("it is one of the OSDs that stand at this bound")
    return sentences


def _limited_pools(osd: int, view: ClusterView) -> List[str]:
    """Names of the pools with data whose free space now ends where this OSD is full."""
    return [name for name, space in view.usage_now().pools.items()
            if space.limiting_osd == osd and space.stored_bytes > 0]
