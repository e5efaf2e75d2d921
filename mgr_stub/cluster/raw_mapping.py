"""Raw mappings that follow the CRUSH map, the reweights and the pools.

Loading computes nothing: what the state file implies is the truth until an event can touch a PG.
Only then CRUSH is computed for it, with the map before and with the map after (see following.py).
Which PGs an event can touch: a lower reweight only those that have the OSD, since CRUSH's other
draws stay as they are; everything else all PGs of the pools whose rule reaches what has changed.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional, Sequence, Set, Tuple

from ..crush.mapper import Mapper
from ..crush.placement_seed import stable_mod
from ..crush.pool_mapping import raw_pg_to_osds
from ..errors import invalid
from ..osdmap import upmap
from ..osdmap.crush_map import CrushMap
from ..osdmap.raw_mapping_update import follow
from ..osdmap.upmap import NONE, Mapping
from .pg import Pg

_WEIGHT_ONE = 0x10000


class Topology(NamedTuple):
    """What raw mappings follow from."""

    crush: CrushMap
    osds: Dict[int, Dict[str, Any]]
    pools: Dict[int, Dict[str, Any]]

    def reweights(self) -> Dict[int, int]:
        """16.16 reweights of the OSDs that exist."""
        return {osd: int(float(entry["weight"]) * _WEIGHT_ONE)
                for osd, entry in self.osds.items()}


class RawMapping:
    """Computes CRUSH for one topology after the other."""

    def __init__(self) -> None:
        self._mapper: Optional[Mapper] = None
        self._mapper_crush: Optional[CrushMap] = None
        #: How many raw mappings have been computed.
        self.computed = 0

    def compute(self, topology: Topology, pool_id: int, position: int,
                reweights: Dict[int, int]) -> Mapping:
        """CRUSH's answer for a PG; StubError if the map has what is not computed here."""
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
        """{pgid: raw mapping} of the PGs whose raw mapping changes from one map to the other."""
        touched = [pg for pg in _touched(pgs, before, after) if pg.raw is not None]
        old_weights, new_weights = before.reweights(), after.reweights()
        # all with the old map first: the mapper is made for one CRUSH map at a time
        for pg in touched:
            if pg.crush is None:
                pg.crush = self.compute(before, *pg.order, old_weights)
        raws = {pg.pgid: pg.raw for pg in pgs if pg.raw is not None}
        changed: Dict[str, Mapping] = {}
        lowered, _ = _weight_changes(before, after)
        for pg in touched:
            known, pg.crush = pg.crush or (), self.compute(after, *pg.order, new_weights)
            left = set(known) - set(pg.crush)
            if left and left <= lowered and left.isdisjoint(pg.raw or ()):
                known = pg.crush  # who loses weight has nothing here to give away
            raw = self._followed(pg, known, after, raws)
            if raw != pg.raw:
                changed[pg.pgid] = raws[pg.pgid] = raw
        return changed

    def _followed(self, pg: Pg, known: Mapping, after: Topology,
                  raws: Dict[str, Mapping]) -> Mapping:
        pool = after.pools[pg.pool_id]
        parent = stable_mod(pg.order[1], int(pool.get("pg_placement_num") or pool["pg_num"]))
        if parent != pg.order[1]:
            # such PGs lie where the one lies that they are folded onto, whatever CRUSH says
            of_parent = raws.get(f"{pg.pool_id}.{parent:x}")
            if of_parent is not None:
                return of_parent
        raw = pg.raw or ()
        now = pg.crush or ()
        if known == now and all(_may_serve(osd, pool, after) for osd in raw):
            return raw
        return follow(raw, known, now, lambda osd: _may_serve(osd, pool, after),
                      _legality(raw, pool, after))


def _may_serve(osd: int, pool: Dict[str, Any], topology: Topology) -> bool:
    """Whether a raw mapping may have the OSD at all; a hole may stay."""
    if osd == NONE:
        return True
    entry = topology.osds.get(osd)
    return (entry is not None and float(entry["weight"]) > 0
            and topology.crush.rule_weights(int(pool["crush_rule"])).get(osd, 0.0) > 0)


def _legality(raw: Mapping, pool: Dict[str, Any],
              topology: Topology) -> Callable[[Sequence[int]], bool]:
    rule, size = int(pool["crush_rule"]), int(pool["size"])
    # of rules that the monitor's check always refuses it can tell nothing
    telling = upmap.verify(topology.crush, rule, size, raw) is None

    def legal(osds: Sequence[int]) -> bool:
        present = [osd for osd in osds if osd != NONE]
        return len(set(present)) == len(present) and (
            not telling or upmap.verify(topology.crush, rule, size, osds) is None)
    return legal


# -- what an event can touch ----------------------------------------------------------------------

def _touched(pgs: Sequence[Pg], before: Topology, after: Topology) -> Iterator[Pg]:
    """PGs whose CRUSH answer may differ, those onto which others are folded first."""
    lowered, raised = _weight_changes(before, after)
    whole = {pool_id for pool_id, pool in after.pools.items()
             if _reaches(pool, before, after, raised)}
    folded = {pool_id for pool_id, pool in after.pools.items()
              if pool_id in before.pools and _pgp_num(pool) != _pgp_num(before.pools[pool_id])}
    if not lowered:
        pgs = [pg for pg in pgs if pg.pool_id in whole or pg.pool_id in folded]
    for pg in sorted(pgs, key=lambda pg: pg.order):
        pool = after.pools.get(pg.pool_id)
        if pool is None or pg.pool_id not in before.pools:
            continue
        if (pg.pool_id in whole
                or pg.pool_id in folded and _other_seed(pg, before.pools[pg.pool_id], pool)
                or not lowered.isdisjoint(pg.raw or ())
                or not lowered.isdisjoint(pg.crush or ())):
            yield pg


def _weight_changes(before: Topology, after: Topology) -> Tuple[Set[int], Set[int]]:
    """OSDs with less and OSDs with more reweight than before; one that is gone has none."""
    old, new = before.reweights(), after.reweights()
    lowered: Set[int] = set()
    raised: Set[int] = set()
    for osd in set(old) | set(new):
        change = min(new.get(osd, 0), _WEIGHT_ONE) - min(old.get(osd, 0), _WEIGHT_ONE)
        if change:
            (lowered if change < 0 else raised).add(osd)
    return lowered, raised


def _reaches(pool: Dict[str, Any], before: Topology, after: Topology, raised: Set[int]) -> bool:
    """Whether the pool's rule can give a raised OSD or goes through a changed bucket."""
    rule = int(pool["crush_rule"])
    serving = after.crush.rule_weights(rule)
    if any(osd in serving for osd in raised):
        return True
    old = before.pools.get(int(pool["pool"]), pool)
    if (int(old["crush_rule"]), int(old["size"])) != (rule, int(pool["size"])):
        return True
    return after.crush is not before.crush and (
        before.crush.shape_below(rule) != after.crush.shape_below(rule))


def _other_seed(pg: Pg, old: Dict[str, Any], new: Dict[str, Any]) -> bool:
    """Whether the PG is folded onto another one than before: pgp_num has changed."""
    position = pg.order[1]
    return stable_mod(position, _pgp_num(old)) != stable_mod(position, _pgp_num(new))


def _pgp_num(pool: Dict[str, Any]) -> int:
    return int(pool.get("pg_placement_num") or pool["pg_num"])
