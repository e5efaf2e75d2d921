"""Hypothetical changes of a cluster, and the cluster with them.

The changes are added, removed or resized OSDs, and another pg_num. Nothing has moved for them yet.
Of CRUSH this needs only the OSDs that a rule can use, and the buckets that the rule keeps apart.
"""
from __future__ import annotations

import re
from typing import Dict, FrozenSet, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.hierarchy import WEIGHT_ONE, Bucket, CrushHierarchy
from ..crush.placement import PlacementBlock, PlacementRule
from ..plan.usage import shard_weight
from ..runtime.formatting import parse_size
from ..runtime.time_slice import piecewise
from ..snapshot.model import NO_CLASS, Osd, Pg, Pool, Snapshot, SnapshotPgs, pg_number
from ..snapshot.osds import name_sets
from .failure import HOST_TYPE, SHADOW, Failure, failures_by_name, find_failure

_TIB = float(1 << 40)
_MOST_PGS = 65536    # Ceph's default for the most PGs of a pool (mon_max_pool_pg_num)
_MOST_OSDS = 2000    # added by one command
_MOST_HOSTS = 4      # `other_places` spreads the OSDs of one host to so many
_PGS_A_PIECE = 500   # before it gives way again: about a millisecond
_ADDED = re.compile(r"([\w.-]+):(\d+)x([^:@]+)(?::([\w.-]+))?(?:@([\w.-]+))?")


class AddedOsds(NamedTuple):
    """Empty OSDs of one size, in a new or an existing host."""

    host: str
    osds: int      # how many
    size_bytes: int
    device_class: str
    bucket: str   # above the host


class Changes(NamedTuple):
    """Hypothetical changes, as an operator named them; hashable."""

    added: Tuple[AddedOsds, ...] = ()
    removed: FrozenSet[int] = frozenset()
    sizes: Tuple[Tuple[int, int], ...] = ()      # (OSD id, new size in bytes)
    pg_nums: Tuple[Tuple[int, int], ...] = ()    # (pool id, new pg_num)


def parse_changes(snapshot: Snapshot, add: Sequence[str], remove: Sequence[str],
                  resize: Sequence[str], pg_num: Sequence[str]) -> Changes:
    """Returns the changes that the texts name; commas separate several in one text.

    Raises ValueError, with a sentence for operators, if a text is no change, and LookupError if it
    names something that does not exist.
    """
    added = tuple([_added(snapshot, text) for text in _split(add)])
    every: Mapping[str, Failure] = failures_by_name(snapshot) if remove or resize else {}
    removed: FrozenSet[int] = frozenset()
    for text in _split(remove):
        removed |= _osds(snapshot, every, "--remove", text)
    if sum([one.osds for one in added]) > _MOST_OSDS:
        raise ValueError(f"--add takes {_MOST_OSDS} OSDs at most")
    if len({(one.host, one.bucket) for one in added}) > len({one.host for one in added}):
        raise ValueError("--add has a host under two buckets")
    if removed >= {osd.id for osd in snapshot.osds.values() if osd.is_for_data}:
        raise ValueError("--remove has all OSDs that are in")
    sizes: Dict[int, int] = {}
    for text in _split(resize):
        sizes.update(_sizes(snapshot, every, text))
    pg_nums: Dict[int, int] = {}
    for text in _split(pg_num):
        pg_nums.update(_pg_num(snapshot, text))
    return Changes(
        added, removed, tuple(sorted(sizes.items())), tuple(sorted(pg_nums.items())))


def _split(texts: Sequence[str]) -> List[str]:
    """Returns the parts of the texts between commas."""
    parts: List[str] = []
    for text in texts:
        parts += text.split(",")
    return [part.strip() for part in parts]


