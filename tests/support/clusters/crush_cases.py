"""Small CRUSH maps whose mappings crushtool 16.2.15 has recorded in crush_golden.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Tuple

from tests.support.clusters.crush_maps import crush_map

GOLDEN = Path(__file__).with_name("crush_golden.json")
COUNT_OF_X = 16

TREE = {"root default": {
    "rack r1": {"host a": [0, 1, 2], "host b": [3, 4], "host c": [5, 6]},
    "rack r2": {"host d": [8, 9, 10, 11], "host e": [12, 13]},
    "rack r3": {"host f": [14, 15, 16], "host g": [17], "host h": [20, 21]}}}
SSDS = (2, 4, 6, 11, 13, 16, 21)
RULES = {
    0: "take default; chooseleaf firstn 0 host; emit",
    1: "take default~hdd; chooseleaf indep 0 host; emit",
    2: "take default; choose firstn 2 rack; chooseleaf firstn 2 host; emit",
    3: "take default; choose indep 3 rack; chooseleaf indep 2 host; emit",
    4: "take default~ssd; choose firstn 0 osd; emit",
    5: "take default~ssd; chooseleaf firstn 1 host; emit;"
       "take default~hdd; chooseleaf firstn -1 host; emit",
    6: "set_chooseleaf_tries 5; set_choose_tries 100; take default; chooseleaf indep 0 rack; emit",
}
COUNTS = {0: 3, 1: 5, 2: 4, 3: 6, 4: 3, 5: 3, 6: 4}

#: Reweights 16.16 by OSD id; ids in no bucket are out, as crushtool has them.
ALL_IN = {osd: 0x10000 if osd not in (7, 18, 19) else 0 for osd in range(22)}
SOME_OUT = {**ALL_IN, 0: 0, 5: 0x8000, 12: 0x4000, 13: 0x4000, 14: 0xC000, 17: 0, 21: 0x2000}
OLD_TUNABLES = {"choose_total_tries": 19, "chooseleaf_descend_once": 0, "chooseleaf_vary_r": 0,
                "chooseleaf_stable": 0}

#: Pools of the map "plain", as in `ceph osd dump`; OSD 9 is not in the osdmap.
POOLS: List[Dict[str, Any]] = [
    {"pool": 1, "type": 1, "size": 3, "crush_rule": 0, "pg_num": 12, "pg_placement_num": 12,
     "flags": 1},
    {"pool": 2, "type": 1, "size": 3, "crush_rule": 0, "pg_num": 12, "pg_placement_num": 5,
     "flags": 0},
    {"pool": 3, "type": 3, "size": 5, "crush_rule": 1, "pg_num": 12, "pg_placement_num": 12,
     "flags": 1}]
MISSING = 9


def cases() -> Dict[str, Tuple[Dict[str, Any], Dict[int, int]]]:
    """{name: (CRUSH dump, reweights)}."""
    return {"plain": (dump(), ALL_IN), "reweighted": (dump(), SOME_OUT),
            "old tunables": (dump(tunables=OLD_TUNABLES), SOME_OUT),
            "weight-set": (dump(choose_args={"-1": _arguments(1)}), ALL_IN),
            "positions": (dump(choose_args={"-1": _arguments(1), "0": _arguments(3)}), SOME_OUT)}


def dump(**parts: Any) -> Dict[str, Any]:
    """The dump of the tree, with other tunables or choose_args."""
    weights = {osd: (1.0, 2.0, 3.5, 7.25)[osd % 4] for osd in range(22)}
    return {**crush_map(TREE, RULES, {osd: "ssd" for osd in SSDS}, weights), **parts}


def golden() -> Dict[str, Any]:
    """What crushtool and osdmaptool gave: {"mappings": {case: {rule: [...]}}, "pools": ...}."""
    recorded: Dict[str, Any] = json.loads(GOLDEN.read_text())
    return recorded


def _arguments(positions: int) -> List[Dict[str, Any]]:
    """Weights that differ from the CRUSH weights in every bucket; ids too with positions."""
    entries = []
    for bucket in dump()["buckets"]:
        factors = [[0.5 + (3 * place + 5 * position + bucket["id"]) % 4 / 4
                    for place in range(len(bucket["items"]))] for position in range(positions)]
        entry = {"bucket_id": bucket["id"], "weight_set": [
            [factor * item["weight"] / 0x10000 for factor, item in zip(row, bucket["items"])]
            for row in factors]}
        if positions > 1 and bucket["type_name"] == "host":
            entry["ids"] = [100 + item["id"] for item in bucket["items"]]
        entries.append(entry)
    return entries
