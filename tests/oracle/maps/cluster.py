"""Makes a binary OSDMap of a spec and asks osdmaptool how it maps."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import AbstractSet, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..ceph_tools import (
    PGMapping, compile_crush, dump_crush, dump_osdmap, map_pgs, run_tool, upmap_cleanup)
from ..strict_rule import StrictRules
from .binary_osdmap import (FULL_WEIGHT, OSD_EXISTS, OSD_UP, BinaryOSDMap, Items, make_pool,
                            merge_items)
from .cluster_spec import ClusterSpec, PoolSpec
from .topology import with_weight_set


# where pg_pool_t of --createsimple has pgp_num and flags, struct header included
_PGP_NUM, _FLAGS = 6 + 8, 6 + 52
_POOL_KEYS = itemgetter("crush_rule", "type", "size", "pg_num", "pg_placement_num")


class CrushPool(NamedTuple):
    """A pool to make; `kind` is 1 for replicated, 3 for erasure-coded, as its rule must be."""

    rule: int
    kind: int
    size: int
    pg_num: int
    pgp_num: int
    hashpspool: bool


@dataclass
class MappedCluster:
    """A made cluster: the map on disk, what osdmaptool says of it, and its upmap items."""

    spec: ClusterSpec
    path: Path
    osdmap: BinaryOSDMap  # cut once; treat it as immutable
    osd_dump: Dict[str, Any]
    crush_dump: Dict[str, Any]
    pgs: Dict[str, PGMapping]
    items: Items

    def pool_spec(self, pgid: str) -> PoolSpec:
        """The pool of a PG."""
        return self.spec.pools[int(pgid.split(".")[0]) - 1]

    @cached_property
    def rules(self) -> StrictRules:
        return StrictRules(self.crush_dump)

    def rule_id(self, pgid: str) -> int:
        return self.spec.topology.rule_id(self.pool_spec(pgid).rule)

    def fault(self, pgid: str, up: Sequence[int]) -> Optional[str]:
        """Why the PG's rule could not have given an up set, by the tests' own check; or None."""
        size = self.pool_spec(pgid).size
        return self.rules.fault(self.rule_id(pgid), size, self.pgs[pgid].raw, up)

    def osds(self) -> List[int]:
        """Ids of the OSDs that exist; the monitor takes no other in a command."""
        return [dumped["osd"] for dumped in self.osd_dump["osds"]]

    def usable(self, osd: int) -> bool:
        """Whether an upmap item may point to the OSD: up, in, of positive weight."""
        gone = self.spec.out | self.spec.down
        return osd not in gone and self.spec.topology.weights[osd] > 0


@dataclass(frozen=True)
class Verdict:
    """What osdmaptool makes of a set of upmap items."""

    cleaned: Items  # pgid -> what the monitor would leave of its items, where it changes them
    pgs: Dict[str, PGMapping]


def _begin(osds: int, crush: Path, folder: Path) -> Tuple[Path, BinaryOSDMap, bytes]:
    """A new map with a CRUSH map: its path, the map, and a pool to make others of."""
    path, sample = folder / "osdmap", folder / "osdmap.sample"
    run_tool("osdmaptool", "--createsimple", 7, sample, "--clobber", "--with-default-pool",
             "--pg-bits", 5)
    run_tool("osdmaptool", "--createsimple", osds, path, "--clobber")
    run_tool("osdmaptool", path, "--import-crush", crush)
    return path, BinaryOSDMap.read(path), BinaryOSDMap.read(sample).pools[1]


def make_osdmap(pools: Sequence[CrushPool], crush: Path, reweights: Sequence[int],
                missing: AbstractSet[int], folder: Path) -> Path:
    """The map, pools numbered from 1; its dump is compared with what was asked for."""
    path, osdmap, template = _begin(len(reweights), crush, folder)
    osdmap.weights = list(reweights)
    osdmap.states = [OSD_EXISTS | OSD_UP] * len(reweights)
    for osd in missing:
        osdmap.states[osd] = 0
    for pool_id, pool in enumerate(pools, start=1):
        body = bytearray(make_pool(template, pool.kind, pool.size, pool.rule, pool.pg_num))
        struct.pack_into("<I", body, _PGP_NUM, pool.pgp_num)
        if not pool.hashpspool:
            body[_FLAGS] &= 0xFE
        osdmap.pools[pool_id] = bytes(body)
        osdmap.pool_names[pool_id] = f"pool{pool_id}"
    osdmap.pool_max = len(pools)
    osdmap.write(path)
    for pool, dumped in zip(pools, dump_osdmap(path)["pools"]):
        assert pool == (*_POOL_KEYS(dumped), bool(dumped["flags"] & 1))
    return path


def build(spec: ClusterSpec, folder: Path) -> MappedCluster:
    """Makes the map of a spec, without upmap items. Raises ToolFailed, UnexpectedEncoding."""
    crush = compile_crush(spec.topology.text(), folder)
    crush_dump = dump_crush(crush)
    if spec.weight_set:
        crush = with_weight_set(crush, crush_dump, spec.rng, folder)
        crush_dump = dump_crush(crush)
    osds = len(spec.topology.weights)
    path, osdmap, template = _begin(osds, crush, folder)
    osdmap.states = [OSD_EXISTS | OSD_UP] * osds
    osdmap.weights = [FULL_WEIGHT] * osds
    for osd in spec.down:
        osdmap.states[osd] = OSD_EXISTS
    for osd, reweight in spec.reweights.items():
        osdmap.weights[osd] = int(FULL_WEIGHT * reweight)
    for osd in spec.out | spec.missing:
        osdmap.weights[osd] = 0
    for osd in spec.missing:
        osdmap.states[osd] = 0
    _add_pools(spec, osdmap, template)
    osdmap.write(path)
    osd_dump = dump_osdmap(path)
    _check_dump(spec, osd_dump)
    return MappedCluster(spec, path, osdmap, osd_dump, crush_dump, map_pgs(path), {})


def with_items(cluster: MappedCluster, items: Items) -> MappedCluster:
    """The same cluster with other upmap items, those that the monitor would cancel left out."""
    cleaned = judge(cluster, items).cleaned
    kept = {pgid: pairs for pgid, pairs in items.items() if pgid not in cleaned}
    path = replace(cluster.osdmap, items=kept).write(cluster.path.with_name("osdmap.prior"))
    return replace(cluster, path=path, osd_dump=dump_osdmap(path), pgs=map_pgs(path), items=kept)


def judge(cluster: MappedCluster, items: Items) -> Verdict:
    """Puts exactly these items into the map and asks osdmaptool to clean and to map it."""
    path = replace(cluster.osdmap, items=items).write(cluster.path.with_name("osdmap.judged"))
    return Verdict(upmap_cleanup(path), map_pgs(path))


def settled_verdict(cluster: MappedCluster, items: Items) -> Tuple[Items, Verdict]:
    """What the monitor leaves of these items, epoch by epoch, until it cleans none any more."""
    while True:
        verdict = judge(cluster, items)
        if not verdict.cleaned:
            return items, verdict
        items = merge_items(items, verdict.cleaned)


def judge_plan(cluster: MappedCluster, changed: Mapping[str, Any]) -> Verdict:
    """The same for a plan's changes over the cluster's items; an empty list takes items away."""
    return judge(cluster, merge_items(cluster.items, changed))


def _add_pools(spec: ClusterSpec, osdmap: BinaryOSDMap, template: bytes) -> None:
    for number, pool in enumerate(spec.pools, start=1):
        if pool.k:
            osdmap.profiles[pool.profile] = {
                "k": str(pool.k), "m": str(pool.size - pool.k), "plugin": "jerasure",
                "technique": "reed_sol_van"}
        osdmap.pools[number] = make_pool(
            template, pool.type, pool.size, spec.topology.rule_id(pool.rule),
            pool.pg_num, pool.profile, pool.k * 4096)
        osdmap.pool_names[number] = pool.name
    osdmap.pool_max = len(spec.pools)


def _check_dump(spec: ClusterSpec, osd_dump: Mapping[str, Any]) -> None:
    """osdmaptool must read from the patched map exactly what was asked for."""
    for pool, dumped in zip(spec.pools, osd_dump["pools"]):
        found = (dumped["pool_name"], dumped["size"], dumped["type"], dumped["crush_rule"],
                 dumped["stripe_width"], dumped["erasure_code_profile"])
        assert found == (pool.name, pool.size, pool.type, spec.topology.rule_id(pool.rule),
                         pool.k * 4096, pool.profile)
        for key in ("pg_num", "pg_placement_num", "pg_num_target", "pg_placement_num_target",
                    "pg_num_pending"):
            assert dumped[key] == pool.pg_num, f"{key} of {pool.name}: {dumped[key]!r}"
    for dumped in osd_dump["osds"]:
        osd = dumped["osd"]
        assert dumped["up"] == (osd not in spec.down) and dumped["in"] == (osd not in spec.out)
