"""Why an idle cluster is sent nothing: gaps between device classes and their bounds, the checks
that reject moves of the fullest OSD, and the idle state that follows.
"""
from __future__ import annotations

from functools import partial
from typing import Callable, Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

from ..execution.outcomes import ExcludedPgs, Refusals, Verdict
from ..plan.options import PlanOptions
from ..planner.bound.lower_bound import FAILURE_DOMAIN, OsdSet, UtilizationBounds
from ..planner.refusal_census import Census, RefusalCensus
from ..runtime.formatting import format_time, named_osds
from ..runtime.time_slice import piecewise
from ..snapshot import immovable_reasons as reasons, reason_codes as codes
from ..snapshot.model import Osd
from .cluster_view import BALANCED, BLOCKED, STUCK, WAITING, ClusterView


#: At most so many pairs of a shard and a target are counted: about half a second.
MOST_PAIRS = 40_000
#: An OSD nearer to its bound than this (a ratio) is as low as it can be.
NEAR = 0.005
#: Codes of an idle state whose reason the counts make more exact.
COUNTED = frozenset((codes.BALANCED, codes.GRANULARITY, codes.MIN_GAIN, codes.DRIFT,
                     codes.IMMOVABLE, codes.NOT_READY))


class Fullest(NamedTuple):
    """The fullest OSD of a set, and how far it is above the set's bound."""

    osd_set: OsdSet
    osd: Osd
    above: float


def fullest_osds(view: ClusterView, device_classes: Optional[FrozenSet[str]]) -> List[Fullest]:
    """Returns the fullest OSD of each set. OSDs of classes that device_classes leaves out do not
    count.

    First come OSDs above their bound that are or will be above nearfull_ratio, the fullest first;
    then the others, the one farthest above its bound first.
    """
    bounds = view.utilization_bounds
    osds_of = view.snapshot.osds
    if bounds is None:
        return []
    found: List[Fullest] = []
    for osd_set in bounds.sets:
        chosen = [osds_of[osd] for osd in osd_set.osds
                  if device_classes is None or osds_of[osd].device_class in device_classes]
        if chosen:
            worst = max(chosen, key=lambda o: (o.target_utilization or 0.0, -o.id))
            above = (worst.target_utilization or 0.0) - osd_set.bound
            found.append(Fullest(osd_set, worst, above))
    return sorted(found, key=partial(_urgency, view), reverse=True)


def _urgency(view: ClusterView, found: Fullest) -> Tuple[float, float]:
    soon = found.osd.target_utilization or 0.0
    most = max(soon, view.utilization_now(found.osd.id))
    if most < view.snapshot.nearfull_ratio or found.above < NEAR:
        most = 0.0
    return most, found.above


def bound_code(osd_set: OsdSet) -> str:
    """Returns the code of the limit that the bound of the set comes from."""
    if osd_set.binding.kind == FAILURE_DOMAIN:
        return codes.BOUND_DOMAIN
    return codes.BOUND_CAPACITY


def idle_code(census: Census, rest_code: str) -> str:
    """Returns the code of a census after a plan that found nothing to do. `rest_code`: of the idle
    state.

    A move that no check rejects then gains less than it costs, because shards are whole, or less
    than min_gain, or less than a plan for drift needs. PGs that are left alone for a time come
    first: nobody knows the gain without them.
    """
    code = census.reason_code
    if code in codes.FOR_A_TIME:
        return code
    if rest_code == codes.DRIFT and code in (codes.BALANCED, codes.MIN_GAIN):
        return codes.DRIFT
    has_small_gains = census.of(codes.MIN_GAIN) is not None
    if code == codes.BALANCED or (rest_code == codes.MIN_GAIN and has_small_gains):
        return codes.MIN_GAIN
    if code == codes.MIN_GAIN and census.of(codes.GRANULARITY) is not None:
        return codes.GRANULARITY
    return code


