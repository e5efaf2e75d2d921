"""Upmap items: applies them, recovers what CRUSH alone gives, finds the shortest ones.

The rules are those of OSDMap::_apply_upmap and OSDMap::clean_pg_upmaps (Ceph 16 to 20).
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..crush.placement import PlacementRule
from .model import UpmapItems

#: Raw mappings that are looked at where an up set and its items allow several.
_MOST_RAWS = 64


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
        # one of the targets replaced the source, and CRUSH chose the others or the items passed
        # through the source
        return _only_raw(up, items, is_out)
    raw = list(up)
    for source, target in reversed(items):
        if target in raw and source not in raw:
            raw[raw.index(target)] = source
    return tuple(raw) if apply_items(raw, items, is_out) == tuple(up) else None


def _only_raw(up: Sequence[int], items: Sequence[Tuple[int, int]],
              is_out: Callable[[int], bool]) -> Optional[Tuple[int, ...]]:
    """The raw mapping of an up set, of all that it can have come of; None where there are several.
    It has all sources: a monitor keeps no other pairs."""
    found = {tuple(up)}
    for number in range(len(items) - 1, -1, -1):
        source, target = items[number]
        before = {tuple([source if osd == target else osd for osd in one])
                  for one in found if target in one and source not in one}
        # the pair may have been skipped where its source is there, or another pair brings it
        is_brought = any(source == other for other, _ in items[:number])
        found = before | {one for one in found if is_brought or source in one}
        if len(found) > _MOST_RAWS:
            return None
    sources = {source for source, _ in items}
    raws = [raw for raw in found
            if sources.issubset(raw) and apply_items(raw, items, is_out) == tuple(up)]
    return raws[0] if len(raws) == 1 else None


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
    comes after the one that leaves it. Shards that exchange their OSDs in a circle pass through an
    OSD of the raw mapping that another shard has left, which costs a pair more: a monitor keeps no
    pair whose source is not in the raw mapping. Raises ValueError where no shard has left one, or
    the pairs are more than the PG has shards, which a monitor does not take.
    """
    pairs = tuple((r, w) for r, w in zip(raw, wanted) if r != w)
    present, targets = set(raw), {target for _, target in pairs}
    if len(targets) < len(pairs) or any(r == w and r in targets for r, w in zip(raw, wanted)):
        raise ValueError("a PG cannot have two shards on an OSD")
    return pairs if present.isdisjoint(targets) else _in_order(list(pairs), present, raw)


def _in_order(left: List[Tuple[int, int]], present: Set[int], raw: Sequence[int]) -> UpmapItems:
    """The pairs, each after the one that leaves its target. `present`: the OSDs of the raw
    mapping. Both are used up."""
    ordered: List[Tuple[int, int]] = []
    while left:
        pair = next((one for one in left if one[1] not in present), None)
        if pair is not None:
            left.remove(pair)
        else:   # what is left is circles: the first shard makes way, and goes on from there later
            passed = next((osd for osd in raw if osd not in present), None)
            if passed is None:
                raise ValueError("upmap items cannot exchange OSDs inside one PG")
            source, target = left[0]
            pair, left[0] = (source, passed), (passed, target)
        ordered.append(pair)
        present.discard(pair[0])
        present.add(pair[1])
    if len(ordered) > len(raw):
        raise ValueError("upmap items cannot have more pairs than the PG has shards")
    return tuple(ordered)


def items_by_pg(osd_map: Mapping[str, Any]) -> Dict[str, UpmapItems]:
    """pgid → upmap items of an osdmap dump."""
    return {entry["pgid"]: tuple((m["from"], m["to"]) for m in entry["mappings"])
            for entry in osd_map.get("pg_upmap_items", [])}
