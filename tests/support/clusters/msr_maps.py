"""Random CRUSH maps with one MSR rule each."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from tests.oracle import msr_rule
from tests.support.clusters.crush_maps import crush_map

GOLDEN = Path(__file__).with_name("msr_golden.json")
#: Maps and inputs of which GOLDEN has what crushtool 20.2.4 gave: Ceph 16 knows no such rules.
GOLDEN_SEEDS, GOLDEN_INPUTS = range(12), 12

#: (choose steps, pool size): a size below the product leaves the last group short.
SHAPES = (
    ("2 host; 2 osd", 4),
    ("3 host; 2 osd", 6),
    ("3 host; 2 osd", 5),
    ("2 host; 3 osd", 5),
    ("0 host; 1 osd", 4),
    ("2 rack; 2 host; 1 osd", 4),
    ("2 rack; 2 host; 2 osd", 7),
    ("2 rack; 3 osd", 6),
    ("4 osd", 4),
)
#: More places than shards, which can be divided in several ways. GOLDEN has none of them.
LOOSE = (("2 host; 4 osd", 6), ("2 rack; 4 osd", 5))

_ONE = 0x10000


class MsrMap(NamedTuple):
    """One map, the reweights of its OSDs (16.16), and the size of pools that use its rule."""

    dump: Mapping[str, Any]
    size: int
    osds: int
    reweights: Mapping[int, int]

    @property
    def rule(self) -> Mapping[str, Any]:
        rule: Mapping[str, Any] = self.dump["rules"][0]
        return rule

    @property
    def in_order(self) -> bool:
        return bool(self.rule["type"] == msr_rule.MSR_INDEP)

    def is_possible(self, up: Sequence[int], positional: bool) -> bool:
        """Whether the rule can give this up set, by brute force."""
        if len(up) != self.size or not set(up) <= set(range(self.osds)):
            return False
        ((_, levels, _),) = msr_rule.blocks(self.rule, self.size)
        in_order = positional and self.in_order
        return msr_rule.is_possible(levels, up, in_order, self.bucket_above)

    def bucket_above(self, osd: int, kind: str) -> int:
        """The bucket of a type that the OSD is in."""
        item, found = osd, 0
        for bucket in reversed(self.dump["buckets"]):   # numbered from the root down
            if item in [entry["id"] for entry in bucket["items"]]:
                item = bucket["id"]
                if bucket["type_name"] == kind:
                    found = item
        return found


def make(seed: object, shapes: Sequence[Tuple[str, int]] = SHAPES) -> MsrMap:
    """Uneven hosts, in racks where the rule wants them; in two of three maps OSDs are reweighted or
    out."""
    rng = random.Random(f"msr {seed}")
    levels, size = shapes[rng.randrange(len(shapes))]
    in_order = size > 5 or rng.random() < 0.5   # of a larger one there are too many orders
    racks = [""]
    if "rack" in levels:
        racks = ["r0", "r1", "r2", "r3"][:rng.randint(3, 4)]
    tree: Dict[str, Any] = {}
    osds = 0
    for rack in racks:
        hosts: Dict[str, List[int]] = {}
        for h in range(rng.randint(3, 4 if rack else 6)):
            count = rng.randint(2, 4)
            hosts[f"host {rack}h{h}"] = list(range(osds, osds + count))
            osds += count
        tree.update({f"rack {rack}": hosts} if rack else hosts)
    steps = ["msr_indep" if in_order else "msr_firstn"]
    if rng.random() < 0.5:
        steps.append(f"set_msr_descents {rng.randint(20, 80)}")
    steps.append("take default")
    steps += [f"choosemsr {level}" for level in levels.split("; ")]
    text = "; ".join([*steps, "emit"])
    dump = crush_map({"root default": tree}, {0: text}, dict.fromkeys(range(osds), ""),
                     {osd: rng.choice((1.0, 2.0, 4.0)) for osd in range(osds)})
    reweights = dict.fromkeys(range(osds), _ONE)
    if rng.random() >= 0.34:
        for osd in reweights:
            reweights[osd] = rng.choice((_ONE, _ONE, 0x8000, 0xC000, 0))
    return MsrMap(dump, size, osds, reweights)


def two_takes() -> MsrMap:
    """Two shards on a host of each of two racks, by two takes."""
    tree = {"rack a": {"host a0": [0, 1, 2], "host a1": [3, 4, 5]},
            "rack b": {"host b0": [6, 7, 8], "host b1": [9, 10, 11]}}
    text = ("msr_indep; take a; choosemsr 1 host; choosemsr 2 osd; emit;"
            "take b; choosemsr 1 host; choosemsr 2 osd; emit")
    dump = crush_map({"root default": tree}, {0: text}, dict.fromkeys(range(12), ""))
    return MsrMap(dump, 4, 12, dict.fromkeys(range(12), _ONE))


def candidates(rng: random.Random, made: MsrMap,
               given: Sequence[Sequence[int]]) -> Iterator[Tuple[int, ...]]:
    """Random up sets, and such as are one or two steps away from what CRUSH has given."""
    for _ in range(20):
        yield tuple(rng.sample(range(made.osds), made.size))
    for _ in range(60):
        up = list(given[rng.randrange(len(given))])
        for _ in range(rng.randint(1, 2)):
            up[rng.randrange(made.size)] = rng.randrange(made.osds)
        yield tuple(up)