def count_refusals(view: ClusterView, options: PlanOptions, excluded: ExcludedPgs,
                   rest_code: str) -> Optional[Refusals]:
    """Counts the checks that reject moves of the fullest OSD's shards, with the options of
    automatic plans. Returns None if the bounds are unknown or the state's reason needs no
    counts."""
    bounds = view.utilization_bounds
    fullest = fullest_osds(view, options.device_classes)
    if bounds is None or not fullest or rest_code not in COUNTED:
        return None
    first = fullest[0]
    census = RefusalCensus(view.snapshot, options, bounds, excluded.codes).of_osd(
        first.osd.id, MOST_PAIRS)
    code = idle_code(census, rest_code)
    if first.above < NEAR:
        code = bound_code(first.osd_set)
    return Refusals(code, rest_code, first.osd.id, census, excluded.seconds_of(code))


_PGS_A_PIECE = 1000   # before it gives way again: about a millisecond
#: A class nearer than this to its bound, in utilization, is not stuck.
_USUAL_GAP = 0.01
SAME = 0.0005   # utilizations that differ by less count as equal
#: Added to a larger gap that is no more than one shard of the OSD.
_WHOLE_SHARD = ", no more than one whole shard"
#: OSDs that a sentence names before it only counts the rest.
_NAMED = 3
#: The reason of an idle state after a plan that found nothing to do.
NOTHING_LEFT = "no move improves the placement"


class BoundGap(NamedTuple):
    """The gap between the fullest OSD of a set and the set's bound; sorts by the excess."""

    excess: float   # utilization above what whole shards explain; 0 or less if they explain it
    above: float    # utilization above the bound
    osd: int
    device_class: str   # the name of the set
    rebuilding: str = ""   # why one of its pools waits for a rebuild; empty if none does

    def sentence(self, limited: bool = False, when: str = "") -> str:
        """Returns the gap for people. `limited`: the bound is that of moves of some pools alone.
        `when`: of the utilization, if not now."""
        bound = "what moves of the pools in pool_ids could reach" if limited else "the bound"
        fullest = f"osd.{self.osd}, the fullest of class {self.device_class}{when}, is"
        if self.above < -SAME:   # only lowered weights do that
            return (f"{fullest} {-100.0 * self.above:.1f} points below {bound}, which keeps lowered"
                    " weights")
        return f"{fullest} {max(0.0, 100.0 * self.above):.1f} points above {bound}"


def bound_gaps(view: ClusterView, bounds: Optional[UtilizationBounds],
               device_classes: Optional[FrozenSet[str]],
               rebuilding: Mapping[int, str] = {}) -> List[BoundGap]:
    """Returns the gap of each set whose bound is known.

    `device_classes`: the classes that are balanced, None for all. A set whose fullest OSD is of
    another class is left out. The bound is computed as if shards could be split, so a gap of one
    shard is normal. `rebuilding`: pool id → why it waits for a rebuild.
    """
    if bounds is None:
        return []
    osds = view.snapshot.osds
    fullest: Dict[int, str] = {}   # OSD → its set
    for name, usage in view.classes_soon.items():
        if name not in bounds.highest:
            continue
        device_class = osds[usage.fullest_osd].device_class
        if device_classes is None or device_class in device_classes:
            fullest[usage.fullest_osd] = name
    shards: Dict[int, List[int]] = {osd: [] for osd in fullest}
    waiting = dict.fromkeys(fullest, "")
    for pg in piecewise(view.snapshot.pgs.values(), _PGS_A_PIECE):
        for osd in shards.keys() & pg.up:
            shards[osd].append(view.snapshot.shard_bytes(pg, osd, pg.up))
            waiting[osd] = rebuilding.get(pg.pool, waiting[osd])
    found: List[BoundGap] = []
    for osd, name in fullest.items():
        above = view.classes_soon[name].max - bounds.highest[name]
        mean_shard = sum(shards[osd]) / max(1, len(shards[osd]))
        explained = max(_USUAL_GAP, mean_shard / osds[osd].size_bytes)
        found.append(BoundGap(above - explained, above, osd, name, waiting[osd]))
    return found


