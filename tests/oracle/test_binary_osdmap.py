"""The tests' own tool: upmap items and pools put into a binary map are read back by osdmaptool."""

from __future__ import annotations

from pathlib import Path

import pytest

from .ceph_tools import ToolFailed, dump_osdmap, map_pgs, run_tool
from .maps.binary_osdmap import (
    FULL_WEIGHT, OSD_EXISTS, OSD_UP, BinaryOSDMap, UnexpectedEncoding, dumped_items)


@pytest.fixture
def small_map(tmp_path: Path) -> Path:
    """Seven OSDs up and in, one replicated pool of 56 PGs."""
    path = tmp_path / "osdmap"
    run_tool("osdmaptool", "--createsimple", 7, path, "--with-default-pool", "--pg-bits", 3)
    osdmap = BinaryOSDMap.read(path)
    osdmap.states = [OSD_EXISTS | OSD_UP] * 7
    osdmap.weights = [FULL_WEIGHT] * 7
    return osdmap.write(path)


def test_items_are_read_back_and_applied(small_map: Path) -> None:
    raw = map_pgs(small_map)["1.b"].raw
    target = next(osd for osd in range(7) if osd not in raw)
    osdmap = BinaryOSDMap.read(small_map)
    osdmap.items = {"1.b": [(raw[0], target)]}
    osdmap.write(small_map)
    assert dumped_items(dump_osdmap(small_map)) == {"1.b": [(raw[0], target)]}
    assert map_pgs(small_map)["1.b"].raw == raw
    assert map_pgs(small_map)["1.b"].up == (target,) + raw[1:]


def test_items_can_be_taken_out_again(small_map: Path) -> None:
    before = small_map.read_bytes()
    osdmap = BinaryOSDMap.read(small_map)
    osdmap.items = {"1.0": [(0, 1)], "1.37": [(2, 3), (4, 5)]}
    osdmap.write(small_map)
    osdmap = BinaryOSDMap.read(small_map)
    osdmap.items = {}
    assert osdmap.pack() == before


def test_a_damaged_map_is_refused(small_map: Path) -> None:
    data = bytearray(small_map.read_bytes())
    data[60] ^= 1
    small_map.write_bytes(bytes(data))
    with pytest.raises((UnexpectedEncoding, ToolFailed)):
        BinaryOSDMap.read(small_map)
