"""Upmap items: applies them, recovers the raw CRUSH mapping, finds the shortest ones.

The rules are those of OSDMap::_apply_upmap and OSDMap::clean_pg_upmaps (Ceph 16 to 20).
"""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Set, Tuple

from ..crush.placement import PlacementRule
from .model import UpmapItems

#: The most raw mappings that are compared if an up set and its items allow several.
_MOST_RAWS = 64


def apply_items(raw: Sequence[int], items: Iterable[Tuple[int, int]],
                is_out: Callable[[int], bool]) -> Tuple[int, ...]:
    """Returns Ceph's up set for a raw mapping and upmap items, OSDs that are down included."""
    current = list(raw)
    for source, target in items:
        if source in current and target not in current and not is_out(target):
            current[current.index(source)] = target
    return tuple(current)


def changed_pairs(before: UpmapItems, items: UpmapItems) -> UpmapItems:
    """Returns (OSD that had a shard, OSD that gets it) for each item that is new, gone or
    altered."""
    had = dict(before)
    has = dict(items)
    changed = dict(set(before).symmetric_difference(items))
    return tuple([(had.get(osd, osd), has.get(osd, osd)) for osd in changed])


def invert_items(up: Sequence[int], items: Sequence[Tuple[int, int]],
                 is_out: Callable[[int], bool]) -> Optional[Tuple[int, ...]]:
    """Returns the raw CRUSH mapping of an up set, or None if it is not certain."""
    gone = [source for source, target in {*items} if target in up and source not in up]
    if len(set(gone)) < len(gone):
        # one of the targets replaced the source; CRUSH chose the others, or the items passed
        # through the source
        return _only_raw(up, items, is_out)
    raw = list(up)
    for source, target in reversed(items):
        if target in raw and source not in raw:
            raw[raw.index(target)] = source
    if apply_items(raw, items, is_out) != tuple(up):
        return None
    return tuple(raw)


def _only_raw(up: Sequence[int], items: Sequence[Tuple[int, int]],
              is_out: Callable[[int], bool]) -> Optional[Tuple[int, ...]]:
    """Returns the only raw mapping that the items turn into an up set; None if there are several.

    It has all sources, because a monitor keeps no other pairs.
    """
    found = {tuple(up)}
    for number in range(len(items) - 1, -1, -1):
        source, target = items[number]
        # Ceph has perhaps skipped the pair, if its source is there or an earlier pair replaces it
        is_brought = source in [other for other, _ in items[:number]]
        skipped = {one for one in found if is_brought or source in one}
        applied = [one for one in found if target in one and source not in one]
        found = skipped.union([_with_source(one, source, target) for one in applied])
        if len(found) > _MOST_RAWS:
            return None
    sources = {source for source, _ in items}
    raws = [raw for raw in found
            if sources.issubset(raw) and apply_items(raw, items, is_out) == tuple(up)]
    if len(raws) != 1:
        return None
    return raws[0]


def _with_source(osds: Sequence[int], source: int, target: int) -> Tuple[int, ...]:
    """Returns the OSDs, `source` in place of `target`."""
    return tuple([source if osd == target else osd for osd in osds])


def keep_raw_positions(raw: Sequence[int], wanted: Sequence[int],
                      rule: PlacementRule) -> Tuple[int, ...]:
    """Returns the same OSDs in each block of the rule, those of the raw mapping at their positions.

    In replicated pools only the set matters. Raw positions keep the items short.
    """
    found: List[int] = list(wanted)
    for block in rule.blocks:
        members = block.members(wanted)
        chosen = block.members(raw)
        others = iter([osd for osd in members if osd not in chosen])
        for i, osd in zip(block.span, chosen):
            if osd not in members:
                osd = next(others)
            found[i] = osd
    return tuple(found)


def items_for(raw: Sequence[int], wanted: Sequence[int]) -> UpmapItems:
    """Returns the upmap items that turn the raw mapping into the wanted up set; () if these are
    equal.

    Ceph applies pairs in their order and skips a pair whose target is there. So a pair that takes
    an OSD comes after the pair that leaves it. Shards that exchange their OSDs in a circle pass
    through an OSD of the raw mapping that another shard has left. That costs one pair more, because
    a monitor keeps no pair whose source is not in the raw mapping. Raises ValueError if two shards
    would be on one OSD, or if a circle finds no OSD that a shard has left. Also if the pairs are
    more than the PG has shards, because a monitor rejects these.
    """
    pairs = tuple([(r, w) for r, w in zip(raw, wanted) if r != w])
    targets = [target for _, target in pairs]
    kept = {r for r, w in zip(raw, wanted) if r == w}
    if len(set(targets)) < len(targets) or not kept.isdisjoint(targets):
        raise ValueError("a PG cannot have two shards on an OSD")
    present = set(raw)
    if present.isdisjoint(targets):
        return pairs
    return _in_order(list(pairs), present, raw)


def _in_order(left: List[Tuple[int, int]], present: Set[int], raw: Sequence[int]) -> UpmapItems:
    """Returns the pairs `left`, each after the pair that leaves its target, and empties `left`.

    `present`: the OSDs of the raw mapping; ends as those of the up set.
    """
    ordered: List[Tuple[int, int]] = []
    while left:
        free = [one for one in left if one[1] not in present]
        if free:
            pair = free[0]
            left.remove(pair)
        else:   # only circles are left: the first shard makes way, and goes on from there later
            passed = [osd for osd in raw if osd not in present]
            if not passed:
                raise ValueError("upmap items cannot exchange OSDs inside one PG")
            source, target = left[0]
            pair, left[0] = (source, passed[0]), (passed[0], target)
        ordered.append(pair)
        present.discard(pair[0])
        present.add(pair[1])
    if len(ordered) > len(raw):
        raise ValueError("upmap items cannot have more pairs than the PG has shards")
    return tuple(ordered)


def items_by_pg(osd_map: Mapping[str, Any]) -> Dict[str, UpmapItems]:
    """Returns pgid → upmap items of an osdmap dump."""
    found: Dict[str, UpmapItems] = {}
    for entry in osd_map.get("pg_upmap_items", []):
        found[entry["pgid"]] = tuple([(pair["from"], pair["to"]) for pair in entry["mappings"]])
    return found
