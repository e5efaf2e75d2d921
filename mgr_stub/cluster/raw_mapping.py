"""Raw mappings of all PGs, updated when the CRUSH map, the reweights or the pools change.

Loading computes nothing: the raw mapping implied by the state file stays until an event can affect
the PG. Then CRUSH is computed for it with the first map and the map after the event (see
osdmap/raw_mapping_update.py). A lower reweight affects only PGs that have the OSD, since CRUSH's
other draws stay the same; every other change affects all PGs of pools whose rule reaches it.

As with CRUSH, a raw mapping depends on the map alone and not on the maps between: it is worked out
from what the PG had at first, so that an OSD which returns has the PGs that it had.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

from ..crush.hashes import NONE, WEIGHT_ONE, stable_mod
from ..crush.mapper import Mapper, raw_pg_to_osds
from ..errors import invalid
from ..osdmap import upmap
from ..osdmap.crush_map import CrushMap
from ..osdmap.raw_mapping_update import follow
from ..osdmap.upmap import Mapping
from .pg import Pg


class Topology(NamedTuple):
    """The part of the map that raw mappings depend on."""

    crush: CrushMap
    osds: Dict[int, Dict[str, Any]]
    pools: Dict[int, Dict[str, Any]]

    def reweights(self) -> Dict[int, int]:
        """Returns the 16.16 reweights of the OSDs that exist."""
        return {osd: int(float(entry["weight"]) * WEIGHT_ONE)
                for osd, entry in self.osds.items()}


class _Change:
    """What differs between two maps, as far as raw mappings depend on it."""

    def __init__(self, first: Topology, before: Topology, after: Topology) -> None:
        self.first = first
        self.before = before
        self.after = after
        self.first_weights, self.new_weights = first.reweights(), after.reweights()
        #: OSDs with a lower reweight than before; removed ones have 0
        self.lowered, raised = _weight_changes(before.reweights(), self.new_weights)
        #: the same since the first map
        self.lowered_since_first, _ = _weight_changes(self.first_weights, self.new_weights)
        self.reached = {pool_id for pool_id, pool in after.pools.items()
                        if _reaches(pool, before, after, raised)}
        #: pools of another rule: CRUSH places their PGs again
        self.replaced = {pool_id for pool_id, pool in after.pools.items() if int(
            before.pools.get(pool_id, pool)["crush_rule"]) != int(pool["crush_rule"])}
        self.folded = {pool_id for pool_id, pool in after.pools.items() if pool_id in before.pools
                       and _pgp_num(pool) != _pgp_num(before.pools[pool_id])}


class RawMapping:
    """Computes CRUSH; caches the mapper of the latest CRUSH map."""

    def __init__(self) -> None:
        #: The map before the first change.
        self._first: Optional[Topology] = None
        #: The change that was last foreseen.
        self._foreseen: Optional[_Change] = None
        self._mapper: Optional[Mapper] = None
        self._mapper_crush: Optional[CrushMap] = None
        #: Number of raw mappings computed so far.
        self.computed = 0

    def compute(self, topology: Topology, pool_id: int, position: int,
                reweights: Dict[int, int]) -> Mapping:
        """Returns CRUSH's result for a PG; StubError if the map has features not supported here."""
        if self._mapper is None or self._mapper_crush is not topology.crush:
            self._mapper = Mapper(topology.crush.as_dump())
            self._mapper_crush = topology.crush
        self.computed += 1
        try:
            return raw_pg_to_osds(self._mapper, topology.pools[pool_id], position, reweights,
                                  topology.osds.__contains__)
        except ValueError as error:
            raise invalid(f"CRUSH cannot be computed: {error}") from None

    def follow(self, pgs: Sequence[Pg], before: Topology, after: Topology) -> Dict[str, Mapping]:
        """Returns {pgid: raw mapping} of the PGs whose raw mapping changes from one map to the
        other.
        """
        change = self._change(before, after)
        affected = [pg for pg in _affected(pgs, change) if pg.raw is not None]
        # all with the first map at first: the mapper is made for one CRUSH map at a time
        for pg in affected:
            self._find_origin(pg, change)
        raws = {pg.pgid: pg.raw for pg in pgs if pg.raw is not None}
        changed: Dict[str, Mapping] = {}
        for pg in affected:
            pg.crush = self.compute(after, *pg.order, change.new_weights)
            if pg.pool_id in change.replaced:
                pg.origin = pg.crush, pg.crush
            raw = _followed(pg, pg.crush, change, raws)
            if raw != pg.raw:
                changed[pg.pgid] = raws[pg.pgid] = raw
        return changed

    def foreseen(self, pg: Pg, before: Topology, after: Topology) -> Mapping:
        """Returns the raw mapping that `follow` would give a PG; changes no mapping. The PG is not
        folded onto another one, and its rule stays.
        """
        last = self._foreseen
        if last is None or last.before is not before or last.after is not after:
            last = self._foreseen = self._change(before, after)
        if not list(_affected([pg], last)):
            return pg.raw or ()
        self._find_origin(pg, last)
        return _followed(pg, self.compute(after, *pg.order, last.new_weights), last, {})

    def _change(self, before: Topology, after: Topology) -> _Change:
        self._first = self._first or before
        return _Change(self._first, before, after)

    def _find_origin(self, pg: Pg, change: _Change) -> None:
        """Computes CRUSH with the first map for a PG that no change has affected so far."""
        if pg.crush is None:
            pg.crush = self.compute(change.first, *pg.order, change.first_weights)
        pg.origin = pg.origin or (pg.raw or (), pg.crush)


