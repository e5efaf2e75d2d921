"""Reads and writes the few fields of a binary OSDMap that these tests change.

Ceph offers no tool that puts given upmap items, erasure-coded pools or reweights into a map
without a monitor. The map is cut at the fields in question, everything between them is kept as
bytes, and the lengths and the crc32c are made anew. Where a field cannot be found by walking from
the front, its old bytes are made from the JSON dump and must stand where they are expected: an
encoding that has changed is noticed and not patched blindly.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from tests.support.clusters.state_records import pg_key

from ..ceph_tools import Pairs, dump_osdmap

Items = Pairs

OSD_EXISTS, OSD_UP = 1, 2
FULL_WEIGHT = 0x10000  # reweight 1.0, "in"; 0 is "out"

_OUTER = struct.Struct("<BBI")  # struct_v, struct_compat, length of what follows
_PG = struct.Struct("<BqIi")  # version, pool, seed, preferred (always -1)


class UnexpectedEncoding(RuntimeError):
    """The map is not laid out as this module knows it."""


def _crc32c_table() -> Tuple[int, ...]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC_TABLE = _crc32c_table()


def crc32c(data: bytes, seed: int = 0xFFFFFFFF) -> int:
    """Castagnoli CRC as Ceph computes it: no final inversion."""
    table, crc = _CRC_TABLE, seed
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc


def dumped_items(osd_dump: Mapping[str, Any]) -> Items:
    """The upmap items of an `osd dump`."""
    return {entry["pgid"]: [(pair["from"], pair["to"]) for pair in entry["mappings"]]
            for entry in osd_dump["pg_upmap_items"]}


def _number(value: int) -> bytes:
    return struct.pack("<I", value)


def _encode_items(items: Items) -> bytes:
    parts = [_number(len(items))]
    for pgid in sorted(items, key=pg_key):
        pool, seed = pg_key(pgid)
        parts.append(_PG.pack(1, pool, seed, -1) + _number(len(items[pgid])))
        parts.extend(struct.pack("<ii", source, target) for source, target in items[pgid])
    return b"".join(parts)


def _encode_text(text: str) -> bytes:
    return _number(len(text)) + text.encode()


def _encode_profiles(profiles: Mapping[str, Mapping[str, str]]) -> bytes:
    parts = [_number(len(profiles))]
    for name in sorted(profiles):
        parts.append(_encode_text(name) + _number(len(profiles[name])))
        parts.extend(_encode_text(key) + _encode_text(profiles[name][key])
                     for key in sorted(profiles[name]))
    return b"".join(parts)


class _Cursor:
    """Walks over little-endian fields."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def take(self, length: int) -> bytes:
        if self.position + length > len(self.data):
            raise UnexpectedEncoding("the map ends within a field")
        piece = self.data[self.position:self.position + length]
        self.position += length
        return piece

    def number(self, code: str) -> int:
        value: int = struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]
        return value


@dataclass
class BinaryOSDMap:
    """An OSDMap cut at the fields that can be changed; `pack` puts it together again."""

    versions: Tuple[int, int, int, int]  # struct_v and compat of the map and its client section
    head: bytes  # fsid, epoch, created, modified
    pools: Dict[int, bytes]  # pool id -> pg_pool_t with its struct header
    pool_names: Dict[int, str]
    pool_max: int
    flags: int
    max_osd: int
    states: List[int]  # OSD_EXISTS | OSD_UP
    weights: List[int]  # reweight, 16.16
    middle: bytes  # addresses, temps, primary affinity, CRUSH map
    profiles: Dict[str, Dict[str, str]]
    items: Items
    tail: bytes  # rest of the client section
    osd_section: bytes
    rest: bytes = field(default=b"")  # behind the outer struct; normally nothing

    @classmethod
    def read(cls, path: Path) -> BinaryOSDMap:
        """Cuts a map. Raises UnexpectedEncoding where the layout is not the known one."""
        data = path.read_bytes()
        dump = dump_osdmap(path)
        version, compat, length = _OUTER.unpack_from(data, 0)
        client_version, client_compat, client_length = _OUTER.unpack_from(data, 6)
        client_end, end = 12 + client_length, 6 + length
        if crc32c(data[:end - 4]) != struct.unpack_from("<I", data, end - 4)[0]:
            raise UnexpectedEncoding("the crc is not at the end of the map")
        cursor = _Cursor(data, 12)
        front = _read_front(cursor)
        tail_length = 28 + (4 if client_version >= 10 else 0)  # 10 adds pg_upmap_primaries
        items, profiles = dumped_items(dump), dump["erasure_code_profiles"]
        if dump["pg_upmap"] or dump.get("pg_upmap_primaries"):
            raise UnexpectedEncoding("maps with pg_upmap or pg_upmap_primaries are not known")
        known = _encode_profiles(profiles) + _number(0) + _encode_items(items)
        start = client_end - tail_length - len(known)
        if data[start:start + len(known)] != known:
            raise UnexpectedEncoding("upmap items are not where they are expected")
        read = cls(versions=(version, compat, client_version, client_compat),
                   middle=data[cursor.position:start], profiles=profiles, items=items,
                   tail=data[client_end - tail_length:client_end],
                   osd_section=data[client_end:end - 4], rest=data[end:], **front)
        if read.pack() != data:
            raise UnexpectedEncoding("the map does not come out as it went in")
        return read

    def pack(self) -> bytes:
        """The whole map, lengths and crc32c made again."""
        numbers = [_number(len(self.pools))]
        numbers.extend(struct.pack("<q", pool) + self.pools[pool] for pool in sorted(self.pools))
        numbers.append(_number(len(self.pool_names)))
        numbers.extend(struct.pack("<q", pool) + _encode_text(self.pool_names[pool])
                       for pool in sorted(self.pool_names))
        numbers.append(struct.pack("<iIi", self.pool_max, self.flags, self.max_osd))
        for values in (self.states, self.weights):
            numbers.append(struct.pack(f"<I{len(values)}I", len(values), *values))
        client = (self.head + b"".join(numbers) + self.middle + _encode_profiles(self.profiles)
                  + _number(0) + _encode_items(self.items) + self.tail)
        version, compat, client_version, client_compat = self.versions
        body = _OUTER.pack(client_version, client_compat, len(client)) + client + self.osd_section
        outer = _OUTER.pack(version, compat, len(body) + 4) + body
        return outer + _number(crc32c(outer)) + self.rest

    def write(self, path: Path) -> Path:
        """Writes the map and returns the path."""
        path.write_bytes(self.pack())
        return path


