"""Changes that somebody thinks about: OSDs that are bought, removed or replaced by larger ones, and
another pg_num; and the cluster as it would be with them, before anything has moved for it.

Of CRUSH no more is asked here than which OSDs a rule can use, and the buckets that it keeps apart.
"""
from __future__ import annotations

import re
from typing import FrozenSet, List, Mapping, NamedTuple, Sequence, Tuple, Type

from ..crush.hierarchy import WEIGHT_ONE, Bucket, CrushHierarchy
from ..crush.placement import PlacementRule
from ..plan.usage import shard_weight
from ..runtime.formatting import parse_size
from ..runtime.time_slice import piecewise
from ..snapshot.model import NO_CLASS, Osd, Snapshot, SnapshotPgs, pg_number
from ..snapshot.osds import name_sets
from .failure import HOST_TYPE, SHADOW, Failure, failures_by_name, find_failure

_TIB = float(1 << 40)
#: Ceph takes no more PGs for a pool by default (mon_max_pool_pg_num); OSDs in one question; hosts
#: that the OSDs of one are tried in.
_MOST_PGS, _MOST_OSDS, _MOST_HOSTS = 65536, 2000, 4
_PGS_A_PIECE = 500   # before it gives way again: about a millisecond
_ADDED = re.compile(r"([\w.-]+):(\d+)x([^:@]+)(?::([\w.-]+))?(?:@([\w.-]+))?")


class AddedOsds(NamedTuple):
    """Empty OSDs of one size, in a new host or in one that is there."""

    host: str
    osds: int      # how many
    size_bytes: int
    device_class: str
    bucket: str   # above the host


class Changes(NamedTuple):
    """What is asked about; hashable, and as it was asked for."""

    added: Tuple[AddedOsds, ...] = ()
    removed: FrozenSet[int] = frozenset()
    sizes: Tuple[Tuple[int, int], ...] = ()      # (OSD id, new size in bytes)
    pg_nums: Tuple[Tuple[int, int], ...] = ()    # (pool id, new pg_num)


def parse_changes(snapshot: Snapshot, add: Sequence[str], remove: Sequence[str],
                  resize: Sequence[str], pg_num: Sequence[str]) -> Changes:
    """The changes that texts name, each with commas between several. Raises ValueError, with a
    sentence for people, for what is no change; LookupError for a name that is not there."""
    adds, removed, resizes, pg_nums = [[one.strip() for text in texts for one in text.split(",")]
                                       for texts in (add, remove, resize, pg_num)]
    added = tuple([_added(snapshot, text) for text in adds])
    every = failures_by_name(snapshot) if removed or resizes else {}
    gone = frozenset().union(*[_osds(snapshot, every, "--remove", text) for text in removed])
    _refuse(sum(one.osds for one in added) > _MOST_OSDS, f"--add takes {_MOST_OSDS} OSDs at most")
    _refuse(len({(one.host, one.bucket) for one in added}) > len({one.host for one in added}),
            "--add has a host under two buckets")
    _refuse(gone >= {osd.id for osd in snapshot.osds.values() if osd.is_for_data},
            "--remove has all OSDs that are in")
    sizes = dict([one for text in resizes for one in _sizes(snapshot, every, text)])
    numbers = dict([_pg_num(snapshot, text) for text in pg_nums])
    return Changes(added, gone, tuple(sorted(sizes.items())), tuple(sorted(numbers.items())))


def _refuse(holds: bool, sentence: str, error: Type[Exception] = ValueError) -> None:
    if holds:
        raise error(sentence)


def _added(snapshot: Snapshot, text: str) -> AddedOsds:
    match, begin = _ADDED.fullmatch(text), f"--add '{text}'"
    host, count, written, device_class, place = match.groups() if match else ("", "0", "", "", "")
    size = parse_size(written) or 0
    _refuse(not size * int(count), f"{begin} is not HOST:COUNTxSIZE[:CLASS][@BUCKET], as in"
            " host9:12x20T:hdd@rack2")
    plain = {one.name: one for one in snapshot.crush.buckets.values() if SHADOW not in one.name}
    above = {item: one.name for one in plain.values() for item, _ in one.items}
    same = [one for one in plain.values() if one.name == host]
    places = {place} if place is not None else {
        above[one.id] for one in same or plain.values()
        if one.type_name == HOST_TYPE and one.id in above}
    classes = {device_class} if device_class is not None else {
        osd.device_class for osd in snapshot.osds.values() if not same or osd.host == host}
    _refuse(not places <= plain.keys(), f"{begin}: no CRUSH bucket is named '{place}'", LookupError)
    _refuse(any(one.type_name != HOST_TYPE or above.get(one.id) not in places for one in same),
            f"{begin}: {', '.join([f'{one.type_name} {host}' for one in same])} is there already,"
            f" under {', '.join([above.get(one.id, 'no bucket') for one in same])}")
    _refuse(len(places) != 1, f"{begin} leaves open under which bucket the host is; name it, as in"
            f" @{min(places, default='default')}")
    _refuse(any(plain[name].type_id <= snapshot.crush.type_ids.get(HOST_TYPE, 1)
                for name in places), f"{begin}: no host can be under {min(places)}")
    _refuse(len(classes) != 1, f"{begin} leaves open of which class the OSDs are; name it, as in"
            f" {host}:{count}x{written}:{min(classes, default='hdd')}")
    return AddedOsds(host, int(count), size, min(classes), min(places))


