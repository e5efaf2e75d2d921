"""Counts why shards do not move.

For each shard of an OSD and each target of its rule there is one code: of the planner's own check
that rejects the move, or of the reason why no plan makes a move that is allowed.
"""
from __future__ import annotations

from collections import Counter, defaultdict
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD, replaced
from ..plan.options import PlanOptions
from ..plan.usage import share_limits_within
from ..runtime.time_slice import give_way
from ..snapshot import reason_codes as codes
from ..snapshot.model import Pg, Snapshot, without_shares
from .bound.lower_bound import UtilizationBounds
from .objective import AIM_WEIGHTS
from .state.cost_model import NOISE, evenness_cost
from .state.placement_state import PlacementState, pg_refusal

#: Codes of rules, not of options or states, and of targets as full as the source. There are always
#: such pairs, so that they alone are no reason.
_STRUCTURAL = frozenset((codes.FAILURE_DOMAIN, codes.HOLDS_SHARD, codes.EXCHANGE, codes.BALANCED))

#: One shard of a PG, and where it is.
PgShard = Tuple[Pg, int]


class RefusalCount(NamedTuple):
    """How many pairs of a shard and a target have one code."""

    code: str
    pairs: int
    useful: int     # pairs whose move would make the utilizations more even
    example: Tuple[str, int, int]   # (pgid, source, target) of the first pair
    pools: Mapping[int, int]        # pool id → pairs
    targets: Tuple[int, ...]        # OSDs, the lowest ids first


class Census(NamedTuple):
    """The counts, the most frequent code first. They add up to `pairs`."""

    counts: Tuple[RefusalCount, ...]
    shards: int          # all shards of the question
    counted: int         # shards that were counted: fewer if there are too many pairs
    pairs: int           # of a counted shard and a target
    reason_code: str     # why the shards stay; see _reason

    def of(self, code: str) -> Optional[RefusalCount]:
        """Returns the count of a code; None if no pair has it."""
        return next((found for found in self.counts if found.code == code), None)


class _Row(NamedTuple):
    """One pair of a shard and a target."""

    example: Tuple[str, int, int]   # (pgid, source, target)
    pool: int
    is_useful: bool


