"""When a cluster that needed no move is worth planning again."""
from __future__ import annotations

from typing import Any, Dict, NamedTuple, Tuple

from ..snapshot.model import Snapshot

#: An OSD's utilisation must differ by this much before an even cluster is planned again.
_DRIFT_RATIO = 0.01


class Resting(NamedTuple):
    """What the cluster looked like when there was nothing to do."""

    topology: Tuple[Any, ...]
    utilization: Dict[int, float]

    def is_over(self, snapshot: Snapshot) -> bool:
        """Has the cluster changed in a way that matters?"""
        now = resting(snapshot)
        return now.topology != self.topology or any(
            abs(ratio - self.utilization.get(osd, 0.0)) > _DRIFT_RATIO
            for osd, ratio in now.utilization.items())


def resting(snapshot: Snapshot) -> Resting:
    """The part of a snapshot that decides whether the last plan still holds."""
    osds = tuple((o.id, o.up, o.is_in, o.reweight) for o in snapshot.osds.values())
    pools = tuple((p.id, p.pg_num, p.size, p.rule_id, p.immovable)
                  for p in snapshot.pools.values())
    return Resting((snapshot.crush_version, osds, pools), {
        o.id: o.target_bytes / o.size_bytes for o in snapshot.osds.values() if o.has_statistics})
