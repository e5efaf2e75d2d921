"""Gaps between device classes and their bounds, and the idle state that follows from them."""
from __future__ import annotations

from typing import Callable, FrozenSet, List, NamedTuple, Optional

from ..execution.verdict import Refusals, Verdict
from ..planner.bound.lower_bound import UtilizationBounds
from ..runtime.formatting import format_time
from ..snapshot import immovable_reasons as reasons
from ..snapshot import reason_codes as codes
from ..snapshot.model import Snapshot
from .cluster_view import ClusterView
from .states import BALANCED, STUCK, WAITING

#: A class nearer than this to its bound, in utilization, is not stuck.
_NEAR = 0.01
#: Said of a larger gap that is no more than one shard of the OSD.
_WHOLE_SHARD = ", no more than one whole shard"
#: OSDs that a sentence names before it only counts the rest.
_NAMED = 3
#: The reason of an idle state where a plan found nothing to do.
NOTHING_LEFT = "no move improves the placement"


class BoundGap(NamedTuple):
    """The gap between the fullest OSD of a class and the class's bound; sorts by the excess."""

    excess: float   # utilization above what whole shards explain; 0 or less where they explain it
    above: float    # utilization above the bound
    osd: int
    device_class: str

    def sentence(self, limited: bool = False) -> str:
        """For people. `limited`: the bound is that of moves of some pools alone."""
        bound = "what moves of the pools in pool_ids could reach" if limited else "the bound"
        return (f"osd.{self.osd}, the fullest of class {self.device_class}, is"
                f" {max(0.0, 100.0 * self.above):.1f} points above {bound}")


def bound_gaps(view: ClusterView, bounds: Optional[UtilizationBounds],
              device_classes: Optional[FrozenSet[str]]) -> List[BoundGap]:
    """One for each class that is balanced (None: all) and whose bound is known.

    The bound is computed as if shards could be split, so the bytes of one shard above it are to be
    expected.
    """
    bound_of = bounds.classes if bounds is not None else {}
    fullest = {usage.fullest_osd: name for name, usage in view.classes_soon.items()
               if name in bound_of and (device_classes is None or name in device_classes)}
    counts = view.counts
    found: List[BoundGap] = []
    for osd, name in fullest.items():
        above = view.classes_soon[name].max - bound_of[name]
        mean_shard = counts.bytes.get(osd, 0) / max(1, counts.shards.get(osd, 0))
        allowed = max(_NEAR, mean_shard / view.snapshot.osds[osd].size_bytes)
        found.append(BoundGap(above - allowed, above, osd, name))
    return found


def idle_state(view: ClusterView, bounds: Optional[UtilizationBounds],
               device_classes: Optional[FrozenSet[str]], idle: Verdict,
               searched_at: Optional[float],
               counted: Callable[[str], Optional[Refusals]], limited: bool = False) -> Verdict:
    """The state in which nothing is sent for `idle`. `searched_at`: when the plan was made that has
    shown it, in seconds since the epoch. `counted`: what refuses moves, for the code of a state
    that is stuck. `limited`: `bounds` are those of moves of some pools alone."""
    far = max(bound_gaps(view, bounds, device_classes), default=None)
    skipped = view.snapshot.skipped
    waits_for = [f"{skipped[why]} PGs wait: {why}" for why in reasons.UNKNOWN
                 if skipped.get(why)] + _silence(view.snapshot)
    reason = "; ".join([idle.reason] + waits_for)
    if far is None:
        return (Verdict(codes.STALE_STATISTICS, reason, state=WAITING) if waits_for
                else Verdict(idle.code, reason, state=BALANCED))
    if far.excess <= 0.0:
        said = f"{reason}; {far.sentence(limited)}{_WHOLE_SHARD if far.above > _NEAR else ''}"
        stale = view.snapshot.stale_osds
        if stale and stale >= {osd.id for osd in view.snapshot.osds.values()
                               if osd.up and osd.is_in}:   # nobody reports
            return Verdict(codes.STALE_STATISTICS, said, state=WAITING)
        return Verdict(idle.code, said, state=BALANCED)
    why = reason
    if idle.code == codes.BALANCED:   # which is not so
        at = "helps it" if searched_at is None else (
            f"helped it at {format_time(searched_at)} UTC")
        why = "; ".join([f"no legal move {at}"] + waits_for)
    held = skipped.get(reasons.OMAP_ON_SMALL_OSD)
    if held:
        why += f"; {held} PGs stay: {reasons.OMAP_ON_SMALL_OSD}"
    code = (codes.STALE_STATISTICS if waits_for
            else codes.GRANULARITY if idle.code == codes.BALANCED else idle.code)
    refusals = counted(code)
    refused = refusals.sentence() if refusals is not None else ""
    return Verdict(refusals.code if refusals is not None else code,
                   f"{far.sentence(limited)}, and {why}{f'; {refused}' if refused else ''};"
                   " 'ceph equilibrium explain' tells why", state=STUCK, refusals=refusals)


def _silence(snapshot: Snapshot) -> List[str]:
    """Names OSDs that have stopped reporting, in one sentence; empty where none has."""
    silent = [f"osd.{osd}" for osd in sorted(snapshot.stale_osds)]
    if not silent:
        return []
    named = ", ".join(silent[:_NAMED])
    if len(silent) > _NAMED:
        named += f" and {len(silent) - _NAMED} more"
    return [f"the figures of {len(silent)} OSDs are old, they have stopped reporting: {named}"]
