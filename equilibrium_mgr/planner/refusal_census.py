"""Counts why shards do not move: for each shard of an OSD and each target of its rule, the one code
by which the planner's own checks refuse the move, or by which the move gains nothing.
"""
from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.placement import NO_OSD
from ..plan.options import PlanOptions
from ..plan.usage import share_limits_within
from ..runtime.time_slice import give_way
from ..snapshot import reason_codes as codes
from ..snapshot.model import Pg, Snapshot, without_shares
from .bound.lower_bound import UtilizationBounds
from .objective import AIM_WEIGHTS
from .state.cost_model import NOISE, evenness_cost
from .state.placement_state import PlacementState, pg_refusal

#: What rules, not options or states, forbid, and targets that are as full as the source: no reason
#: by itself, as there are always such pairs.
_STRUCTURAL = frozenset((codes.FAILURE_DOMAIN, codes.HOLDS_SHARD, codes.EXCHANGE, codes.BALANCED))

#: One shard of a PG, and where it is.
PgShard = Tuple[Pg, int]


class RefusalCount(NamedTuple):
    """How many pairs of a shard and a target one code refuses."""

    code: str
    pairs: int
    useful: int     # those whose move would make the utilizations more even
    example: Tuple[str, int, int]   # (pgid, source, target) of the first of them
    pools: Mapping[int, int]        # pool id → pairs
    targets: Tuple[int, ...]        # OSDs, the lowest ids first


class Census(NamedTuple):
    """The counts, the most frequent code first. They add up to `pairs`."""

    counts: Tuple[RefusalCount, ...]
    shards: int          # all that were asked for
    counted: int         # shards that were counted: fewer where there are too many pairs
    pairs: int           # of a counted shard and a target
    reason_code: str     # that refuses most of the pairs that would gain something

    def of(self, code: str) -> Optional[RefusalCount]:
        """The count of a code; None where it refuses nothing."""
        return next((found for found in self.counts if found.code == code), None)


