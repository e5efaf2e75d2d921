"""What refuses the moves that would lower the fullest OSD, where a plan has found nothing to do."""
from __future__ import annotations

from typing import FrozenSet, List, Mapping, NamedTuple, Optional, Tuple

from ..execution.cooldown import ExcludedPgs
from ..plan.options import PlanOptions
from ..planner.bound.lower_bound import FAILURE_DOMAIN, OsdSet
from ..planner.refusal_census import Census, RefusalCensus
from ..runtime.formatting import plural
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


#: Code → what is so of the targets that it refuses.
_CLAUSES: Mapping[str, str] = {
    codes.FILL_LIMIT: "would pass fill_limit",
    codes.REWEIGHT: "would pass the share that their weights leave them",
    codes.NEARFULL: "are nearfull",
    codes.FAILURE_DOMAIN: "are in a failure domain that has its shards of the PG",
    codes.HOLDS_SHARD: "hold a shard of the PG",
    codes.TARGET_UNAVAILABLE: "are down, out, being drained or without statistics",
    codes.PG_COUNT: "have all the PG shards that mon_max_pg_per_osd allows",
    codes.UPMAP_ITEMS: "would need more pairs of upmap items than max_upmap_items allows",
    codes.EXCHANGE: "cannot be had by upmap items",
    codes.POOL_EXCLUDED: "are not used, as pool_ids or device_classes leave them out",
    codes.OSD_EXCLUDED: "are not used, as filters leave the OSD or them out",
    codes.RULE_UNKNOWN: "are not used, as the CRUSH rule is not understood",
    codes.REJECTED: "are not used, as the monitor did not keep the upmap items",
    codes.GIVEN_UP: "are not used, as the move has waited for longer than max_wait",
    codes.MISPREDICTED: "are not used, as shards of the pool took more than predicted",
    codes.PG_NUM_CHANGING: "wait, as pg_num is changing",
    codes.COOLDOWN: "wait for pg_cooldown",
    codes.IN_FLIGHT: "wait, as the PG is moving",
    codes.BALANCED: "are as full already"}


class Fullest(NamedTuple):
    """The fullest OSD of a set, and how far it is above the set's bound."""

    osd_set: OsdSet
    osd: Osd
    above: float


class Refusals(NamedTuple):
    """Why nothing lowers the fullest OSD, as counted when the loop came to rest."""

    code: str           # the one reason, of snapshot/reason_codes.py
    rest_code: str      # that of the state before it was counted
    osd: int
    census: Census      # of all shards on it
    excluded: ExcludedPgs
    #: PG shards per OSD that plans keep to, and at which OSDs refuse more; 0: no limit
    max_pg_shards: Tuple[int, int]

    def sentence(self) -> str:
        """The counts of the reason, for people; empty where nothing refuses the moves."""
        found, census = self.census.of(self.code), self.census
        if found is None:
            return ""
        where = (f"{found.pairs} of the {census.pairs} targets for the"
                 f" {plural(census.counted, 'shard')} on osd.{self.osd}")
        if self.code == codes.GRANULARITY:
            return f"whole shards are larger than the difference to {where}"
        told = (codes.MIN_GAIN, codes.IMMOVABLE)   # by the state's own sentence
        clause = _CLAUSES.get(self.code, "may not be taken for now")
        return "" if self.code in told else f"{where} {clause}"


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
    return Refusals(code, rest_code, fullest[0].osd.id, census, excluded,
                    (options.max_pg_shards_per_osd, options.max_pg_shards_hard))