def _followed(pg: Pg, now: Mapping, change: _Change, raws: Dict[str, Mapping]) -> Mapping:
    """Returns the raw mapping after a change; `now`: CRUSH's result then."""
    after, (raw, known) = change.after, pg.origin or ((), ())
    pool = after.pools[pg.pool_id]
    parent = stable_mod(pg.order[1], int(pool.get("pg_placement_num") or pool["pg_num"]))
    if parent != pg.order[1]:
        # such a PG has the mapping of the PG that pgp_num folds it onto
        of_parent = raws.get(f"{pg.pool_id}.{parent:x}")
        if of_parent is not None:
            return of_parent
    left = set(known) - set(now)
    if left and left <= change.lowered_since_first and left.isdisjoint(raw):
        known = now   # only OSDs that lost weight have left CRUSH's result: they are not here
    if known == now and all(_may_serve(osd, pool, after) for osd in raw):
        return raw
    return follow(raw, known, now, lambda osd: _may_serve(osd, pool, after),
                  _legality(raw, pool, after))


def _may_serve(osd: int, pool: Dict[str, Any], topology: Topology) -> bool:
    """Returns True if a raw mapping may contain the OSD; a hole is allowed."""
    if osd == NONE:
        return True
    entry = topology.osds.get(osd)
    if entry is None or float(entry["weight"]) <= 0:
        return False
    return topology.crush.rule_weights(int(pool["crush_rule"])).get(osd, 0.0) > 0


def _legality(raw: Mapping, pool: Dict[str, Any],
              topology: Topology) -> Callable[[Sequence[int]], bool]:
    rule = int(pool["crush_rule"])
    size = int(pool["size"])
    # the monitor's check rejects every mapping of some rules, and says nothing about them
    is_checkable = upmap.verify(topology.crush, rule, size, raw) is None

    def legal(osds: Sequence[int]) -> bool:
        present = [osd for osd in osds if osd != NONE]
        if len(set(present)) != len(present):
            return False
        if not is_checkable:
            return True
        return upmap.verify(topology.crush, rule, size, osds) is None
    return legal


# -- PGs that an event can affect -----------------------------------------------------------------

def _affected(pgs: Sequence[Pg], change: _Change) -> Iterator[Pg]:
    """Yields the PGs whose CRUSH result may differ; those onto which others are folded come first.
    """
    before = change.before
    after = change.after
    lowered = change.lowered
    reached = change.reached
    folded = change.folded
    if not lowered:
        pgs = [pg for pg in pgs if pg.pool_id in reached or pg.pool_id in folded]
    for pg in sorted(pgs, key=lambda pg: pg.order):
        pool = after.pools.get(pg.pool_id)
        if pool is None or pg.pool_id not in before.pools:
            continue
        is_reached = pg.pool_id in reached
        if not is_reached and pg.pool_id in folded:
            is_reached = _other_seed(pg, before.pools[pg.pool_id], pool)
        if is_reached or _maps_to(pg, lowered):
            yield pg


def _maps_to(pg: Pg, osds: Set[int]) -> bool:
    """Returns True if CRUSH chooses one of the OSDs for the PG, or did when it was read."""
    origin: Mapping = ()
    if pg.origin is not None:
        origin = pg.origin[0]
    return any(not osds.isdisjoint(mapping or ()) for mapping in (pg.raw, pg.crush, origin))


def _weight_changes(old: Dict[int, int], new: Dict[int, int]) -> Tuple[Set[int], Set[int]]:
    """Returns the OSDs with a lower and the OSDs with a higher reweight than before; removed ones
    have 0.
    """
    lowered: Set[int] = set()
    raised: Set[int] = set()
    for osd in set(old) | set(new):
        change = min(new.get(osd, 0), WEIGHT_ONE) - min(old.get(osd, 0), WEIGHT_ONE)
        if change < 0:
            lowered.add(osd)
        elif change > 0:
            raised.add(osd)
    return lowered, raised


def _reaches(pool: Dict[str, Any], before: Topology, after: Topology, raised: Set[int]) -> bool:
    """Returns True if the pool's rule can choose a raised OSD or goes through a changed bucket."""
    rule = int(pool["crush_rule"])
    serving = after.crush.rule_weights(rule)
    if any(osd in serving for osd in raised):
        return True
    old = before.pools.get(int(pool["pool"]), pool)
    if (int(old["crush_rule"]), int(old["size"])) != (rule, int(pool["size"])):
        return True
    if after.crush is before.crush:
        return False
    return before.crush.shape_below(rule) != after.crush.shape_below(rule)


def _other_seed(pg: Pg, old: Dict[str, Any], new: Dict[str, Any]) -> bool:
    """Returns True if a change of pgp_num folds the PG onto another one than before."""
    position = pg.order[1]
    return stable_mod(position, _pgp_num(old)) != stable_mod(position, _pgp_num(new))


def _pgp_num(pool: Dict[str, Any]) -> int:
    return int(pool.get("pg_placement_num") or pool["pg_num"])
