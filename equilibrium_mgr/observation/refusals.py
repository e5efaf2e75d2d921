"""What refuses the moves that would lower the fullest OSD, where a plan has found nothing to do."""
from __future__ import annotations

from typing import FrozenSet, List, NamedTuple, Optional

from ..execution.cooldown import ExcludedPgs
from ..execution.verdict import Refusals
from ..plan.options import PlanOptions
from ..planner.bound.lower_bound import FAILURE_DOMAIN, OsdSet
from ..planner.refusal_census import Census, RefusalCensus
from ..snapshot import reason_codes as codes
from ..snapshot.model import Osd
from .cluster_view import ClusterView

#: Pairs of a shard and a target that are counted at most: about half a second.
MOST_PAIRS = 40_000
#: Nearer to its bound than this (a ratio), an OSD is as low as it can be.
NEAR = 0.005
#: Codes of a state at rest that the counts tell more exactly.
COUNTED = frozenset((codes.BALANCED, codes.GRANULARITY, codes.MIN_GAIN, codes.IMMOVABLE,
                     codes.NOT_READY))



class Fullest(NamedTuple):
    """The fullest OSD of a set, and how far it is above the set's bound."""

    osd_set: OsdSet
    osd: Osd
    above: float


def fullest_osds(view: ClusterView, device_classes: Optional[FrozenSet[str]]) -> List[Fullest]:
    """One for each set, the farthest above its bound first; OSDs of classes that device_classes
    leaves out do not count."""
    bounds, osds_of = view.utilization_bounds, view.snapshot.osds
    found: List[Fullest] = []
    for osd_set in bounds.sets if bounds is not None else ():
        chosen = [osds_of[osd] for osd in osd_set.osds
                  if device_classes is None or osds_of[osd].device_class in device_classes]
        if chosen:
            worst = max(chosen, key=lambda o: (o.target_utilization or 0.0, -o.id))
            found.append(Fullest(osd_set, worst, (worst.target_utilization or 0.0) - osd_set.bound))
    return sorted(found, key=lambda fullest: -fullest.above)


def bound_code(osd_set: OsdSet) -> str:
    """The code of the reason for which nothing is below the set's bound."""
    return codes.BOUND_DOMAIN if osd_set.binding.kind == FAILURE_DOMAIN else codes.BOUND_CAPACITY


def settled_code(census: Census, rest_code: str) -> str:
    """The code of a census where a plan has found nothing to do: what is allowed then gains less
    than it costs, for shards are whole, or less than min_gain."""
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
    return Refusals(code, rest_code, fullest[0].osd.id, census, excluded.seconds,
                    (options.max_pg_shards_per_osd, options.max_pg_shards_hard))
