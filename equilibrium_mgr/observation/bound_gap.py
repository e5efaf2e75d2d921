"""How far a class is from its bound, and whether something must be in the way."""
from __future__ import annotations

from typing import Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from ..planner.bound.lower_bound import UtilizationBounds
from ..snapshot import immovable_reasons as reasons
from ..snapshot.model import Snapshot
from .cluster_view import ClusterView
from .states import BALANCED, STUCK, WAITING

#: Nearer than this to the bound, in utilization, nobody would call a cluster stuck.
_NEAR = 0.01
#: OSDs that a sentence names.
_NAMED = 3
#: Why nothing is sent where a plan found nothing to do.
NOTHING_LEFT = "no move improves the placement"


class BoundGap(NamedTuple):
    """How the fullest OSD of a class stands to the class's bound; compares by the excess."""

    excess: float   # utilization above what whole shards explain; 0 or less where they explain it
    above: float    # utilization above the bound
    osd: int
    device_class: str

    def sentence(self, limited: bool = False) -> str:
        """`limited`: the bound is that of the pools that may be moved, not that of all."""
        return "osd.%d, the fullest of class %s, is %.1f points above %s" % (
            self.osd, self.device_class, max(0.0, 100.0 * self.above),
            "what moves of the pools in pool_ids could reach" if limited else "the bound")


def bound_gaps(view: ClusterView, bounds: Optional[UtilizationBounds],
              device_classes: Optional[FrozenSet[str]]) -> List[BoundGap]:
    """One for each class that is balanced (None: all) and whose bound is known.

    The bound takes shards as if they could be split, so one shard's worth above it is to be
    expected.
    """
    bound_of = bounds.classes if bounds is not None else {}
    fullest = {usage.fullest_osd: name for name, usage in view.usage.classes.items()
               if name in bound_of and (device_classes is None or name in device_classes)}
    shard_bytes = _mean_shard_bytes(view.snapshot, frozenset(fullest))
    found: List[BoundGap] = []
    for osd, name in fullest.items():
        above = view.usage.classes[name].max - bound_of[name]
        allowed = max(_NEAR, shard_bytes[osd] / view.snapshot.osds[osd].size_bytes)
        found.append(BoundGap(above - allowed, above, osd, name))
    return found


def idle_state(view: ClusterView, bounds: Optional[UtilizationBounds], device_classes: Optional[FrozenSet[str]],
            reason: str, limited: bool = False) -> Tuple[str, str]:
    """The state and its sentence where nothing is sent for `reason`. `limited`: `bounds` is what
    moves of some pools alone could reach."""
    far = max(bound_gaps(view, bounds, device_classes), default=None)
    skipped = view.snapshot.skipped
    unknown = [f"{skipped[why]} PGs wait: {why}" for why in reasons.UNKNOWN
               if skipped.get(why)]
    silent = _silence(view.snapshot)
    reason = "; ".join([reason] + unknown + silent)
    if far is None:
        return (WAITING if unknown or silent else BALANCED), reason
    if far.excess <= 0.0:
        return (WAITING if _nobody_reports(view.snapshot) else BALANCED), "%s; %s" % (
            reason, far.sentence(limited))
    why = reason.replace(NOTHING_LEFT, "no legal move helps it")
    held = skipped.get(reasons.OMAP_ON_SMALL_OSD)
    if held:
        why += f"; {held} PGs stay: {reasons.OMAP_ON_SMALL_OSD}"
    return STUCK, f"{far.sentence(limited)}, and {why}; 'ceph equilibrium explain' tells why"


def _silence(snapshot: Snapshot) -> List[str]:
    """Which OSDs have stopped reporting, as a sentence; empty where none has."""
    silent = [f"osd.{osd}" for osd in sorted(snapshot.stale_osds)]
    if not silent:
        return []
    named = ", ".join(silent[:_NAMED])
    if len(silent) > _NAMED:
        named += f" and {len(silent) - _NAMED} more"
    return [f"the figures of {len(silent)} OSDs are old, they have stopped reporting: {named}"]


def _nobody_reports(snapshot: Snapshot) -> bool:
    up = {osd.id for osd in snapshot.osds.values() if osd.up and osd.is_in}
    return bool(snapshot.stale_osds) and up <= snapshot.stale_osds


def _mean_shard_bytes(snapshot: Snapshot, osds: FrozenSet[int]) -> Dict[int, float]:
    """OSD → mean bytes of the shards on it; 0 where it has none."""
    sizes: Dict[int, List[int]] = {osd: [] for osd in osds}
    for pg in snapshot.pgs.values():
        for osd in osds.intersection(pg.up):
            sizes[osd].append(pg.shard_bytes)
    return {osd: sum(found) / len(found) if found else 0.0 for osd, found in sizes.items()}
