"""The raw mapping of a pool's PGs: the result of CRUSH before upmap items."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Tuple

from .constants import NONE
from .mapper import Mapper, Reweights
from .placement_seed import has_hashpspool, placement_seed

#: Type of a replicated pool in the osdmap: missing OSDs are left out; in others they are holes.
_REPLICATED = 1


def raw_pg_to_osds(mapper: Mapper, pool: Mapping[str, Any], seed: int, reweights: Reweights,
                   exists: Callable[[int], bool]) -> Tuple[int, ...]:
    """The raw mapping of PG number `seed` of a pool (an entry of `pools` of `ceph osd dump`).

    As `osdmaptool --test-map-pgs-dump-all` shows it: it includes OSDs that are down but exist.
    Empty where the pool's rule is missing.
    """
    rule_id = mapper.rule_for(int(pool["crush_rule"]), int(pool["type"]), int(pool["size"]))
    if rule_id is None:
        return ()
    pool_id = int(pool["pool"])
    pgp_num = int(pool.get("pg_placement_num") or pool["pg_num"])
    x = placement_seed(pool_id, seed, pgp_num, has_hashpspool(pool))
    mapped = mapper.map(rule_id, x, int(pool["size"]), reweights, pool_id)
    if int(pool["type"]) == _REPLICATED:
        return tuple(osd for osd in mapped if osd != NONE and exists(osd))
    return tuple(osd if osd != NONE and exists(osd) else NONE for osd in mapped)