def _osds(snapshot: Snapshot, every: Mapping[str, Failure], option: str,
          text: str) -> FrozenSet[int]:
    found = find_failure(snapshot, text, every)
    if found is None:
        raise LookupError(f"{option} '{text}' is neither an OSD (3 or osd.3) nor a bucket of the"
                          " CRUSH map")
    _refuse(not found.osds, f"{option}: no OSD of '{text}' is in")
    return found.osds


def _sizes(snapshot: Snapshot, every: Mapping[str, Failure], text: str) -> List[Tuple[int, int]]:
    name, _, value = text.rpartition("=")
    size = parse_size(value) or 0
    _refuse(not name or not size, f"--resize '{text}' is not OSD=SIZE, as in osd.3=20T")
    return [(osd, size) for osd in _osds(snapshot, every, "--resize", name)]


def _pg_num(snapshot: Snapshot, text: str) -> Tuple[int, int]:
    name, _, value = text.rpartition("=")
    number = int(value) if value.isdecimal() else 0
    _refuse(not name or not 0 < number <= _MOST_PGS,
            f"--pg-num '{text}' is not POOL=N, with N from 1 to {_MOST_PGS}")
    pools = [pool for pool in snapshot.pools.values() if name in (pool.name, str(pool.id))]
    _refuse(not pools, f"--pg-num: no pool has the name or id '{name}'", LookupError)
    pool = max(pools, key=lambda pool: pool.name == name)   # a name goes before an id
    _refuse(pool.pg_num == number, f"--pg-num: pool {pool.name} has {number} PGs already")
    return pool.id, number


# -- the cluster with them -------------------------------------------------------------------------

