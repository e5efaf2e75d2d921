"""What would lower a bound that no move can lower: smaller shards, capacity, weights, limits."""
from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ...planner.bound.lower_bound import FAILURE_DOMAIN, OsdSet
from ...planner.bound.whole_shards import pg_num_advice
from ...planner.refusal_census import Census
from ...runtime.formatting import format_bytes, format_percent, named
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd
from ..table import Row
from .reason import ExplainContext, Explanation

#: Less capacity than this ratio of a set is not worth a sentence.
_WORTH = 0.001
#: Devices are worth buying where so much more (a ratio of a set) lowers its bound by so much; so
#: are more PGs worth all that moves for them.
_MOST_MORE, WORTH_DOING = 1.0 / 3.0, 0.03
_NAMES_SHOWN = 5


def _advice(code: str, sentence: str, **figures: Any) -> Row:
    """One thing that an operator could change, JSON-ready; bytes and ratios."""
    return {"code": code, "sentence": sentence, "figures": figures}


def pg_num_advice_of(census: Census, osd_set: OsdSet, context: ExplainContext) -> List[Row]:
    """More PGs for the pool whose shards are most often larger than the difference."""
    found, snapshot = census.of(codes.GRANULARITY), context.snapshot
    pools = {} if found is None else found.pools
    for pool in sorted(pools, key=lambda number: (-pools[number], number))[:2]:
        for better in pg_num_advice(snapshot, osd_set, pool, context.max_pg_shards[0]):
            now = max(snapshot.osds[osd].target_utilization or 0.0 for osd in osd_set.osds)
            then = max(osd_set.bound, min(better.then, now))
            name = snapshot.pools[pool].name
            if now - then >= _WORTH:
                return [_advice(
                    codes.GRANULARITY, f"pg_num {better.pg_num} of pool {name} would lower the"
                    f" fullest OSD of class {osd_set.device_class} from {format_percent(now)}% to"
                    f" about {format_percent(then)}%",
                    pool=name, pg_num=better.pg_num, now_ratio=now, then_ratio=then)]
    return []


def domain_advice(osd_set: OsdSet, context: ExplainContext) -> Optional[Row]:
    """The capacity that brings the bound of a set down to the mean utilization of the set, where a
    failure domain that is too small sets the bound; None elsewhere."""
    binding, osds = osd_set.binding, context.snapshot.osds
    if binding.kind != FAILURE_DOMAIN:
        return None
    at_bound = [osds[osd] for osd in binding.osds]
    members = [osds[osd] for osd in osd_set.osds]
    size, used = _sums(at_bound)
    all_size, all_used = _sums(members)
    # (used of those at the bound) ÷ (their size + more) = (all that is used) ÷ (all sizes + more)
    if all_used <= used or size <= 0:
        return None
    held = osd_set.bound * size
    more = (held * all_size - all_used * size) / (all_used - held)
    then = all_used / (all_size + more)
    if not 0.0 < more < _MOST_MORE * all_size or osd_set.bound - then < WORTH_DOING or (
            not context.is_settled):
        return None
    where = named(sorted({osd.host or f"osd.{osd.id}" for osd in at_bound}), _NAMES_SHOWN)
    return _advice(
        codes.BOUND_DOMAIN, f"{format_bytes(more)} more on {where}, or on new hosts, would lower"
        f" the bound from {format_percent(osd_set.bound)}% to {format_percent(then)}%",
        bytes=format_bytes(more), capacity_bytes=int(more), buckets=where,
        now_ratio=osd_set.bound, then_ratio=then, bound=f"{format_percent(then)}%")


def _held_advice(osd_set: OsdSet, context: ExplainContext) -> Optional[Row]:
    """The room that lowered weights cost a set; None where none does."""
    members = [context.snapshot.osds[osd] for osd in osd_set.osds]
    held = [osd for osd in members if osd.share < 1.0]
    unused = sum(osd.size_bytes - osd.capacity_bytes for osd in held)
    on_devices = sum(osd.device_bytes(osd.size_bytes - osd.capacity_bytes) for osd in held)
    size, used = _sums(members)
    if not held or unused < _WORTH * size:
        return None
    return _advice(
        codes.REWEIGHT, f"weights of {named([f'osd.{osd.id}' for osd in held], _NAMES_SHOWN)} keep"
        f" {format_bytes(on_devices)} of class {osd_set.device_class} unused:"
        f" {format_percent(used / size)}% if all were filled by size,"
        f" {format_percent(used / (size - unused))}% now",
        unused_bytes=on_devices, osds=[osd.id for osd in held], then_ratio=used / size,
        now_ratio=used / (size - unused))


def advice_for(osd_set: OsdSet, reason: Explanation, context: ExplainContext) -> List[Row]:
    """All that applies to a set; more PGs only where whole shards are the reason."""
    found: List[Optional[Row]] = [domain_advice(osd_set, context),
                                  _held_advice(osd_set, context)]
    if reason.code == codes.GRANULARITY and reason.census is not None:
        found += pg_num_advice_of(reason.census, osd_set, context)
    return [one for one in found if one is not None]


def _sums(osds: List[Osd]) -> Tuple[int, int]:
    """(bytes of all sizes, bytes used once all has arrived)."""
    return sum(osd.size_bytes for osd in osds), sum(osd.target_bytes for osd in osds)
