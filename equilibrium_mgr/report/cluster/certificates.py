"""What proves the bounds, for `eval <plan> --format json`: see planner/bound/certificate.py."""
from __future__ import annotations

from typing import Any, Dict, List

from ...planner.bound.certificate import Cut, KeptBytes
from ...planner.bound.lower_bound import UtilizationBounds
from ..table import Row
from .bound_distance import ClassDistance


def certificates_json(bounds: UtilizationBounds, classes: List[ClassDistance]) -> Row:
    """The cuts, and for each class and pool the number of its cut with what that proves.

    `least_moved_bytes` of a class: what has to leave OSDs that are above its planned maximum.
    `split_bytes` of a pool: its bound if shards could be split, which is what the cut proves.
    """
    number_of = {osds: number for number, osds in enumerate(bounds.cuts)}
    pools: List[Row] = []
    for pool, bound in bounds.pool_space.items():
        pools.append({"id": pool, "cut": number_of[bound.osds], "kept_shards": bound.kept_shards,
                      "split_bytes": bound.split_bytes})
    return {"osdmap_epoch": bounds.epoch, "cuts": [_cut_json(cut) for cut in bounds.cuts.values()],
            "classes": [{
                "device_class": entry.device_class,
                "cut": number_of[bounds.class_cuts[entry.device_class]],
                "bound_utilization": entry.proven_bound,
                "planned_max_utilization": entry.planned_max,
                "least_moved_bytes": entry.least_moved_bytes} for entry in classes],
            "pools": pools}


def _cut_json(cut: Cut) -> Dict[str, Any]:
    return {"osds": list(cut.osds), "size_bytes": cut.size_bytes, "used_bytes": cut.used_bytes,
            "full_bytes": cut.full_bytes, "can_leave_bytes": cut.can_leave_bytes,
            "kept": [_kept_json(entry) for entry in cut.kept]}


def _kept_json(entry: KeptBytes) -> Dict[str, Any]:
    return {"pool": entry.pool, "take": entry.take, "shards": entry.shards,
            "limits": [{"type": name, "most_shards": most} for name, most in entry.limits],
            "most_elsewhere": entry.most_elsewhere, "kept_bytes": entry.kept_bytes}
