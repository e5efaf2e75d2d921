"""CRUSH in Python against crushtool and osdmaptool: not one PG of any random map may differ."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Counter, Dict

import pytest

from mgr_stub.crush.mapper import Mapper, raw_pg_to_osds
from tests.support.clusters.state_records import pg_key

from .ceph_tools import compile_crush, crush_mappings, dump_crush, dump_osdmap, map_pgs
from .maps.cluster import make_osdmap
from .maps.random_crush import RandomMap

SEEDS = int(os.environ.get("EQUILIBRIUM_ORACLE_SEEDS", "1"))
MAPS = 250


@pytest.mark.parametrize("number", range(MAPS * SEEDS))
def test_osdmaptool_maps_every_pg_alike(number: int, tmp_path: Path,
                                        tally: Counter[str]) -> None:
    made = RandomMap(f"crush {number}")
    binary = compile_crush(made.text(), tmp_path)
    reweights = made.reweights()
    missing = {osd for osd in range(made.max_osd) if made.rng.random() < 0.03}
    path = make_osdmap(made.pools, binary, reweights, missing, tmp_path)
    mapper, expected = Mapper(dump_crush(binary)), map_pgs(path)
    pools = {pool["pool"]: pool for pool in dump_osdmap(path)["pools"]}
    assert len(expected) == sum(pool.pg_num for pool in made.pools)
    different, present = [], set(range(made.max_osd)) - missing
    for pgid, mapping in expected.items():
        pool, seed = pg_key(pgid)
        ours = raw_pg_to_osds(mapper, pools[pool], seed, reweights, present.__contains__)
        if ours != mapping.raw:
            different.append((pgid, mapping.raw, ours))
    tally.update({"CRUSH maps": 1, "PGs mapped": len(expected), "PGs mapped differently":
                  len(different)})
    assert not different


@pytest.mark.parametrize("number", range(0, MAPS * SEEDS, 5))
def test_crushtool_maps_every_input_alike(number: int, tmp_path: Path,
                                          tally: Counter[str]) -> None:
    made = RandomMap(f"crush inputs {number}")
    binary = compile_crush(made.text(), tmp_path)
    dump = dump_crush(binary)
    mapper, reweights = Mapper(dump), _short_reweights(made, dump)
    different = []
    for rule in range(len(made.rules)):
        if made.gives_buckets(rule):
            continue
        count = made.rng.randint(1, 12)
        expected = crush_mappings(binary, rule, count, 100, reweights)
        # crushtool does not even try where every OSD is out
        assert len(expected) == (100 if any(reweights.values()) else 0)
        for x, theirs in expected.items():
            ours = mapper.map(rule, x, count, reweights)
            if ours != theirs:
                different.append((rule, x, count, theirs, ours))
        tally["CRUSH inputs mapped"] += len(expected)
    assert not different


def _short_reweights(made: RandomMap, dump: Dict[str, Any]) -> Dict[int, int]:
    """Reweights that crushtool's decimals give exactly; it has OSDs in no bucket out."""
    reweights = dict.fromkeys(range(made.max_osd), 0)
    weights = made.reweights()
    for osd in {item["id"] for bucket in dump["buckets"] for item in bucket["items"]}:
        if osd >= 0:
            reweights[osd] = weights[osd] & 0xFF00 or weights[osd] & 0x10000
    return reweights
