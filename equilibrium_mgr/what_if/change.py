"""Changes that somebody thinks about: OSDs that are bought, removed or replaced by larger ones, and
another pg_num; and the cluster as it would be with them, before anything has moved for it.

Of CRUSH no more is asked here than which OSDs a rule can use, and the buckets that it keeps apart.
"""
from __future__ import annotations

import re
from collections import Counter
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from ..crush.hierarchy import Bucket, CrushHierarchy
from ..crush.placement import PlacementRule
from ..plan.usage import shard_weight
from ..runtime.formatting import format_bytes, parse_size, plural
from ..runtime.time_slice import piecewise
from ..snapshot.model import NO_CLASS, Osd, Pg, Pool, Snapshot, pg_number
from ..snapshot.osds import name_sets
from .failure import HOST_TYPE, SHADOW, find_failure

_TIB = float(1 << 40)
#: Ceph takes no more PGs for a pool by default (mon_max_pool_pg_num); OSDs in one question.
_MOST_PGS, _MOST_OSDS = 65536, 2000
_PGS_A_PIECE = 500   # before it gives way again: about a millisecond
_ADDED = re.compile(r"([\w.-]+):(\d+)x([^:@]+)(?::([\w.-]+))?(?:@([\w.-]+))?")


class AddedOsds(NamedTuple):
    """Empty OSDs of one size, in a new host or in one that is there."""

    host: str
    count: int
    size_bytes: int
    device_class: str
    bucket: str   # above the host

    def sentence(self) -> str:
        """For people."""
        return (f"{plural(self.count, 'OSD')} of {format_bytes(self.size_bytes)}, class"
                f" {self.device_class}, in host {self.host} under {self.bucket}")


class Changes(NamedTuple):
    """What is asked about; hashable, and as it was asked for."""

    added: Tuple[AddedOsds, ...] = ()
    removed: FrozenSet[int] = frozenset()
    removed_names: str = ""
    sizes: Tuple[Tuple[int, int], ...] = ()      # (OSD id, new size in bytes)
    pg_nums: Tuple[Tuple[int, int], ...] = ()    # (pool id, new pg_num)

    @property
    def added_bytes(self) -> int:
        """Raw size of all that is added."""
        return sum(one.count * one.size_bytes for one in self.added)


def parse_changes(snapshot: Snapshot, add: Sequence[str], remove: Sequence[str],
                  resize: Sequence[str], pg_num: Sequence[str]) -> Changes:
    """The changes that texts name, each with commas between several. Raises ValueError, with a
    sentence for people, for what is no change; LookupError for a name that is not there."""
    added, removed, sizes, pg_nums = [[one.strip() for text in texts for one in text.split(",")]
                                      for texts in (add, remove, resize, pg_num)]
    changes = Changes(
        tuple([_added(snapshot, text) for text in added]),
        frozenset().union(*[_osds(snapshot, "--remove", text) for text in removed]),
        ", ".join(removed),
        tuple(sorted({osd: size for text in sizes for osd, size in _sizes(snapshot, text)}.items())),
        tuple(sorted({pool: number for pool, number in [
            _pg_num(snapshot, text) for text in pg_nums]}.items())))
    if sum(one.count for one in changes.added) > _MOST_OSDS:
        raise ValueError(f"--add takes {_MOST_OSDS} OSDs at most")
    for one in changes.added:
        if any(other.host == one.host and other.bucket != one.bucket for other in changes.added):
            raise ValueError(f"--add has host {one.host} under two buckets")
    if changes.removed >= {osd.id for osd in snapshot.osds.values() if osd.is_for_data}:
        raise ValueError("--remove has all OSDs that are in")
    return changes


