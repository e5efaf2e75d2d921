"""Changes of a CRUSH dump against those that crushtool makes in the binary map."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Counter, Dict, List

import pytest

from mgr_stub.crush.edit import with_host, with_osd_weight

from .ceph_tools import compile_crush, dump_crush, run_tool
from .maps.random_crush import RandomMap

MAPS = 80


@pytest.mark.parametrize("number", range(MAPS))
def test_crushtool_changes_the_map_alike(number: int, tmp_path: Path,
                                         tally: Counter[str]) -> None:
    made = RandomMap(f"crush edit {number}", as_grown=True)
    binary = compile_crush(made.text(), tmp_path)
    ours, rng = dump_crush(binary), made.rng
    for turn in range(6):
        items = [item["id"] for bucket in ours["buckets"] for item in bucket["items"]]
        placed = sorted({item for item in items if item >= 0})
        kind = rng.choice(("weight", "host", "more"))
        weight = rng.choice((0.0, 1.0, rng.uniform(0, 20)))
        if kind == "weight" and placed:
            osd = rng.choice(placed)
            options: List[Any] = ["--reweight-item", f"osd.{osd}", weight]
            ours = with_osd_weight(ours, osd, weight)
        else:
            osd = rng.choice(sorted(set(range(made.max_osd + 5)).difference(placed)))
            parent = rng.choice([node for node in made.nodes if node.kind != "host"])
            host = f"new{turn}"
            if kind == "more":
                parent, host = _a_host(ours, made)
            options = ["--add-item", osd, weight, f"osd.{osd}", "--loc", "host", host,
                       "--loc", parent.kind, parent.name]
            # crushtool cannot set a class, but the map knows those of OSDs in no bucket
            known = {device["id"]: device.get("class") for device in ours["devices"]}
            ours = with_host(ours, host, {osd: (known.get(osd), weight)}, under=parent.name)
        run_tool("crushtool", "-i", binary, *options, "-o", binary)
        theirs = dump_crush(binary)
        _compare(ours, theirs, options)
        tally["CRUSH edits"] += 1


def _a_host(dump: Dict[str, Any], made: RandomMap) -> Any:
    """(parent, name) of an existing host with its parent, else of a new one below a root."""
    for node in made.nodes:
        for item, _ in node.items:
            if getattr(item, "kind", "") == "host":
                return node, item.name  # type: ignore[attr-defined]
    return made.nodes[-1], "first"


def _compare(ours: Dict[str, Any], theirs: Dict[str, Any], options: List[Any]) -> None:
    assert ours["buckets"] == theirs["buckets"], options
    assert sorted(ours["choose_args"]) == sorted(theirs["choose_args"])
    for key, entries in theirs["choose_args"].items():
        our_sets, their_sets = _fixed(ours["choose_args"][key]), _fixed(entries)
        assert sorted(our_sets) == sorted(their_sets), options
        for bucket, weights in their_sets.items():
            assert len(our_sets[bucket]) == len(weights), (options, bucket)
            for our_weight, weight in zip(our_sets[bucket], weights):
                # dumps have weights from 256 up in single precision
                assert abs(our_weight - weight) <= weight >> 22, (options, bucket)
    for our_device, device in zip(ours["devices"], theirs["devices"]):
        assert our_device.get("class") == device.get("class"), options


def _fixed(entries: List[Dict[str, Any]]) -> Dict[int, List[int]]:
    """Weight-sets of one position by bucket, as 16.16."""
    assert all(len(entry["weight_set"]) == 1 for entry in entries)
    return {entry["bucket_id"]: [round(weight * 0x10000) for weight in entry["weight_set"][0]]
            for entry in entries}