class RefusalCensus:
    """Asks the placement of a planner that has just begun: limits and legality are its own.

    `code_of`: PGs that are left alone for a reason that plan options do not know.
    """

    def __init__(self, snapshot: Snapshot, options: PlanOptions, bounds: UtilizationBounds,
                 code_of: Mapping[str, str]) -> None:
        snapshot = snapshot if options.respect_weights else without_shares(snapshot)
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
        """The census of the shards of an OSD, of one pool only where it is given."""
        found: List[PgShard] = []
        for pg in self._snapshot.pgs.values():
            give_way()
            if osd in pg.up and (pool is None or pg.pool == pool):
                found.append((pg, osd))
        return self.of_shards(found, most_pairs)

    def of_pg(self, pg: Pg, most_pairs: int) -> Census:
        """The census of all shards of a PG."""
        return self.of_shards([(pg, osd) for osd in pg.up if osd != NO_OSD], most_pairs)

    def of_shards(self, shards: Sequence[PgShard], most_pairs: int) -> Census:
        """The census of the given shards, of the first of them where they have more pairs."""
        found: Dict[str, List[Tuple[Tuple[str, int, int], int, bool]]] = {}
        pairs = counted = 0
        for pg, source in shards:
            if pairs >= most_pairs:
                break
            counted += 1
            ask = self._refusal_of(pg, source)
            rule = self._snapshot.pools[pg.pool].rule
            position = pg.up.index(source)
            weights = (rule.block_at(position).weights
                       if rule is not None and position < rule.size else ())
            for target in weights:   # the OSDs that the rule of the shard names
                if target == source or target not in self.placement.index_of:
                    continue
                give_way()
                pairs += 1
                gain = self._gain(pg, source, target)
                code = ask(target) or self._code_of_allowed(gain, pg, source, target)
                found.setdefault(code, []).append(
                    ((pg.pgid, source, target), pg.pool, gain > NOISE))
        counts = tuple(sorted((RefusalCount(
            code, len(rows), sum(useful for _, _, useful in rows), rows[0][0],
            Counter(pool for _, pool, _ in rows), tuple(sorted({pair[2] for pair, _, _ in rows})))
            for code, rows in found.items()), key=lambda c: (-c.pairs, c.code)))
        return Census(counts, len(shards), counted, pairs, _reason(counts))

    def answers(self, pg: Pg, source: int, target: int) -> Optional[Tuple[List[str], str, float]]:
        """(the codes of all checks that refuse the move of a shard, in their order; the code of the
        move if none did; by how much it would be more even). None where the planner does not know
        the PG, or an OSD."""
        placement, number = self.placement, self._numbers.get(pg.pgid)
        own, there = placement.index_of.get(source), placement.index_of.get(target)
        if number is None or own is None or there is None:
            return None
        refused, gain = list(placement.refusals(number, own, there)), self._gain(pg, source, target)
        room = placement.room_refusal(there, self.size_there(pg, source, target))
        if room is not None and placement.is_usable[there]:   # else the limit is nothing
            refused.append(room)
        return refused, self._code_of_allowed(gain, pg, source, target), gain

    def _refusal_of(self, pg: Pg, source: int) -> Callable[[int], Optional[str]]:
        """A function: target → why the shard may not go there, or None."""
        placement = self.placement
        own, number = placement.index_of.get(source), self._numbers.get(pg.pgid)
        # why the PG stays, wherever it could go
        stays = (codes.RULE_UNKNOWN if self._snapshot.pools[pg.pool].rule is None
                 else pg_refusal(pg, self._options))
        if stays in (None, codes.IMMOVABLE):
            stays = codes.IN_FLIGHT if pg.is_moving else stays or self._code_of.get(pg.pgid)
        if stays is None and own is not None and not placement.is_source[own]:
            sources = self._options.sources
            stays = (codes.POOL_EXCLUDED if sources is None or source in sources
                     else codes.OSD_EXCLUDED)
        if stays is not None or own is None or number is None:
            return lambda _target: stays or codes.IMMOVABLE

        def ask(target: int) -> Optional[str]:
            there = placement.index_of[target]
            return (placement.refusal(number, own, there)
                    or placement.room_refusal(there, self.size_there(pg, source, target)))
        return ask

    def size_there(self, pg: Pg, source: int, target: int) -> int:
        """Bytes that the PG's shard on the source would take on a target."""
        return self._snapshot.shard_bytes(
            pg, target, [target if osd == source else osd for osd in pg.up])

    def _gain(self, pg: Pg, source: int, target: int) -> float:
        """By how much the planner's evenness term falls with the move of a shard."""
        return -self._rise(source, -self._snapshot.shard_bytes(pg, source, pg.up)) - self._rise(
            target, self.size_there(pg, source, target))

    def _rise(self, osd: int, more: int) -> float:
        """By how much the planner's evenness term rises with `more` bytes; 0 without figures."""
        i, placement = self.placement.index_of.get(osd), self.placement
        if i is None:
            return 0.0
        used, size = placement.used_bytes[i], placement.size_bytes[i]
        bound = self._bound.get(osd, 0.0)
        return (evenness_cost(used + more, size, bound, self._underfull_weight)
                - evenness_cost(used, size, bound, self._underfull_weight))

    def _code_of_allowed(self, gain: float, pg: Pg, source: int, target: int) -> str:
        """The code of a move that a plan may make."""
        a, b = (self._snapshot.osds[osd] for osd in (source, target))
        if gain > NOISE:   # the throttle sends nothing to a target that is nearfull
            return codes.NEARFULL if b.reaches(self._snapshot.nearfull_ratio) else codes.MIN_GAIN
        is_fuller = (a.target_utilization or 0.0) > (b.target_utilization or 0.0)
        return codes.GRANULARITY if is_fuller and pg.shard_bytes else codes.BALANCED


def _reason(counts: Sequence[RefusalCount]) -> str:
    """The code that refuses most of what would gain something; else the best that is left."""
    lifted = [found for found in counts if found.useful and found.code not in _STRUCTURAL]
    if lifted:
        return max(lifted, key=lambda found: (found.useful, found.pairs)).code
    if any(found.code == codes.GRANULARITY for found in counts):
        return codes.GRANULARITY
    useful = [found for found in counts if found.useful]
    return max(useful, key=lambda found: found.useful).code if useful else codes.BALANCED