def _added(snapshot: Snapshot, text: str) -> AddedOsds:
    match = _ADDED.fullmatch(text)
    size = parse_size(match.group(3)) if match is not None else None
    if match is None or not size or not int(match.group(2)):
        raise ValueError(f"--add '{text}' is not HOST:COUNTxSIZE[:CLASS][@BUCKET], as in"
                         " host9:12x20T:hdd@rack2")
    host, count, _, device_class, place = match.groups()
    plain = {one.name: one for one in snapshot.crush.buckets.values() if SHADOW not in one.name}
    above = {item: one.name for one in plain.values() for item, _ in one.items}
    hosts = [one for one in plain.values() if one.type_name == HOST_TYPE]
    if host in plain and (plain[host].type_name != HOST_TYPE or above.get(
            plain[host].id, "") != (place or above.get(plain[host].id, ""))):
        raise ValueError(f"--add '{text}': {plain[host].type_name} {host} is there already, under"
                         f" {above.get(plain[host].id, 'no bucket')}")
    if place is not None and place not in plain:
        raise LookupError(f"--add '{text}': no CRUSH bucket is named '{place}'")
    places = {place} if place is not None else {
        above[one.id] for one in ([plain[host]] if host in plain else hosts) if one.id in above}
    if len(places) != 1:
        raise ValueError(f"--add '{text}' leaves open under which bucket the host is; name it, as"
                         f" in @{min(places, default='default')}")
    if plain[min(places)].type_id <= snapshot.crush.type_ids.get(HOST_TYPE, 1):
        raise ValueError(f"--add '{text}': no host is under {plain[min(places)].type_name}"
                         f" {min(places)}")
    classes = {osd.device_class for osd in snapshot.osds.values()
               if host not in plain or osd.host == host}
    if device_class is None and len(classes) != 1:
        raise ValueError(f"--add '{text}' leaves open of which class the OSDs are; name it, as in"
                         f" {host}:{count}x{match.group(3)}:{min(classes, default='hdd')}")
    return AddedOsds(host, int(count), size, device_class or min(classes), min(places))


def _osds(snapshot: Snapshot, option: str, text: str) -> FrozenSet[int]:
    found = find_failure(snapshot, text)
    if found is None:
        raise LookupError(f"{option} '{text}' is neither an OSD (3 or osd.3) nor a bucket of the"
                          " CRUSH map")
    if not found.osds:
        raise ValueError(f"{option}: no OSD of '{text}' is in")
    return found.osds


def _sizes(snapshot: Snapshot, text: str) -> List[Tuple[int, int]]:
    name, _, value = text.rpartition("=")
    size = parse_size(value)
    if not name or not size:
        raise ValueError(f"--resize '{text}' is not OSD=SIZE, as in osd.3=20T")
    return [(osd, size) for osd in _osds(snapshot, "--resize", name)]


def _pg_num(snapshot: Snapshot, text: str) -> Tuple[int, int]:
    name, _, value = text.rpartition("=")
    if not name or not value.isdecimal() or not 0 < int(value) <= _MOST_PGS:
        raise ValueError(f"--pg-num '{text}' is not POOL=N, with N from 1 to {_MOST_PGS}")
    pools = {**{str(pool.id): pool for pool in snapshot.pools.values()},
             **{pool.name: pool for pool in snapshot.pools.values()}}
    if name not in pools:
        raise LookupError(f"--pg-num: no pool has the name or id '{name}'")
    if pools[name].pg_num == int(value):
        raise ValueError(f"--pg-num: pool {pools[name].name} has {value} PGs already")
    return pools[name].id, int(value)


# -- the cluster with them -------------------------------------------------------------------------

def with_changes(snapshot: Snapshot, changes: Changes) -> Snapshot:
    """The cluster with the changes made and nothing moved for them: what is added is empty, what is
    removed has to be emptied onto others, a resized OSD keeps its data. Another pg_num does not show:
    no bound depends on it, as bytes can be split."""
    osds, crush, pools = dict(snapshot.osds), snapshot.crush, dict(snapshot.pools)
    for osd, size in changes.sizes:   # what is written for a size must not hold it to a share of it
        osds[osd] = osds[osd]._replace(
            size_bytes=max(1, int(size / osds[osd].size_factor)), share=1.0, held_by="",
            device=(size, osds[osd].device[1]) if osds[osd].size_factor != 1.0 else (0, 0))
    for one in changes.added:
        first = max([-1, *osds]) + 1
        for osd in range(first, first + one.count):
            osds[osd] = Osd(osd, one.device_class, one.host, True, True, False, 1.0,
                            one.size_bytes, 0, True, 0, 0)
        crush = _with_osds(crush, one, range(first, first + one.count))
    if crush is not snapshot.crush:
        rules: Dict[Tuple[int, int, bool], PlacementRule] = {}
        for pool in snapshot.pools.values():
            key = pool.rule_id, pool.size, pool.erasure
            if pool.rule is not None:
                if key not in rules:
                    rules[key] = PlacementRule(crush, crush.rules[pool.rule_id], *key[1:])
                pools[pool.id] = pool._replace(rule=rules[key])
    sizes: Counter[int] = Counter()
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        sizes[pg.pool] += pg.shard_bytes
    return without(snapshot._replace(
        osds=osds, crush=crush, pools=pools, set_names=name_sets(osds, crush, pools, sizes)),
        changes.removed)


def without(snapshot: Snapshot, osds: FrozenSet[int]) -> Snapshot:
    """The cluster where all that is on some OSDs has to go to the others."""
    return snapshot._replace(osds={number: osd._replace(drained=True) if number in osds else osd
                                   for number, osd in snapshot.osds.items()})