def idle_state(view: ClusterView, bounds: Optional[UtilizationBounds],
               device_classes: Optional[FrozenSet[str]], idle: Verdict,
               searched_at: Optional[float],
               counted: Callable[[str], Optional[Refusals]], limited: bool,
               rebuilding: Mapping[int, str]) -> Verdict:
    """Returns the state of the loop while nothing is sent because of `idle`.

    `searched_at`: when the plan that found nothing was made, in seconds since the epoch. `counted`:
    returns the counts for the code of a state that is stuck. `limited`: `bounds` are those of moves
    of some pools alone. `rebuilding`: as in `bound_gaps`.
    """
    gaps = bound_gaps(view, bounds, device_classes, rebuilding)
    waits_for = _unknown_figures(view)
    reason = "; ".join([idle.reason] + waits_for)
    if not gaps:
        if waits_for:
            return Verdict(codes.STALE_STATISTICS, reason, state=WAITING)
        return Verdict(idle.code, reason, state=BALANCED)
    # what waits for a rebuild hides no OSD that is stuck
    far = max(gaps, key=lambda gap: (gap.excess > 0.0 and not gap.rebuilding, gap))
    first = [one.osd_set.name for one in fullest_osds(view, device_classes)[:1]]
    # `explain` begins with the same
    shown = next((gap for gap in gaps if gap.device_class in first), far)
    when = " once all has arrived" if view.movements else ""
    sentence = shown.sentence(limited, when)
    if far.excess <= 0.0:
        said = f"{reason}; {sentence}"
        if shown.above > _USUAL_GAP:
            said += _WHOLE_SHARD
        stale = view.snapshot.stale_osds
        if stale and stale >= view.snapshot.alive:   # nobody reports
            return Verdict(codes.STALE_STATISTICS, said, state=WAITING)
        return Verdict(idle.code, said, state=BALANCED)
    if far.rebuilding:
        return Verdict(codes.DEGRADED, f"{sentence}, and Ceph rebuilds missing shards first:"
                       f" {far.rebuilding}", state=BLOCKED)
    code = codes.STALE_STATISTICS if waits_for else idle.code
    if code == codes.BALANCED:   # it is not balanced
        code = codes.GRANULARITY
    refusals = counted(code)
    rejected = ""
    if refusals is not None:
        code = refusals.code
        rejected = refusals.sentence()
    if code == codes.DRIFT and far.excess < _USUAL_GAP:   # a whole plan could lower it
        return Verdict(code, f"{reason}; {sentence}", state=BALANCED)
    if code in codes.FOR_A_TIME:
        why = rejected
    else:
        why = _why_stuck(view, idle, reason, waits_for, searched_at)
        if rejected:
            why += f"; {rejected}"
    state = WAITING if code == codes.PG_NUM_CHANGING else STUCK
    return Verdict(code, f"{sentence}, and {why}; 'ceph equilibrium explain' tells why",
                   state=state, refusals=refusals)


def _unknown_figures(view: ClusterView) -> List[str]:
    """Returns the figures that the loop waits for, as clauses for people."""
    skipped = view.snapshot.skipped
    found: List[str] = []
    for why in reasons.UNKNOWN:
        if skipped.get(why):
            found.append(f"{skipped[why]} PGs wait: {why}")
    silent = sorted(view.snapshot.stale_osds)
    if silent:
        found.append(f"the figures of {len(silent)} OSDs are old, they have stopped reporting:"
                     f" {named_osds(silent, _NAMED)}")
    return found


def _why_stuck(view: ClusterView, idle: Verdict, reason: str, waits_for: List[str],
               searched_at: Optional[float]) -> str:
    """Returns why the fullest OSD stays above its bound, as a clause for people."""
    why = reason
    if idle.code == codes.BALANCED:   # it is not: the plan found no legal move
        helped = "helps it"
        if searched_at is not None:
            helped = f"helped it at {format_time(searched_at)} UTC"
        why = "; ".join([f"no legal move {helped}"] + waits_for)
    staying = view.snapshot.skipped.get(reasons.OMAP_ON_SMALL_OSD)
    if staying:
        why += f"; {staying} PGs stay: {reasons.OMAP_ON_SMALL_OSD}"
    return why
