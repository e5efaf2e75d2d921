"""Upmap items: applies them, recovers what CRUSH alone gives, finds the shortest ones.

The rules are those of OSDMap::_apply_upmap and OSDMap::clean_pg_upmaps (Ceph 16 to 20).
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..crush.placement import PlacementRule
from .model import UpmapItems


def apply_items(raw: Sequence[int], items: Iterable[Tuple[int, int]],
                is_out: Callable[[int], bool]) -> Tuple[int, ...]:
    """The up set that Ceph makes of a raw mapping and upmap items, OSDs that are down included."""
    current = list(raw)
    for source, target in items:
        if target in current or source not in current or is_out(target):
            continue
        current[current.index(source)] = target
    return tuple(current)


def invert_items(up: Sequence[int], items: Sequence[Tuple[int, int]],
                 is_out: Callable[[int], bool]) -> Optional[Tuple[int, ...]]:
    """The raw CRUSH mapping of an up set, or None where it is not certain."""
    gone = {pair for pair in items if pair[1] in up and pair[0] not in up}
    if len({source for source, _ in gone}) < len(gone):
        return None   # only one of the targets replaced the source; CRUSH chose the others
    raw = list(up)
    for source, target in reversed(items):
        if target in raw and source not in raw:
            raw[raw.index(target)] = source
    if apply_items(raw, items, is_out) != tuple(up):
        return None
    return tuple(raw)


def keep_raw_positions(raw: Sequence[int], wanted: Sequence[int],
                      rule: PlacementRule) -> Tuple[int, ...]:
    """The same OSDs in each block of the rule, those that CRUSH chose at their raw positions.

    In replicated pools only the set matters. Raw positions keep the items short.
    """
    found: List[int] = list(wanted)
    for block in rule.blocks:
        span = range(block.start, block.start + block.positions)
        members = {wanted[i] for i in span}
        chosen = {raw[i] for i in span}
        others = iter([wanted[i] for i in span if wanted[i] not in chosen])
        for i in span:
            found[i] = raw[i] if raw[i] in members else next(others)
    return tuple(found)


def items_for(raw: Sequence[int], wanted: Sequence[int]) -> UpmapItems:
    """The upmap items that turn the raw mapping into the wanted up set; empty where they are equal.

    Ceph applies pairs in their order and skips one whose target is there: a pair that takes an OSD
    comes after the one that leaves it. Raises ValueError where no order does it, as shards would
    exchange their OSDs in a circle.
    """
    pairs = tuple((r, w) for r, w in zip(raw, wanted) if r != w)
    present = set(raw)
    if present.isdisjoint([target for _, target in pairs]) and len(
            {target for _, target in pairs}) == len(pairs):
        return pairs
    return _in_order(list(pairs), present)


def _in_order(left: List[Tuple[int, int]], present: Set[int]) -> UpmapItems:
    """The pairs, each after the one that leaves its target. `present`: the OSDs of the raw
    mapping. Both are used up."""
    ordered: List[Tuple[int, int]] = []
    while left:
        pair = next((one for one in left if one[1] not in present), None)
        if pair is None:
            raise ValueError("upmap items cannot exchange OSDs inside one PG")
        left.remove(pair)
        ordered.append(pair)
        present.discard(pair[0])
        present.add(pair[1])
    return tuple(ordered)


def items_by_pg(osd_map: Mapping[str, Any]) -> Dict[str, UpmapItems]:
    """pgid → upmap items of an osdmap dump."""
    return {entry["pgid"]: tuple((m["from"], m["to"]) for m in entry["mappings"])
            for entry in osd_map.get("pg_upmap_items", [])}
