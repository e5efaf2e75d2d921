"""The OSDMap of a large cluster, for a monitor to begin with: every OSD is up and in.

Ceph's own tools make the map; what they cannot make, many pools and OSDs with features, is put
into it by tests/oracle.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import List

from tests.oracle.ceph_tools import run_tool
from tests.oracle.maps.binary_osdmap import (
    FULL_WEIGHT, OSD_EXISTS, OSD_UP, BinaryOSDMap, UnexpectedEncoding, make_pool)

OSDS_PER_HOST = 20
POOLS = 64
SHARDS_PER_OSD = 100
SIZE = 3   # replicas
_FEATURES_AT = 22   # in an osd_xinfo_t, behind its struct header, a time and two numbers


def make_osdmap(folder: Path, osds: int) -> Path:
    """Write a map of hosts and replicated pools, about SHARDS_PER_OSD; its path."""
    crush, path = folder / "crush", folder / "osdmap"
    run_tool("crushtool", "-o", crush, "--build", "--num_osds", osds,
             "host", "straw2", OSDS_PER_HOST, "root", "straw2", 0)
    run_tool("osdmaptool", "--createsimple", osds, path, "--with-default-pool", "--clobber")
    run_tool("osdmaptool", path, "--import-crush", crush)
    osdmap = BinaryOSDMap.read(path)
    template = osdmap.pools[1]
    pools = range(1, POOLS + 1)
    osdmap.pools = {pool: make_pool(template, 1, SIZE, 0, pg_num(osds)) for pool in pools}
    osdmap.pool_names = {pool: f"pool{pool}" for pool in pools}
    osdmap.pool_max = POOLS
    osdmap.states = [OSD_EXISTS | OSD_UP] * osds
    osdmap.weights = [FULL_WEIGHT] * osds
    osdmap.osd_section = _with_features(osdmap.osd_section, osds)
    return osdmap.write(path)


def pg_num(osds: int) -> int:
    """PGs of each pool: a power of two, so that the OSDs hold about SHARDS_PER_OSD."""
    wanted = max(1, osds * SHARDS_PER_OSD // (SIZE * POOLS))
    return 1 << (wanted.bit_length() - 1)


def _with_features(section: bytes, osds: int) -> bytes:
    """Every OSD's osd_xinfo_t with all features: a monitor ends itself where an up OSD has none."""
    for length in range(24, 64):
        found = _find_xinfo(section, osds, length)
        if found:
            start, entry = found[0], bytearray(section[found[0]:found[0] + length])
            entry[_FEATURES_AT:_FEATURES_AT + 8] = b"\xff" * 8
            return section[:start] + bytes(entry) * osds + section[start + length * osds:]
    raise UnexpectedEncoding("the OSDs' features are not where they are expected")


def _find_xinfo(section: bytes, osds: int, length: int) -> List[int]:
    """Where so many equal empty entries of that length begin, struct header included."""
    for version in range(3, 8):
        header = struct.pack("<BBI", version, 1, length - 6)
        start = section.find(struct.pack("<I", osds) + header + bytes(_FEATURES_AT + 8 - 6))
        if start >= 0 and section[start + 4:].startswith(
                section[start + 4:start + 4 + length] * osds):
            return [start + 4]
    return []
