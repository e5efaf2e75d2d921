"""Why nothing is sent at rest: gaps between device classes and their bounds, what refuses the moves
that would lower the fullest OSD, and the idle state that follows.
"""
from __future__ import annotations

from functools import partial
from typing import Callable, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from ..execution.outcomes import ExcludedPgs, Refusals, Verdict
from ..plan.options import PlanOptions
from ..planner.bound.lower_bound import FAILURE_DOMAIN, OsdSet, UtilizationBounds
from ..planner.refusal_census import Census, RefusalCensus
from ..runtime.formatting import format_time, named_osds
from ..runtime.time_slice import piecewise
from ..snapshot import immovable_reasons as reasons, reason_codes as codes
from ..snapshot.model import Osd
from .cluster_view import BALANCED, STUCK, WAITING, ClusterView


#: Pairs of a shard and a target that are counted at most: about half a second.
MOST_PAIRS = 40_000
#: Nearer to its bound than this (a ratio), an OSD is as low as it can be.
NEAR = 0.005
#: Codes of a state at rest that the counts tell more exactly.
COUNTED = frozenset((codes.BALANCED, codes.GRANULARITY, codes.MIN_GAIN, codes.DRIFT,
                     codes.IMMOVABLE, codes.NOT_READY))


class Fullest(NamedTuple):
    """The fullest OSD of a set, and how far it is above the set's bound."""

    osd_set: OsdSet
    osd: Osd
    above: float


def fullest_osds(view: ClusterView, device_classes: Optional[FrozenSet[str]]) -> List[Fullest]:
    """One for each set: first those above their bound with an OSD that is or will be above
    nearfull_ratio, the fullest first, then the farthest above its bound. OSDs of classes that
    device_classes leaves out do not count."""
    bounds, osds_of = view.utilization_bounds, view.snapshot.osds
    found: List[Fullest] = []
    for osd_set in bounds.sets if bounds is not None else ():
        chosen = [osds_of[osd] for osd in osd_set.osds
                  if device_classes is None or osds_of[osd].device_class in device_classes]
        if chosen:
            worst = max(chosen, key=lambda o: (o.target_utilization or 0.0, -o.id))
            found.append(Fullest(osd_set, worst, (worst.target_utilization or 0.0) - osd_set.bound))
    return sorted(found, key=partial(_urgency, view), reverse=True)


def _urgency(view: ClusterView, found: Fullest) -> Tuple[float, float]:
    soon = found.osd.target_utilization or 0.0
    most = max(soon, view.utilization_now(found.osd.id))
    if most < view.snapshot.nearfull_ratio or found.above < NEAR:
        most = 0.0
    return most, found.above


def bound_code(osd_set: OsdSet) -> str:
    """The code of the reason for which nothing is below the set's bound."""
    return codes.BOUND_DOMAIN if osd_set.binding.kind == FAILURE_DOMAIN else codes.BOUND_CAPACITY


def settled_code(census: Census, rest_code: str) -> str:
    """The code of a census where a plan has found nothing to do: what is allowed then gains less
    than it costs, for shards are whole, or less than min_gain, or than drift is followed for. What
    is left alone for a time comes first: what would be left then is not known."""
    if census.reason_code in codes.FOR_A_TIME:
        return census.reason_code
    if rest_code == codes.DRIFT and census.reason_code in (codes.BALANCED, codes.MIN_GAIN):
        return codes.DRIFT
    if census.reason_code == codes.BALANCED or (
            rest_code == codes.MIN_GAIN and census.of(codes.MIN_GAIN) is not None):
        return codes.MIN_GAIN
    if census.reason_code == codes.MIN_GAIN and census.of(codes.GRANULARITY) is not None:
        return codes.GRANULARITY
    return census.reason_code


def count_refusals(view: ClusterView, options: PlanOptions, excluded: ExcludedPgs,
                   rest_code: str) -> Optional[Refusals]:
    """Counts for the fullest OSD what refuses its shards, with the options of automatic plans;
    None where the bounds are not known, or where the reason of the state is none to be counted."""
    bounds, fullest = view.utilization_bounds, fullest_osds(view, options.device_classes)
    if bounds is None or not fullest or rest_code not in COUNTED:
        return None
    census = RefusalCensus(view.snapshot, options, bounds, excluded.codes).of_osd(
        fullest[0].osd.id, MOST_PAIRS)
    code = (bound_code(fullest[0].osd_set) if fullest[0].above < NEAR
            else settled_code(census, rest_code))
    return Refusals(code, rest_code, fullest[0].osd.id, census, excluded.seconds_of(code))


