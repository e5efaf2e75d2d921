"""Finds OSDs that an operator holds to a share of their size, by `osd reweight` or CRUSH weights.

An OSD is held where CRUSH weight ÷ size × reweight is clearly below that of comparable OSDs. A
reweight always means that. CRUSH weights stand for sizes in most clusters, and for something else
in some (all 1.0, relative speeds): they count only where most OSDs of a device class and root have
the same weight per byte, or the same weight.
"""
from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import piecewise
from .model import Osd, Pg, Pool

#: A difference below this ratio is no intention of the operator.
_CLEAR_DIFFERENCE = 0.1

#: Ceph gives new OSDs their size in TiB as weight. Where this ratio of a class has exactly that (up
#: to _SAME), weights are sizes, even if most of the others have been lowered: while hardware is
#: replaced, new OSDs that are weighed in together may be many times as many as the old ones.
_TIB = 1 << 40
_TIB_WEIGHTS = 0.05

#: Factor by which OSDs of different sizes differ.
_OTHER_SIZE = 1.1

#: Weights stand for something else where more than this ratio of the OSDs weighs clearly more than
#: the others, or where the second ratio has the same weight in spite of different sizes. Weights
#: that differ by less than the third ratio are the same.
_MOST_ABOVE = 0.1
_CONSTANT = 0.75
_SAME = 0.02

#: OSDs with their size in TiB as weight that are needed for that.
_MIN_EXACT = 3

_PGS_A_PIECE, _VALUES_A_PIECE = 500, 10   # before it gives way again: about a millisecond

BY_REWEIGHT = "reweight"
BY_CRUSH_WEIGHT = "CRUSH weight"


class _Device(NamedTuple):
    """An OSD that CRUSH can choose."""

    osd: Osd
    density: float   # CRUSH weight per TiB


def with_shares(devices: Mapping[int, Osd], crush: CrushHierarchy) -> Dict[int, Osd]:
    """The OSDs with the share of their size that they are held to, and the weights that do so."""
    below = {item for bucket in crush.buckets.values() for item, _ in bucket.items}
    placed: Dict[int, Tuple[int, float]] = {}   # OSD → (its root, CRUSH weight)
    for bucket in crush.buckets.values():
        if bucket.id not in below and "~" not in bucket.name:   # no shadow tree
            for number, weight in crush.subtree(bucket.id).weights.items():
                placed.setdefault(number, (bucket.id, weight))
    classes: Dict[Tuple[str, int], List[_Device]] = {}
    for number, (root, weight) in placed.items():
        osd = devices.get(number)
        if osd is not None and weight > 0.0 and osd.reweight > 0.0 and osd.is_in and (
                osd.has_statistics):
            classes.setdefault((osd.device_class, root), []).append(
                _Device(osd, weight * _TIB / osd.size_bytes))
    held: Dict[int, Osd] = {}
    for members in classes.values():
        weights = [density * osd.reweight for osd, density in members]
        if min(weights) >= (1.0 - _CLEAR_DIFFERENCE) * max(weights):
            continue   # nearly always so
        crush_shares = _crush_shares(members)
        usual = max(osd.reweight for osd, _ in members)   # 1 means untouched, however few that are
        for osd, _ in members:
            shares = {BY_REWEIGHT: min(1.0, osd.reweight / usual),
                      BY_CRUSH_WEIGHT: crush_shares.get(osd.id, 1.0)}
            share = shares[BY_REWEIGHT] * shares[BY_CRUSH_WEIGHT]
            if share < 1.0 - _CLEAR_DIFFERENCE:
                causes = [cause for cause, one in shares.items()   # clear by themselves, or both
                          if one < 1.0 - _CLEAR_DIFFERENCE / 2.0]
                held[osd.id] = osd._replace(share=share, held_by=" and its ".join(causes))
    return {**devices, **held}


def with_base_bytes(osds: Dict[int, Osd], pgs: Iterable[Pg],
                    pools: Mapping[int, Pool]) -> Dict[int, Osd]:
    """The OSDs; held ones with the bytes that they use beside the shards of their up sets.

    An empty BlueStore uses some hundred MiB, which no reweight reduces.
    """
    base = {number: osd.target_bytes for number, osd in osds.items() if osd.share < 1.0}
    for pg in piecewise(pgs, _PGS_A_PIECE) if base else ():
        for osd in pg.up:
            if osd in base:
                base[osd] -= pools[pg.pool].bytes_on(pg.shard_bytes, osd, pg.up)
    return {**osds, **{number: osds[number]._replace(base_bytes=max(0, count))
                       for number, count in base.items()}}


def held_sentence(osd: Osd) -> str:
    """A sentence about an OSD that is held."""
    return f"osd.{osd.id} is held to {100.0 * osd.share:.3g}% of its size by its {osd.held_by}"


def _crush_shares(members: Sequence[_Device]) -> Dict[int, float]:
    """OSD id → its weight as a ratio of the usual one, at most 1: per byte, or in all where most
    OSDs have the same weight although their sizes differ; empty where weights are something else.
    """
    weights = {d.osd.id: d.density * d.osd.size_bytes for d in members}
    middle = _middle(sorted(weights.values()))
    if _are_sizes_mixed([d for d in members if abs(weights[d.osd.id] - middle) <= _SAME * middle],
                        _CONSTANT * len(members)):
        return {osd: min(1.0, weight / middle) for osd, weight in weights.items()}
    densities = [d.density for d in members]
    near_one = _near(densities, 1.0)
    exact = sum(1 for density in near_one if abs(density - 1.0) <= _SAME)
    if exact >= max(_MIN_EXACT, _TIB_WEIGHTS * len(members)) and _few_above(densities, near_one):
        usual = _middle(near_one)
    else:
        usual = _majority(densities)
        likes = _near(densities, usual)
        if not likes or _are_sizes_mixed(members) and not _are_sizes_mixed(
                [d for d in members if likes[0] <= d.density <= likes[-1]]):
            return {}   # they are usual for one size alone
    return {d.osd.id: min(1.0, d.density / usual) for d in members}


def _are_sizes_mixed(members: Sequence[_Device], least: float = 1.0) -> bool:
    """True where at least so many OSDs are of clearly different sizes."""
    sizes = [d.osd.size_bytes for d in members]
    return len(sizes) >= least and max(sizes) > _OTHER_SIZE * min(sizes)


def _majority(values: Sequence[float]) -> float:
    """The value that most values do not clearly differ from; 0 where too many are above it."""
    best = max([_near(values, value) for value in piecewise(
        sorted(set(values), reverse=True), _VALUES_A_PIECE)], key=len)
    return _middle(best) if 2 * len(best) > len(values) and _few_above(values, best) else 0.0


def _near(values: Sequence[float], value: float) -> List[float]:
    """The values that do not clearly differ from one, sorted."""
    low, high = (1.0 - _CLEAR_DIFFERENCE) * value, value / (1.0 - _CLEAR_DIFFERENCE)
    return sorted(other for other in values if low <= other <= high)


def _few_above(values: Sequence[float], some: Sequence[float]) -> bool:
    return sum(1 for value in values if value > some[-1]) <= _MOST_ABOVE * len(values)


def _middle(ordered: Sequence[float]) -> float:
    return ordered[len(ordered) // 2]
