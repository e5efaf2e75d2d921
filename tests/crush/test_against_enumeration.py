"""On small random trees, every up set is held against all that CRUSH could produce."""
from __future__ import annotations

import random
import re
from itertools import combinations
from typing import Any, Dict, FrozenSet, Iterator, List, Set, Tuple

import pytest
from tests.support.clusters.crush_maps import crush_map
from tests.support.strict_crush import monitor_keeps, possible_up_sets

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule
from mgr_stub.osdmap.crush_map import CrushMap

#: Pool size, how neighboring positions belong together, rule; every bucket of the random trees can
#: serve its full share.
SHAPES = re.findall(r"(\d+) (\w+): (.+)", """
3 firstn: take default; chooseleaf {f} 0 host; emit
3 indep: take default; choose {f} 0 osd; emit
4 firstn: take default; choose {f} 2 rack; chooseleaf {f} 2 host; emit
4 indep: take default; choose {f} 2 rack; chooseleaf {f} 2 host; emit
3 indep: take default; choose {f} 2 rack; chooseleaf {f} 2 host; emit
3 firstn: take default; choose {f} 2 rack; chooseleaf {f} 2 host; emit
3 firstn: take default; choose indep 2 rack; chooseleaf indep 2 host; emit
4 firstn: take default; choose {f} 2 rack; choose {f} 3 osd; emit
4 firstn: take default; choose {f} 2 rack; choose {f} 2 osd; emit
4 firstn: take default; choose {f} 0 rack; chooseleaf {f} 2 host; emit
4 indep: take default; choose {f} 2 host; choose {f} 2 osd; emit
2 firstn: take default; choose {f} 1 rack; choose {f} 2 host; choose {f} 1 osd; emit
3 firstn: take default~ssd; chooseleaf {f} 1 host; emit; take default~hdd;\
 chooseleaf {f} -1 host; emit
2 indep: take default~ssd; choose {f} 1 rack; chooseleaf {f} 1 host; emit;take default~hdd;\
 choose {f} 1 rack; chooseleaf {f} 1 host; emit
2 firstn: take r0; choose {f} 1 osd; emit; take default; chooseleaf {f} 1 host; emit
2 firstn: take r1; chooseleaf {f} 0 host; emit
2 indep: take h00; choose {f} 0 osd; emit
2 firstn: take osd.0; emit; take osd.1; emit
2 firstn: take osd.0; emit; take default; choose {f} 1 osd; emit
2 firstn: take default; choose {f} 0 rack; chooseleaf {f} 0 host; emit
4 firstn: take default; choose {f} 2 rack; choose {f} 2 host; choose {f} 1 osd; emit
3 firstn: take default; choose {f} 1 rack; choose {f} 2 osd; emit;take default;\
 choose {f} 1 rack; choose {f} 1 osd; emit
4 firstn: take default~ssd; choose {f} 2 rack; choose {f} 1 osd; emit;take default~hdd;\
 choose {f} 2 rack; choose {f} 1 osd; emit
""")


def random_tree(rng: random.Random) -> Tuple[Dict[str, Any], int]:
    """Two or three racks of two or three hosts, each with two to three OSDs, some loose hosts."""
    count = 0
    root: Dict[str, Any] = {}
    for r in range(rng.randint(2, 3)):
        rack: Dict[str, List[int]] = {}
        for h in range(rng.randint(2, 3) if r < 2 else 2):
            osds = 2 if r else rng.randint(2, 3)
            rack[f"host h{r}{h}"] = list(range(count, count + osds))
            count += osds
        root[f"rack r{r}"] = rack
    if rng.random() < 0.5:
        root["host lone"] = [count, count + 1]
        count += 2
    return {"root default": root}, count


def with_spread_classes(tree: Dict[str, Any]) -> Dict[int, str]:
    """Every host has an SSD and HDDs, so that both shadow trees serve every rule."""
    classes: Dict[int, str] = {}
    for branch in tree["root default"].values():
        for osds in branch.values() if isinstance(branch, dict) else [branch]:
            classes.update(dict.fromkeys(osds, "hdd"))
            classes[osds[0]] = "ssd"
    return classes


def canonical(up: Tuple[int, ...], rule: PlacementRule) -> Tuple[Any, ...]:
    """In replicated pools only the set of each take block counts."""
    if rule.is_grouped:
        return up
    return tuple(frozenset(block.members(up)) for block in rule.blocks)


def candidates(rng: random.Random, osds: int, rule: PlacementRule,
               legal: Set[Tuple[Any, ...]]) -> Iterator[Tuple[int, ...]]:
    """Random up sets; those one swap away from a legal one are where errors would hide."""
    for _ in range(60):
        yield tuple(rng.sample(range(osds), rule.size))
    known = sorted(legal, key=repr)
    for _ in range(60):
        up = flat(known[rng.randrange(len(known))])
        position, osd = rng.randrange(rule.size), rng.randrange(osds)
        yield tuple(up[:position] + [osd] + up[position + 1:])
        yield tuple(rng.sample(up, len(up)))


def flat(member: Tuple[Any, ...]) -> List[int]:
    up: List[int] = []
    for part in member:
        if isinstance(part, FrozenSet):
            up += sorted(part)
        else:
            up.append(part)
    return up


@pytest.mark.parametrize("positions, kind, text", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_breaks_and_allows(positions: str, kind: str, text: str, seed: int) -> None:
    size, erasure = int(positions), kind == "indep"
    rng = random.Random(f"{text} {size} {erasure} {seed}")
    tree, osds = random_tree(rng)
    dump = crush_map(tree, {0: text.format(f=kind)},
                     with_spread_classes(tree))
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], size, erasure)
    crush = CrushMap(dump)
    legal = {canonical(up, rule) for up in possible_up_sets(dump, dump["rules"][0], size)}
    if "3 osd" in text:   # more places than shards: any of them will do
        legal = set()
        for places in {frozenset(up) for up in possible_up_sets(dump, dump["rules"][0], 6)}:
            legal.update((frozenset(some),) for some in combinations(places, size))
    assert legal
    verdicts = set()
    for up in candidates(rng, osds, rule, legal):
        possible, violation = canonical(up, rule) in legal, rule.violation(up)
        assert (violation is None) == possible, (up, violation)
        verdicts.add(possible)
        if len(set(up)) == size:
            rejection = rule.upmap_rejection(up)
            assert (rejection is None) == monitor_keeps(crush, 0, size, up), (up, rejection)
    assert verdicts == {True, False}
    compare_replacements(rng, crush, rule, legal, osds)


def compare_replacements(rng: random.Random, crush: CrushMap, rule: PlacementRule,
                         legal: Set[Tuple[Any, ...]], osds: int) -> None:
    """`allows` is asked of placements that the monitor accepts as they are."""
    known = sorted(legal, key=repr)
    for _ in range(15):
        up = flat(known[rng.randrange(len(known))])
        if not monitor_keeps(crush, 0, rule.size, up):
            continue
        for position in range(rule.size):
            for osd in range(osds):
                wanted = tuple(up[:position] + [osd] + up[position + 1:])
                expected = osd not in up and canonical(wanted, rule) in legal and monitor_keeps(
                    crush, 0, rule.size, wanted)
                assert rule.allows(up, position, osd) == expected, (up, position, osd)


def test_enumerator_knows_a_case_done_by_hand() -> None:
    dump = crush_map({"root default": {"host a": [0, 1], "host b": [2]}},
                     {0: "take default; chooseleaf firstn 0 host; emit"})
    found = set(possible_up_sets(dump, dump["rules"][0], 2))
    assert found == {(0, 2), (1, 2), (2, 0), (2, 1)}