def _read_front(cursor: _Cursor) -> Dict[str, Any]:
    """The fields from the beginning of the client section to the reweights, by name."""
    head = cursor.take(36)
    pools: Dict[int, bytes] = {}
    for _ in range(cursor.number("I")):
        pool = cursor.number("q")
        header = cursor.take(6)
        pools[pool] = header + cursor.take(_OUTER.unpack(header)[2])
    names: Dict[int, str] = {}
    for _ in range(cursor.number("I")):
        pool = cursor.number("q")
        names[pool] = cursor.take(cursor.number("I")).decode()
    pool_max, flags, max_osd = cursor.number("i"), cursor.number("I"), cursor.number("i")
    states = [cursor.number("I") for _ in range(cursor.number("I"))]
    weights = [cursor.number("I") for _ in range(cursor.number("I"))]
    return {"head": head, "pools": pools, "pool_names": names, "pool_max": pool_max,
            "flags": flags, "max_osd": max_osd, "states": states, "weights": weights}


# Offsets in pg_pool_t behind its struct header, as far as no field before has a variable length
# (no snapshots, tiers, hit sets): true for the pool that `osdmaptool --createsimple` makes.
_POOL_MIN_SIZE, _POOL_STRIPE_WIDTH, _POOL_PROFILE = 64, 129, 165


def make_pool(template: bytes, pool_type: int, size: int, crush_rule: int, pg_num: int,
              profile: str = "", stripe_width: int = 0) -> bytes:
    """A pg_pool_t made from the one of --createsimple: 1 replicated, 3 erasure-coded.

    The caller has to compare the dump of the finished map with what it asked for.
    """
    body = bytearray(template[6:])
    old_pg_num = struct.unpack_from("<I", body, 4)[0]
    body[0], body[1], body[2] = pool_type, size, crush_rule
    body[_POOL_MIN_SIZE] = max(1, size - 1)
    struct.pack_into("<I", body, _POOL_STRIPE_WIDTH, stripe_width)
    struct.pack_into("<II", body, 4, pg_num, pg_num)
    # pg_num_target, pg_placement_num_target and pg_num_pending stand together further behind
    targets = struct.pack("<III", old_pg_num, old_pg_num, old_pg_num)
    if bytes(body).count(targets) != 1 or struct.unpack_from("<I", body, _POOL_PROFILE)[0] != 0:
        raise UnexpectedEncoding("the pool is not laid out as expected")
    changed = bytes(body).replace(targets, struct.pack("<III", pg_num, pg_num, pg_num))
    changed = changed[:_POOL_PROFILE] + _encode_text(profile) + changed[_POOL_PROFILE + 4:]
    version, compat, _ = _OUTER.unpack_from(template, 0)
    return _OUTER.pack(version, compat, len(changed)) + changed


def merge_items(present: Items, changed: Mapping[str, Sequence[Sequence[int]]]) -> Items:
    """Present items with a plan's put over them: the whole entry is replaced, none means rm."""
    merged = dict(present)
    for pgid, pairs in changed.items():
        merged.pop(pgid, None)
        if pairs:
            merged[pgid] = [(int(pair[0]), int(pair[1])) for pair in pairs]
    return merged
