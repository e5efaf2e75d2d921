"""Random maps with MSR rules: the module's legality against brute force and Ceph 20's own tools."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

import pytest
from tests.oracle.ceph_tools import (
    Pairs, calc_pg_upmaps, compile_crush, crush_mappings, dump_crush, dump_osdmap, map_pgs,
    upmap_cleanup, version)
from tests.oracle.maps.binary_osdmap import BinaryOSDMap
from tests.oracle.maps.crush_osdmap import CrushPool, make_osdmap
from tests.support.clusters import msr_maps

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.crush.placement import PlacementRule
from mgr_stub.crush.hashes import NONE
from mgr_stub.crush.mapper import Mapper, raw_pg_to_osds

from ..conftest import FIGURES, _wanted
from ..release import RELEASES
from .release_tools import write_tools

MAPS = 200
INPUTS = 40
EVERY = 5    # map of which an osdmap is made, too
PGS = 32


@pytest.fixture
def counted(request: pytest.FixtureRequest, tmp_path: Path,
            monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """What is counted, with the tools of 20 in place of the system's."""
    if 20 not in _wanted(request.config):
        pytest.skip("MSR rules are of Ceph 19 and later: run with --ceph=20")
    RELEASES[20].prepare()
    (tmp_path / "tools").mkdir()
    write_tools(RELEASES[20], tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:{os.environ['PATH']}")
    found: Counter[str] = Counter()
    yield found
    request.config.stash[FIGURES].append(f"MSR rules, tools of {version()}: " + ", ".join(
        f"{name}: {count}" for name, count in found.items()))


def test_legality_is_that_of_brute_force_on_200_maps(counted: Counter[str],
                                                     tmp_path: Path) -> None:
    for seed in range(MAPS):
        made = msr_maps.make(f"tools {seed}")
        binary = compile_crush(made.text(), tmp_path)
        dump = dump_crush(binary)
        mapper = Mapper(dump)
        rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], made.size, made.in_order)
        mapped = crush_mappings(binary, 0, made.size, INPUTS, made.reweights)
        assert mapped == {x: mapper.map(0, x, made.size, made.reweights) for x in mapped}, seed
        whole = [up for up in mapped.values() if len(up) == made.size and NONE not in up]
        assert all(rule.violation(up) is None and made.is_possible(up) for up in whole), seed
        counted.update({"maps": 1, "inputs mapped alike": len(mapped)})
        rng = random.Random(seed)
        for up in msr_maps.candidates(rng, made, whole) if whole else ():
            possible = made.is_possible(up)
            assert (rule.violation(up) is None) == possible, (seed, up)
            counted["up sets possible" if possible else "up sets impossible"] += 1
        if seed % EVERY == 0 and whole:
            _on_an_osdmap(made, rule, mapper, binary, rng, counted)


def _on_an_osdmap(made: msr_maps.MsrMap, rule: PlacementRule, mapper: Mapper, binary: Path,
                  rng: random.Random, counted: Counter[str]) -> None:
    """PGs are mapped alike, legal upmaps are kept, and the built-in balancer finds nothing."""
    reweights = [made.reweights[osd] for osd in range(made.osds)]
    path = make_osdmap([CrushPool(0, 3 if made.in_order else 1, made.size, PGS, PGS, True)],
                       binary, reweights, set(), binary.parent)
    pool, mapped = dump_osdmap(path)["pools"][0], map_pgs(path)
    for pgid, found in mapped.items():
        assert found.raw == raw_pg_to_osds(mapper, pool, int(pgid.split(".")[1], 16), reweights,
                                           lambda osd: True), pgid
    assert calc_pg_upmaps(path, "pool1", 100) == {}
    items = {pgid: pair for pgid, found in mapped.items() if len(found.raw) == made.size
             for pair in _some_legal(rule, made, found.raw, rng)}
    osdmap = BinaryOSDMap.read(path)
    osdmap.items = items
    osdmap.write(path)
    assert upmap_cleanup(path) == {}
    now = map_pgs(path)
    for pgid, ((source, target),) in items.items():
        raw = mapped[pgid].raw
        assert now[pgid].up == tuple(target if osd == source else osd for osd in raw)
    counted.update({"osdmaps": 1, "PGs mapped alike": len(mapped), "legal upmaps kept": len(items),
                    "changes of the built-in balancer": 0})


def _some_legal(rule: PlacementRule, made: msr_maps.MsrMap, raw: Sequence[int],
                rng: random.Random) -> List[List[Tuple[int, int]]]:
    """At most one legal move of a PG to an OSD that is in."""
    if NONE in raw:
        return []
    position = rng.randrange(made.size)
    targets = [osd for osd in range(made.osds)
               if made.reweights[osd] and rule.allows(raw, position, osd)]
    return [[(raw[position], rng.choice(targets))]] if targets else []


def test_the_monitor_cancels_all_upmaps_of_two_takes(counted: Counter[str],
                                                    tmp_path: Path) -> None:
    """It reads no choosemsr step, and so takes the second position for that of the second take."""
    made = msr_maps.two_takes()
    binary = compile_crush(made.text(), tmp_path)
    dump = dump_crush(binary)
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], made.size, True)
    path = make_osdmap([CrushPool(0, 3, made.size, PGS, PGS, True)], binary, [0x10000] * made.osds,
                       set(), tmp_path)
    items: Pairs = {}
    for pgid, found in map_pgs(path).items():
        target = next(osd for osd in range(made.osds) if osd not in found.raw and rule.violation(
            (osd, *found.raw[1:])) is None)
        items[pgid] = [(found.raw[0], target)]
        assert rule.upmap_rejection((target, *found.raw[1:])) is not None
    osdmap = BinaryOSDMap.read(path)
    osdmap.items = items
    osdmap.write(path)
    assert upmap_cleanup(path) == {pgid: [] for pgid in items}
    counted["upmaps of two takes, all cancelled"] = len(items)


def test_the_monitor_keeps_what_breaks_the_rule(counted: Counter[str],
                                                      tmp_path: Path) -> None:
    """Ceph's monitor keeps what breaks the rule: the module's own check is the only guard."""
    made = msr_maps.make("tools lenient")
    binary = compile_crush(made.text(), tmp_path)
    broken: Pairs = {}
    dump = dump_crush(binary)
    rule = PlacementRule(CrushHierarchy(dump), dump["rules"][0], made.size, made.in_order)
    path = make_osdmap([CrushPool(0, 3 if made.in_order else 1, made.size, PGS, PGS, True)],
                       binary, [0x10000] * made.osds, set(), tmp_path)
    found: Dict[str, Tuple[int, ...]] = {pgid: pg.raw for pgid, pg in map_pgs(path).items()}
    for pgid, raw in found.items():
        for target in range(made.osds):
            up = (target, *raw[1:])
            if target not in raw and rule.violation(up) is not None:
                assert rule.upmap_rejection(up) is None
                broken[pgid] = [(raw[0], target)]
    osdmap = BinaryOSDMap.read(path)
    osdmap.items = broken
    osdmap.write(path)
    assert broken and upmap_cleanup(path) == {}
    counted["upmaps kept that break the rule"] = len(broken)