class RefusalCensus:
    """Asks the placement of a planner that has just begun: limits and legality are the planner's.

    `code_of`: pgid → reason code, of PGs that stay for a reason that plan options do not know.
    """

    def __init__(self, snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                 code_of: Mapping[str, str]) -> None:
        if not options.respect_weights:
            snapshot = without_shares(snapshot)
        self._snapshot = snapshot
        self._options = options
        self._code_of = code_of
        self.placement = PlacementState(snapshot, options)
        self.placement.set_share_limits(share_limits_within(snapshot, bounds.utilizations))
        self._bound = dict(bounds.utilizations)
        for osd_set in bounds.sets:
            self._bound.update(dict.fromkeys(osd_set.osds, osd_set.bound))
        self._underfull_weight = AIM_WEIGHTS[options.aim][0].underfull_weight
        #: pgid → number in the placement, of movable PGs
        self._numbers = {pg.pgid: number for number, pg in enumerate(self.placement.pgs)}

    def of_osd(self, osd: int, most_pairs: int, pool: Optional[int] = None) -> Census:
        """Returns the census of the shards of an OSD. `pool`: only the shards of this pool."""
        found: List[PgShard] = []
        for pg in self._snapshot.pgs.values():
            give_way()
            if osd in pg.up and (pool is None or pg.pool == pool):
                found.append((pg, osd))
        return self.of_shards(found, most_pairs)

    def of_pg(self, pg: Pg, most_pairs: int) -> Census:
        """Returns the census of all shards of a PG."""
        return self.of_shards([(pg, osd) for osd in pg.up if osd != NO_OSD], most_pairs)

    def of_shards(self, shards: Sequence[PgShard], most_pairs: int) -> Census:
        """Returns the census of the given shards, or of the first of them if these alone have
        `most_pairs` pairs."""
        found: Dict[str, List[_Row]] = defaultdict(list)
        pairs = counted = 0
        few_items = self.placement.has_few_upmap_pairs()
        for pg, source in shards:
            if pairs >= most_pairs:
                break
            counted += 1
            stays = self._why_it_stays(pg, source)
            for target in self._targets_of(pg, source):
                give_way()
                pairs += 1
                gain = self._gain(pg, source, target)
                code = (stays or self._refusal(pg, source, target)
                        or self._code_of_allowed(gain, pg, source, target))
                if code == codes.MIN_GAIN and few_items:   # one such move is not worth a plan
                    code = codes.UPMAP_ITEMS
                found[code].append(_Row((pg.pgid, source, target), pg.pool, gain > NOISE))
        counts = [_count(code, rows) for code, rows in found.items()]
        counts.sort(key=lambda count: (-count.pairs, count.code))
        return Census(tuple(counts), len(shards), counted, pairs, _reason(counts))

    def _targets_of(self, pg: Pg, source: int) -> Iterator[int]:
        """Yields the other OSDs that the take of the shard reaches, whether or not failure domains
        allow them."""
        rule = self._snapshot.pools[pg.pool].rule
        position = pg.up.index(source)
        if rule is None or position >= rule.size:
            return
        for target in rule.block_at(position).weights:
            if target != source and target in self.placement.index_of:
                yield target

    def answers(self, pg: Pg, source: int, target: int) -> Optional[Tuple[List[str], str, float]]:
        """Returns the codes of all checks that reject the move of a shard, in their order; the code
        that the move would have if none did; and by how much the evenness term falls with it.

        None if the planner does not know the PG or an OSD.
        """
        placement = self.placement
        number = self._numbers.get(pg.pgid)
        index_of = placement.index_of
        own = index_of.get(source)
        there = index_of.get(target)
        if number is None or own is None or there is None:
            return None
        refused = list(placement.refusals(number, own, there))
        gain = self._gain(pg, source, target)
        room = placement.room_refusal(there, self.size_there(pg, source, target))
        if room is not None and placement.is_usable[there]:   # an unusable OSD has a limit of 0
            refused.append(room)
        return refused, self._code_of_allowed(gain, pg, source, target), gain

    def _refusal(self, pg: Pg, source: int, target: int) -> Optional[str]:
        """Returns why a shard may not go to a target, or None."""
        placement = self.placement
        own = placement.index_of.get(source)
        number = self._numbers.get(pg.pgid)
        if own is None or number is None:
            return codes.IMMOVABLE
        there = placement.index_of[target]
        return (placement.refusal(number, own, there)
                or placement.room_refusal(there, self.size_there(pg, source, target)))

    def _why_it_stays(self, pg: Pg, source: int) -> Optional[str]:
        """Returns the code of the reason why a shard can go nowhere, or None."""
        if self._snapshot.pools[pg.pool].rule is None:
            return codes.RULE_UNKNOWN
        stays = pg_refusal(pg, self._options)
        if stays in (None, codes.IMMOVABLE):
            if pg.is_moving:
                return codes.IN_FLIGHT
            stays = stays or self._code_of.get(pg.pgid)
        if stays is not None:
            return stays
        own = self.placement.index_of.get(source)
        if own is None or self.placement.is_source[own]:
            return None
        sources = self._options.sources
        if sources is None or source in sources:   # the OSD is not of the device classes
            return codes.POOL_EXCLUDED
        return codes.OSD_EXCLUDED

    def size_there(self, pg: Pg, source: int, target: int) -> int:
        """Returns the bytes that the PG's shard on the source would take on a target."""
        up = replaced(pg.up, pg.up.index(source), target)
        return self._snapshot.shard_bytes(pg, target, up)

    def _gain(self, pg: Pg, source: int, target: int) -> float:
        """Returns by how much the planner's evenness term falls with the move of a shard."""
        leaving = self._rise(source, -self._snapshot.shard_bytes(pg, source, pg.up))
        return -leaving - self._rise(target, self.size_there(pg, source, target))

    def _rise(self, osd: int, more: int) -> float:
        """Returns by how much the planner's evenness term rises with `more` bytes; 0 if there are
        no figures of the OSD."""
        i = self.placement.index_of.get(osd)
        placement = self.placement
        if i is None:
            return 0.0
        used = placement.used_bytes[i]
        size = placement.size_bytes[i]
        bound = self._bound.get(osd, 0.0)
        return (evenness_cost(used + more, size, bound, self._underfull_weight)
                - evenness_cost(used, size, bound, self._underfull_weight))

    def _code_of_allowed(self, gain: float, pg: Pg, source: int, target: int) -> str:
        """Returns the code of the reason why no plan makes a move that is allowed."""
        snapshot = self._snapshot
        a = snapshot.osds[source]
        b = snapshot.osds[target]
        if gain > NOISE:
            if b.reaches(snapshot.nearfull_ratio):   # the throttle sends nothing there
                return codes.NEARFULL
            return codes.MIN_GAIN
        is_fuller = (a.target_utilization or 0.0) > (b.target_utilization or 0.0)
        if is_fuller and pg.shard_bytes:
            return codes.GRANULARITY
        return codes.BALANCED


def _count(code: str, rows: Sequence[_Row]) -> RefusalCount:
    """Returns the count of a code."""
    return RefusalCount(
        code=code,
        pairs=len(rows),
        useful=sum([row.is_useful for row in rows]),
        example=rows[0].example,
        pools=Counter([row.pool for row in rows]),
        targets=tuple(sorted({row.example[2] for row in rows})))


def _reason(counts: Sequence[RefusalCount]) -> str:
    """Returns the code of most of the pairs that would gain something, except codes that are no
    reason alone. If there is none, returns GRANULARITY if a pair has it, then BALANCED if no pair
    would gain, then the code of most of the others."""
    useful = [found for found in counts if found.useful]
    lifted = [found for found in useful if found.code not in _STRUCTURAL]
    if not lifted and codes.GRANULARITY in [found.code for found in counts]:
        return codes.GRANULARITY
    if not useful:
        return codes.BALANCED
    return max(lifted or useful, key=lambda found: (found.useful, found.pairs)).code