def with_changes(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """The cluster with the changes made and nothing moved for them: what is added is empty, what is
    removed has to be emptied onto others, a resized OSD keeps its data. Another pg_num shows in no
    bound, as bytes can be split."""
    crush, pools = snapshot.crush, snapshot.pools
    osds = {**snapshot.osds, **{osd: snapshot.osds[osd]._replace(   # lowered weights are of before
        size_bytes=max(1, int(size / snapshot.osds[osd].size_factor)), share=1.0, held_by="",
        device=(size, snapshot.osds[osd].device[1])) for osd, size in changes.sizes}}
    for one in changes.added:
        new = range(max([-1, *osds]) + 1, max([-1, *osds]) + 1 + one.osds)
        osds.update({osd: Osd(osd, one.device_class, one.host, True, True, False, 1.0,
                              one.size_bytes, 0, True, 0, 0) for osd in new})
        crush = _with_osds(crush, one, new)
    if changes.added:
        rules = {key: PlacementRule(crush, crush.rules[key[0]], *key[1:]) for key in {
            (pool.rule_id, pool.size, pool.positional) for pool in pools.values() if pool.rule}}
        pools = {pool.id: pool._replace(rule=rules.get((pool.rule_id, pool.size, pool.positional)))
                 for pool in pools.values()}
    return without(snapshot._replace(
        osds=osds, crush=crush, pools=pools, set_names=name_sets(osds, crush, pools, {
            pool.id: pool.stored_bytes // pool.data_shards for pool in pools.values()})),
        changes.removed)


def without(snapshot: Snapshot, osds: FrozenSet[int]) -> Snapshot:
    """The cluster where all that is on some OSDs has to go to the others."""
    return snapshot._replace(osds={number: osd._replace(drained=True) if number in osds else osd
                                   for number, osd in snapshot.osds.items()})


def _with_osds(crush: CrushHierarchy, one: AddedOsds, osds: Sequence[int]) -> CrushHierarchy:
    """The map with OSDs in a host, in the tree and in that of their class, read as one of Ceph."""
    buckets, ids = dict(crush.buckets), {one.name: one.id for one in crush.buckets.values()}
    above = {item: bucket.name for bucket in buckets.values() if SHADOW not in bucket.name
             for item, _ in bucket.items}
    buckets[0] = Bucket(0, "", HOST_TYPE, crush.type_ids.get(HOST_TYPE, 1), ())   # a new host
    for suffix in ("", SHADOW + one.device_class)[:1 + (one.device_class != NO_CLASS)]:
        name, items = one.host, dict.fromkeys(osds, one.size_bytes / _TIB)
        while name:
            like = buckets[ids.get(name, 0)]
            number = ids.setdefault(name + suffix, min(buckets) - 1)
            before = buckets.get(number, like._replace(id=number, name=name + suffix, items=()))
            weights = dict(before.items)
            weights.update({item: weights.get(item, 0.0) + more for item, more in items.items()})
            buckets[number] = before._replace(items=tuple(weights.items()))
            items = {number: len(osds) * one.size_bytes / _TIB}
            name = one.bucket if name == one.host else above.get(ids[name], "")
    del buckets[0]
    classes = {**crush.device_class, **dict.fromkeys(
        osds, one.device_class if one.device_class != NO_CLASS else "")}
    return CrushHierarchy({
        "devices": [{"id": osd, "class": name} for osd, name in classes.items()],
        "types": [{"name": name, "type_id": number} for name, number in crush.type_ids.items()],
        "rules": list(crush.rules.values()), "buckets": [{**bucket._asdict(), "items": [
            {"id": item, "weight": int(weight * WEIGHT_ONE)} for item, weight in bucket.items]}
            for bucket in buckets.values()]})


def with_pg_num(snapshot: Snapshot, pool_id: int, pg_num: int) -> Snapshot:
    """The cluster at rest with more PGs in a pool, each on the OSDs of that which it is split from.

    CRUSH would place most of them elsewhere. A plan ends nearly the same from there, and copies
    less: take no bytes of it.
    """
    before = snapshot.pools[pool_id]
    after = before._replace(pg_num=pg_num)
    mask = (1 << (before.pg_num - 1).bit_length()) - 1
    parents = {pg_number(pg.pgid): pg for pg in snapshot.pgs.values() if pg.pool == pool_id}
    mean = sum(pg.shard_bytes for pg in parents.values()) / pg_num
    pgs = SnapshotPgs({pgid: pg for pgid, pg in snapshot.pgs.items() if pg.pool != pool_id})
    for number in piecewise(range(pg_num), _PGS_A_PIECE):
        pgid = f"{pool_id}.{number:x}"
        parent = parents.get(number & mask) or parents[number & mask >> 1]   # ceph_stable_mod
        pgs[pgid] = parent._replace(
            pgid=pgid, raw=parent.up, shard_bytes=int(mean * shard_weight(after, pgid)),
            objects=parent.objects * before.pg_num // pg_num)
    kept = {pgid: items for pgid, items in snapshot.upmap_items.items() if pgid in pgs
            and pgs[pgid].pool != pool_id}
    return snapshot._replace(pgs=pgs, pools={**snapshot.pools, pool_id: after}, upmap_items=kept)


def placed_anew_bytes(snapshot: Snapshot, changes: Changes) -> int:
    """Bytes that CRUSH is to be expected to place elsewhere for another pg_num: what is split off
    from each PG, and PGs that are merged into others, but for the shards that happen to fall where
    they are."""
    found, pg_nums = 0.0, dict(changes.pg_nums)
    whole = {block: sum(block.weights.values()) or 1.0 for number in pg_nums
             for block in snapshot.pools[number].blocks}
    for pg in piecewise((pg for pg in snapshot.pgs.values() if pg.pool in pg_nums), _PGS_A_PIECE):
        pool = snapshot.pools[pg.pool]
        after = pool._replace(pg_num=pg_nums[pool.id])
        kept = 0.0 if pg_number(pg.pgid) >= after.pg_num else (
            shard_weight(after, pg.pgid) / after.pg_num) / (   # of the pool's objects
            shard_weight(pool, pg.pgid) / pool.pg_num)
        # CRUSH tries for each position of an erasure-coded PG by itself
        found += (1.0 - kept) * pg.shard_bytes * sum(
            [1.0 - min(1.0, block.weights.get(osd, 0.0) / whole[block] * (
                1 if pool.erasure else block.positions)) for block in (
                pool.blocks if kept < 1.0 else ())
             for osd in block.members(pg.up)])
    return int(found)


# -- where it would be of more use -----------------------------------------------------------------

def other_places(snapshot: Snapshot, one: AddedOsds, usable: float
                 ) -> List[Tuple[str, Tuple[AddedOsds, ...]]]:
    """(words, what would be added instead) for OSDs of which a ratio is usable: under each other
    bucket of that type; the same OSDs in equal parts under all of these, or in more hosts; and
    fewer of them."""
    plain = [bucket for bucket in snapshot.crush.buckets.values() if SHADOW not in bucket.name]
    kind = next(bucket.type_name for bucket in plain if bucket.name == one.bucket)
    below = {item for bucket in plain for item, _ in bucket.items}
    peers = sorted(bucket.name for bucket in plain
                   if bucket.type_name == kind and bucket.id in below)   # a root has none
    each, fewer = one.osds // max(1, len(peers)), int(usable * one.osds)
    return [*[(f"under {name}", (one._replace(bucket=name, host=f"{one.host}-{name}"),))
              for name in peers if name != one.bucket],
            *[(f"{each} of them under each {kind}", tuple([one._replace(
                bucket=name, host=f"{one.host}-{name}", osds=each) for name in peers]))
              for _ in peers[1:2] if each],
            *[(f"in {hosts} hosts of {one.osds // hosts}", tuple([one._replace(
                host=f"{one.host}-{number}", osds=one.osds // hosts) for number in range(hosts)]))
              for hosts in range(2, min(one.osds, _MOST_HOSTS) + 1)],
            *[(f"{fewer} of them", (one._replace(osds=fewer),))] * (0 < fewer < one.osds)]