def _added(snapshot: Snapshot, text: str) -> AddedOsds:
    """Returns the OSDs that an --add names; the cluster supplies bucket and class if clear."""
    begin = f"--add '{text}'"
    match = _ADDED.fullmatch(text)
    count = int(match[2]) if match else 0
    size = parse_size(match[3]) if match else None
    if match is None or not count or not size:
        raise ValueError(f"{begin} is not HOST:COUNTxSIZE[:CLASS][@BUCKET], as in"
                         " host9:12x20T:hdd@rack2")
    host, _, written, device_class, place = match.groups()
    plain = _plain_buckets(snapshot.crush)
    above = _names_above(snapshot.crush)
    if place and place not in plain:
        raise LookupError(f"{begin}: no CRUSH bucket is named '{place}'")
    there = plain.get(host)
    hosts = [bucket for bucket in plain.values() if bucket.type_name == HOST_TYPE]
    if there is not None:
        hosts = [bucket for bucket in hosts if bucket.name == host]
    places = {place} if place else {above[one.id] for one in hosts if one.id in above}
    if there is not None:
        parent = above.get(there.id, "no bucket")
        if there.type_name != HOST_TYPE or parent not in places:
            raise ValueError(
                f"{begin}: {there.type_name} {host} is there already, under {parent}")
    if len(places) != 1:
        raise ValueError(f"{begin} leaves open under which bucket the host is; name it, as in"
                         f" @{min(places, default='default')}")
    bucket = plain[places.pop()]
    if bucket.type_id <= snapshot.crush.type_ids.get(HOST_TYPE, 1):
        raise ValueError(f"{begin}: no host can be under {bucket.name}")
    if device_class is None:
        osds = list(snapshot.osds.values())
        if there is not None:
            osds = [osd for osd in osds if osd.host == host]
        classes = {osd.device_class for osd in osds}
        if len(classes) != 1:
            raise ValueError(f"{begin} leaves open of which class the OSDs are; name it, as in"
                             f" {host}:{count}x{written}:{min(classes, default='hdd')}")
        device_class = classes.pop()
    return AddedOsds(host, count, size, device_class, bucket.name)


def _plain_buckets(crush: CrushHierarchy) -> Dict[str, Bucket]:
    """Returns name → bucket, without shadow buckets."""
    return {one.name: one for one in crush.buckets.values() if SHADOW not in one.name}


def _names_above(crush: CrushHierarchy) -> Dict[int, str]:
    """Returns OSD or bucket → the name of the bucket above it, without shadow buckets."""
    above: Dict[int, str] = {}
    for bucket in _plain_buckets(crush).values():
        above.update(dict.fromkeys([item for item, _ in bucket.items], bucket.name))
    return above


def _osds(snapshot: Snapshot, every: Mapping[str, Failure], option: str,
          text: str) -> FrozenSet[int]:
    """Returns the OSDs of a name that are in. `every`: `failures_by_name`."""
    found = find_failure(snapshot, text, every)
    if found is None:
        raise LookupError(f"{option} '{text}' is neither an OSD (3 or osd.3) nor a bucket of the"
                          " CRUSH map")
    if not found.osds:
        raise ValueError(f"{option}: no OSD of '{text}' is in")
    return found.osds


def _sizes(snapshot: Snapshot, every: Mapping[str, Failure], text: str) -> Dict[int, int]:
    """Returns OSD → the new size that a --resize gives it."""
    name, _, value = text.rpartition("=")
    size = parse_size(value)
    if not name or not size:
        raise ValueError(f"--resize '{text}' is not OSD=SIZE, as in osd.3=20T")
    return dict.fromkeys(_osds(snapshot, every, "--resize", name), size)


def _pg_num(snapshot: Snapshot, text: str) -> Dict[int, int]:
    """Returns pool id → the new pg_num that a --pg-num gives it."""
    name, _, value = text.rpartition("=")
    number = int(value) if value.isdecimal() else 0
    if not name or not 0 < number <= _MOST_PGS:
        raise ValueError(f"--pg-num '{text}' is not POOL=N, with N from 1 to {_MOST_PGS}")
    pools = [pool for pool in snapshot.pools.values() if name in (pool.name, str(pool.id))]
    if not pools:
        raise LookupError(f"--pg-num: no pool has the name or id '{name}'")
    pool = max(pools, key=lambda pool: pool.name == name)   # a name is preferred to an id
    if pool.pg_num == number:
        raise ValueError(f"--pg-num: pool {pool.name} has {number} PGs already")
    return {pool.id: number}


# -- the cluster with them -------------------------------------------------------------------------