_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond
#: A class nearer than this to its bound, in utilization, is not stuck.
_NEAR = 0.01
SAME = 0.0005   # utilizations that differ by less count as equal
#: Said of a larger gap that is no more than one shard of the OSD.
_WHOLE_SHARD = ", no more than one whole shard"
#: OSDs that a sentence names before it only counts the rest.
_NAMED = 3
#: The reason of an idle state where a plan found nothing to do.
NOTHING_LEFT = "no move improves the placement"


class BoundGap(NamedTuple):
    """The gap between the fullest OSD of a set and the set's bound; sorts by the excess."""

    excess: float   # utilization above what whole shards explain; 0 or less where they explain it
    above: float    # utilization above the bound
    osd: int
    device_class: str

    def sentence(self, limited: bool = False) -> str:
        """For people. `limited`: the bound is that of moves of some pools alone."""
        bound = "what moves of the pools in pool_ids could reach" if limited else "the bound"
        fullest = f"osd.{self.osd}, the fullest of class {self.device_class}, is"
        if self.above < -SAME:   # which lowered weights alone can do
            return (f"{fullest} {-100.0 * self.above:.1f} points below {bound}, which keeps lowered"
                    " weights")
        return f"{fullest} {max(0.0, 100.0 * self.above):.1f} points above {bound}"


def bound_gaps(view: ClusterView, bounds: Optional[UtilizationBounds],
              device_classes: Optional[FrozenSet[str]]) -> List[BoundGap]:
    """One for each set whose bound is known, where the class of its fullest OSD is balanced (None:
    all are).

    The bound is computed as if shards could be split, so the bytes of one shard above it are to be
    expected.
    """
    bound_of, osds = bounds.highest if bounds is not None else {}, view.snapshot.osds
    fullest = {usage.fullest_osd: name for name, usage in view.classes_soon.items()
               if name in bound_of and (device_classes is None or osds[
                   usage.fullest_osd].device_class in device_classes)}
    shards: Dict[int, List[int]] = {osd: [] for osd in fullest}
    for pg in piecewise(view.snapshot.pgs.values(), _PGS_A_PIECE):
        for osd in shards.keys() & pg.up:
            shards[osd].append(view.snapshot.shard_bytes(pg, osd, pg.up))
    found: List[BoundGap] = []
    for osd, name in fullest.items():
        above = view.classes_soon[name].max - bound_of[name]
        mean_shard = sum(shards[osd]) / max(1, len(shards[osd]))
        found.append(BoundGap(above - max(_NEAR, mean_shard / osds[osd].size_bytes), above, osd,
                              name))
    return found


def idle_state(view: ClusterView, bounds: Optional[UtilizationBounds],
               device_classes: Optional[FrozenSet[str]], idle: Verdict,
               searched_at: Optional[float],
               counted: Callable[[str], Optional[Refusals]], limited: bool) -> Verdict:
    """The state in which nothing is sent for `idle`. `searched_at`: when the plan was made that has
    shown it, in seconds since the epoch. `counted`: what refuses moves, for the code of a state
    that is stuck. `limited`: `bounds` are those of moves of some pools alone."""
    gaps = bound_gaps(view, bounds, device_classes)
    far = max(gaps, default=None)
    skipped = view.snapshot.skipped
    waits_for = [f"{skipped[why]} PGs wait: {why}" for why in reasons.UNKNOWN
                 if skipped.get(why)]
    silent = sorted(view.snapshot.stale_osds)
    if silent:
        waits_for.append(f"the figures of {len(silent)} OSDs are old, they have stopped reporting:"
                         f" {named_osds(silent, _NAMED)}")
    reason = "; ".join([idle.reason] + waits_for)
    if far is None:
        return (Verdict(codes.STALE_STATISTICS, reason, state=WAITING) if waits_for
                else Verdict(idle.code, reason, state=BALANCED))
    first = [one.osd_set.name for one in fullest_osds(view, device_classes)[:1]]
    # `explain` begins with the same
    shown = next((gap for gap in gaps if gap.device_class in first), far)
    if far.excess <= 0.0:
        said = f"{reason}; {shown.sentence(limited)}{_WHOLE_SHARD if shown.above > _NEAR else ''}"
        stale = view.snapshot.stale_osds
        if stale and stale >= view.snapshot.alive:   # nobody reports
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
    code = refusals.code if refusals is not None else code
    if code in codes.FOR_A_TIME:
        why = refused
        refused = ""
    if code == codes.DRIFT and far.excess < _NEAR:   # a plan could lower it
        return Verdict(code, f"{reason}; {shown.sentence(limited)}", state=BALANCED)
    return Verdict(code, f"{shown.sentence(limited)}, and {why}{f'; {refused}' if refused else ''};"
                   " 'ceph equilibrium explain' tells why", refusals=refusals,
                   state=WAITING if code == codes.PG_NUM_CHANGING else STUCK)