def _with_osds(crush: CrushHierarchy, one: AddedOsds, osds: Sequence[int]) -> CrushHierarchy:
    """The map with OSDs in a host, in the tree and in that of their class."""
    buckets, ids = dict(crush.buckets), {one.name: one.id for one in crush.buckets.values()}
    above = {item: bucket.name for bucket in buckets.values() if SHADOW not in bucket.name
             for item, _ in bucket.items}
    path = [one.host, one.bucket]
    while ids[path[-1]] in above:
        path.append(above[ids[path[-1]]])
    is_classed = one.device_class != NO_CLASS
    for suffix in ["", SHADOW + one.device_class][:1 + is_classed]:
        items = dict.fromkeys(osds, one.size_bytes / _TIB)
        for name in path:
            like = buckets.get(ids.get(name, 0), Bucket(
                0, "", HOST_TYPE, crush.type_ids.get(HOST_TYPE, 1), ()))
            number = ids.setdefault(name + suffix, min(buckets) - 1)
            before = buckets.get(number, Bucket(
                number, name + suffix, like.type_name, like.type_id, ()))
            weights = dict(before.items)
            for item, weight in items.items():
                weights[item] = weights.get(item, 0.0) + weight
            buckets[number] = before._replace(items=tuple(weights.items()))
            items = {number: len(osds) * one.size_bytes / _TIB}
    return crush.replaced(buckets, {**crush.device_class, **dict.fromkeys(
        osds, one.device_class if is_classed else "")})


def placed_anew_bytes(snapshot: Snapshot, changes: Changes) -> int:
    """Bytes that CRUSH is to be expected to place elsewhere for another pg_num: what is split off
    from each PG, and PGs that are merged into others, but for the shards that happen to fall where
    they are."""
    found, pg_nums = 0.0, dict(changes.pg_nums)
    for pg in piecewise(snapshot.pgs.values(), _PGS_A_PIECE):
        pool, pg_num = snapshot.pools[pg.pool], pg_nums.get(pg.pool, 0)
        if pg_num:
            kept = 0.0 if pg_number(pg.pgid) >= pg_num else min(1.0, (   # of the pool's objects
                shard_weight(pool._replace(pg_num=pg_num), pg.pgid) / pg_num) / (
                shard_weight(pool, pg.pgid) / pool.pg_num))
            found += (1.0 - kept) * _moved(pool, pg)
    return int(found)


def _moved(pool: Pool, pg: Pg) -> float:
    moved = 0.0
    for block in pool.rule.blocks if pool.rule is not None else ():
        tries = 1 if pool.erasure else block.positions
        whole = sum(block.weights.values())
        for osd in block.members(pg.up):
            moved += pool.bytes_on(pg.shard_bytes, osd, pg.up) * (1.0 - min(
                1.0, tries * block.weights.get(osd, 0.0) / whole))
    return moved


# -- where it would be of more use -----------------------------------------------------------------

def other_places(snapshot: Snapshot, one: AddedOsds, usable: float
                 ) -> List[Tuple[str, Tuple[AddedOsds, ...]]]:
    """(words, what would be added instead) for OSDs of which a ratio is usable: under each other
    bucket of that type; the same OSDs in equal parts under all of these, or in more hosts; and
    fewer of them."""
    plain = [bucket for bucket in snapshot.crush.buckets.values() if SHADOW not in bucket.name]
    kind = next(bucket.type_name for bucket in plain if bucket.name == one.bucket)
    is_root = all(bucket.id != item for bucket in plain if bucket.name == one.bucket
                  for other in plain for item, _ in other.items)
    peers = [] if is_root else sorted(
        bucket.name for bucket in plain if bucket.type_name == kind)
    found = [(f"under {name}", (one._replace(bucket=name, host=f"{one.host}-{name}"),))
             for name in peers if name != one.bucket]
    if len(peers) > 1 and one.count >= len(peers):
        each = one.count // len(peers)
        found.append((f"{each} of them under each {kind}", tuple([one._replace(
            bucket=name, host=f"{one.host}-{name}", count=each) for name in peers])))
    for hosts in range(2, 5):
        if one.count >= hosts:
            found.append((f"in {hosts} hosts of {one.count // hosts}", tuple([one._replace(
                host=f"{one.host}-{number}", count=one.count // hosts)
                for number in range(hosts)])))
    fewer = int(usable * one.count)
    if 0 < fewer < one.count:
        found.append((f"{fewer} of them", (one._replace(count=fewer),)))
    return found