def with_changes(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """Returns the snapshot with the changes applied and no data moved.

    Added OSDs are empty, removed OSDs are drained, resized OSDs keep their data. Every pg_num
    stays, because bounds that split bytes at will do not depend on it.
    """
    crush = snapshot.crush
    pools = snapshot.pools
    osds = dict(snapshot.osds)
    for number, size in changes.sizes:
        osd = osds[number]
        # a lowered weight was set for the old size
        osds[number] = osd._replace(
            size_bytes=max(1, int(size / osd.size_factor)),
            device=(size, osd.device[1]),
            share=1.0,
            held_by="")
    for one in changes.added:
        first = max(osds, default=-1) + 1
        new = range(first, first + one.osds)
        for number in new:
            osds[number] = Osd(
                id=number, device_class=one.device_class, host=one.host, up=True, is_in=True,
                destroyed=False, reweight=1.0, size_bytes=one.size_bytes, used_bytes=0,
                has_statistics=True)
        crush = _with_osds(crush, one, new)
    if changes.added:
        pools = _with_rules(pools, crush)
    sizes = {pool.id: pool.stored_bytes // pool.data_shards for pool in pools.values()}
    after = snapshot._replace(
        osds=osds, crush=crush, pools=pools, set_names=name_sets(osds, crush, pools, sizes))
    return without(after, changes.removed)


def _with_rules(pools: Mapping[int, Pool], crush: CrushHierarchy) -> Dict[int, Pool]:
    """Returns the pools with their rules in a changed map; equal rules are one object."""
    rules: Dict[Tuple[int, int, bool], PlacementRule] = {}
    found = dict(pools)
    for pool in pools.values():
        if pool.rule is not None:
            key = pool.rule_id, pool.size, pool.is_grouped
            if key not in rules:
                rules[key] = PlacementRule(
                    crush, crush.rules[pool.rule_id], pool.size, pool.is_grouped)
            found[pool.id] = pool._replace(rule=rules[key])
    return found


def without(snapshot: Snapshot, osds: FrozenSet[int]) -> Snapshot:
    """Returns the snapshot with some OSDs drained: their data has to go to the others."""
    found = dict(snapshot.osds)
    for osd in osds & found.keys():
        found[osd] = found[osd]._replace(drained=True)
    return snapshot._replace(osds=found)


def _with_osds(crush: CrushHierarchy, one: AddedOsds, osds: Sequence[int]) -> CrushHierarchy:
    """Returns the map with OSDs in a host, in the tree and in the shadow tree of their class."""
    buckets = dict(crush.buckets)
    ids = {bucket.name: bucket.id for bucket in buckets.values()}
    above = _names_above(crush)
    new_host = Bucket(0, "", HOST_TYPE, crush.type_ids.get(HOST_TYPE, 1), ())
    names = [one.host]   # up to the root
    parent: Optional[str] = one.bucket
    while parent is not None:
        names.append(parent)
        parent = above.get(ids[parent])
    suffixes = [""]
    device_class = ""
    if one.device_class != NO_CLASS:
        device_class = one.device_class
        suffixes.append(SHADOW + device_class)
    for suffix in suffixes:
        more = dict.fromkeys(osds, _crush_weight(one.size_bytes))
        for name in names:
            number = ids.setdefault(name + suffix, min(buckets) - 1)
            like = buckets.get(ids[name], new_host)
            before = buckets.get(
                number, like._replace(id=number, name=name + suffix, items=()))
            weights = dict(before.items)
            for item, weight in more.items():
                weights[item] = weights.get(item, 0.0) + weight
            buckets[number] = before._replace(items=tuple(weights.items()))
            more = {number: _crush_weight(len(osds) * one.size_bytes)}
    return crush.changed(buckets, {**crush.device_class, **dict.fromkeys(osds, device_class)})


def _crush_weight(size: int) -> float:
    """Returns the weight that Ceph gives a size in bytes: TiB, rounded down to 1/65536."""
    return int(size / _TIB * WEIGHT_ONE) / WEIGHT_ONE


def with_pg_num(snapshot: Snapshot, pool_id: int, pg_num: int) -> Snapshot:
    """Returns the idle cluster with more PGs in a pool, each on the OSDs of its parent PG.

    CRUSH would place most of them elsewhere. A plan ends nearly the same from there but copies
    less, so do not use its bytes.
    """
    before = snapshot.pools[pool_id]
    after = before._replace(pg_num=pg_num)
    mask = (1 << (before.pg_num - 1).bit_length()) - 1
    pgs = SnapshotPgs()
    parents: Dict[int, Pg] = {}
    for pgid, pg in snapshot.pgs.items():
        if pg.pool == pool_id:
            parents[pg_number(pgid)] = pg
        else:
            pgs[pgid] = pg
    kept = {pgid: items for pgid, items in snapshot.upmap_items.items() if pgid in pgs}
    mean = sum([pg.shard_bytes for pg in parents.values()]) / pg_num
    for number in piecewise(range(pg_num), _PGS_A_PIECE):
        pgid = f"{pool_id}.{number:x}"
        parent = parents.get(number & mask) or parents[number & mask >> 1]   # ceph_stable_mod
        pgs[pgid] = parent._replace(
            pgid=pgid,
            raw=parent.up,
            shard_bytes=int(mean * shard_weight(after, pgid)),
            objects=parent.objects * before.pg_num // pg_num)
    return snapshot._replace(pgs=pgs, pools={**snapshot.pools, pool_id: after}, upmap_items=kept)


def placed_anew_bytes(snapshot: Snapshot, changes: Changes) -> int:
    """Estimates the bytes that a pg_num change remaps.

    This is the data split off each PG or merged into another, except shards that CRUSH happens to
    map to the same OSD.
    """
    found = 0.0
    pg_nums = dict(changes.pg_nums)
    pools = snapshot.pools
    wholes: Dict[PlacementBlock, float] = {}   # → the sum of its weights
    for number in pg_nums:
        for block in pools[number].blocks:
            wholes[block] = sum(block.weights.values()) or 1.0
    remapped = (pg for pg in snapshot.pgs.values() if pg.pool in pg_nums)
    for pg in piecewise(remapped, _PGS_A_PIECE):
        pool = pools[pg.pool]
        after = pool._replace(pg_num=pg_nums[pool.id])
        kept = 0.0   # ratio of its objects
        if pg_number(pg.pgid) < after.pg_num:
            before = shard_weight(pool, pg.pgid) / pool.pg_num   # of the pool's objects
            kept = shard_weight(after, pg.pgid) / after.pg_num / before
        if kept < 1.0:
            found += (1.0 - kept) * pg.shard_bytes * _expected_moves(pool, pg, wholes)
    return int(found)


def _expected_moves(pool: Pool, pg: Pg, wholes: Mapping[PlacementBlock, float]) -> float:
    """Returns how many shards leave their OSDs, on average, if CRUSH maps a PG again."""
    moves = 0.0
    for block in pool.blocks:
        # CRUSH tries for each position of an erasure-coded PG separately
        tries = 1 if pool.erasure else block.positions
        for osd in block.members(pg.up):
            moves += 1.0 - min(1.0, block.weights.get(osd, 0.0) / wholes[block] * tries)
    return moves


# -- better places ---------------------------------------------------------------------------------

Addition = Tuple[str, Tuple[AddedOsds, ...]]   # (words for it, the OSDs)


def other_places(snapshot: Snapshot, one: AddedOsds, usable: float) -> List[Addition]:
    """Returns alternatives for added OSDs of whose bytes only the ratio `usable` can be used.

    These are the OSDs under each other bucket of that type, the OSDs in equal parts under all of
    these or in more hosts, and fewer OSDs.
    """
    plain = _plain_buckets(snapshot.crush)
    kind = plain[one.bucket].type_name
    below = _names_above(snapshot.crush)   # a root is not in it and has no peers
    peers = sorted([bucket.name for bucket in plain.values()
                    if bucket.type_name == kind and bucket.id in below])
    under = [one._replace(bucket=name, host=f"{one.host}-{name}") for name in peers]
    places: List[Addition] = [(f"under {added.bucket}", (added,)) for added in under
                              if added.bucket != one.bucket]
    count = one.osds
    if 1 < len(peers) <= count:
        each = count // len(peers)
        places.append((f"{each} of them under each {kind}",
                       tuple([added._replace(osds=each) for added in under])))
    for hosts in range(2, min(count, _MOST_HOSTS) + 1):
        each = count // hosts
        spread = [one._replace(host=f"{one.host}-{number}", osds=each) for number in range(hosts)]
        places.append((f"in {hosts} hosts of {each}", tuple(spread)))
    fewer = int(usable * count)
    if 0 < fewer < count:
        places.append((f"{fewer} of them", (one._replace(osds=fewer),)))
    return places
