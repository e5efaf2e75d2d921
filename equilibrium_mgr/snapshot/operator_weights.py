"""Finds OSDs that an operator holds to a share of their size, by `osd reweight` or CRUSH weights.

An OSD is held where CRUSH weight ÷ size × reweight is clearly below that of comparable OSDs. A
reweight always means that. CRUSH weights stand for sizes in most clusters, and for something else
in some (all 1.0, relative speeds): they count only where most OSDs of a device class and root have
the same weight per byte, or most of those of one size the same weight.
"""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import grouped, piecewise
from .model import Osd, Pg, Pool

#: A difference below this ratio is no intention of the operator.
_CLEAR_DIFFERENCE = 0.1

#: Ceph gives new OSDs their size in TiB as weight. Where this ratio of a class has that, weights
#: are sizes, even if most of the others have been lowered.
_TIB = 1 << 40
_TIB_WEIGHTS = 1.0 / 3.0

#: This ratio with exactly that weight (up to _SAME) is enough: while hardware is replaced, new OSDs
#: that are weighed in together may be many times as many as the old ones.
_EXACT_TIB_WEIGHTS = 0.05

#: Factor by which OSDs of different sizes differ.
_OTHER_SIZE = 1.1

#: Weights stand for something else where more than this ratio of the OSDs weighs clearly more than
#: the others, or where the second ratio has the same weight in spite of different sizes. Weights
#: that differ by less than the third ratio are the same.
_MOST_ABOVE = 0.1
_CONSTANT = 0.75
_SAME = 0.02

#: OSDs of one size that are needed to find the usual weight of their size.
_MIN_SAME_SIZE = 3

#: An operator who leaves an OSD less than this share of its size wants it to be empty.
_ALMOST_NOTHING = 0.01

_PGS_A_PIECE = 500   # before it gives way again: about a millisecond

BY_REWEIGHT = "reweight"
BY_CRUSH_WEIGHT = "CRUSH weight"


class _Device(NamedTuple):
    """An OSD that CRUSH can choose. `density` is CRUSH weight per TiB."""

    osd: int
    weight: float
    size: int
    reweight: float
    density: float


def with_shares(devices: Mapping[int, Osd], crush: CrushHierarchy) -> Dict[int, Osd]:
    """The OSDs with the share of their size that they are held to, and the weights that do so."""
    held: Dict[int, Osd] = {}
    for members in _classes(devices, crush).values():
        lowest = min(d.density * d.reweight for d in members)
        if lowest >= (1.0 - _CLEAR_DIFFERENCE) * max(d.density * d.reweight for d in members):
            continue   # nearly always so
        crush_shares = _crush_shares(members)
        usual = max(d.reweight for d in members)   # 1 means untouched, however few that are
        for device in members:
            by_reweight = min(1.0, device.reweight / usual)
            by_crush = crush_shares.get(device.osd, 1.0)
            if by_reweight * by_crush < 1.0 - _CLEAR_DIFFERENCE:
                held[device.osd] = devices[device.osd]._replace(
                    share=by_reweight * by_crush, held_by=_cause(by_reweight, by_crush))
    return {**devices, **held} if held else dict(devices)


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


def full_weight(osd: Osd) -> str:
    """The CRUSH weight of an OSD's whole size."""
    return f"{osd.device_size / _TIB:.5f}"


def held_sentence(osd: Osd) -> str:
    """A sentence about an OSD that is held."""
    share = "less than 1" if osd.share < _ALMOST_NOTHING else f"{100.0 * osd.share:.3g}"
    return f"osd.{osd.id} is held to {share}% of its size by its {osd.held_by}"


def held_advice(osd: Osd) -> str:
    """The same, and what empties an OSD that is to have next to nothing: moves of its last small
    shards gain nothing, so that weights alone leave them there."""
    empties = f"; 'ceph equilibrium drain add osd.{osd.id}' empties it"
    wants_nothing = osd.share < _ALMOST_NOTHING and not osd.drained
    return held_sentence(osd) + (empties if wants_nothing else "")


def _cause(by_reweight: float, by_crush: float) -> str:
    """The weight that would be clear by itself, or both."""
    return " and its ".join([
        cause for cause, share in ((BY_REWEIGHT, by_reweight), (BY_CRUSH_WEIGHT, by_crush))
        if share < 1.0 - _CLEAR_DIFFERENCE / 2.0])


def _classes(devices: Mapping[int, Osd],
             crush: CrushHierarchy) -> Dict[Tuple[str, int], List[_Device]]:
    """(device class, root) → its OSDs that have weight and statistics."""
    return grouped(
        ((device.device_class, root), _Device(
            osd, weight, device.size_bytes, device.reweight, weight * _TIB / device.size_bytes))
        for osd, (root, weight) in _placed(crush).items() for device in [devices.get(osd)]
        if device is not None and weight > 0.0 and device.reweight > 0.0 and device.is_in
        and device.has_statistics)


def _placed(crush: CrushHierarchy) -> Dict[int, Tuple[int, float]]:
    """OSD id → (id of its root, CRUSH weight), without shadow trees."""
    below = {item for bucket in crush.buckets.values() for item, _ in bucket.items}
    placed: Dict[int, Tuple[int, float]] = {}
    for bucket in crush.buckets.values():
        if bucket.id not in below and "~" not in bucket.name:
            for osd, weight in crush.subtree(bucket.id).weights.items():
                placed.setdefault(osd, (bucket.id, weight))
    return placed


def _crush_shares(members: Sequence[_Device]) -> Dict[int, float]:
    """OSD id → its weight per byte as a ratio of the usual one, at most 1.

    OSDs of sizes without a usual weight are left out.
    """
    sizes = _by_size(members)
    usual, spread = _usual_density(members, sizes)
    shares: Dict[int, float] = {}
    for likes in sizes:
        own = _majority([d.density for d in likes]) if len(likes) >= _MIN_SAME_SIZE else None
        reference = own if usual is None or (not spread and own is not None) else usual
        if reference:
            shares.update({d.osd: min(1.0, d.density / reference) for d in likes})
    return shares


def _by_size(members: Sequence[_Device]) -> List[List[_Device]]:
    sizes: List[List[_Device]] = []
    for device in sorted(members, key=lambda d: d.size):
        if not sizes or device.size > _OTHER_SIZE * sizes[-1][0].size:
            sizes.append([])
        sizes[-1].append(device)
    return sizes


def _usual_density(members: Sequence[_Device],
                   sizes: Sequence[Sequence[_Device]]) -> Tuple[Optional[float], bool]:
    """(usual weight of a TiB in the class, None where weights do not stand for sizes; True where it
    was found for OSDs of more than one size)."""
    if len(sizes) > 1 and _constant(members):
        return None, False
    densities = [d.density for d in members]
    near_one = _near(densities, 1.0)
    exact = sum(1 for density in near_one if abs(density - 1.0) <= _SAME)
    is_convention = len(near_one) >= _TIB_WEIGHTS * len(members) or (
        exact >= max(_MIN_SAME_SIZE, _EXACT_TIB_WEIGHTS * len(members)))
    if near_one and is_convention and _few_above(densities, near_one):
        return _middle(near_one), True
    usual = _majority(densities)
    if usual is None:
        return None, False
    low, high = _around(usual)
    return usual, sum(1 for likes in sizes if any(low <= d.density <= high for d in likes)) > 1


def _constant(members: Sequence[_Device]) -> bool:
    """True where most OSDs have the same weight although their sizes differ."""
    usual = _middle(sorted(d.weight for d in members))
    same = [d.size for d in members if abs(d.weight - usual) <= _SAME * usual]
    return len(same) >= _CONSTANT * len(members) and max(same) > _OTHER_SIZE * min(same)


def _majority(values: Sequence[float]) -> Optional[float]:
    """The value that most values do not clearly differ from; None where too many are above it."""
    ordered = sorted(values)
    most, start, end = 0, 0, 0
    for value in ordered:
        low, high = _around(value)
        first, last = bisect_left(ordered, low), bisect_right(ordered, high)
        if last - first >= most:
            most, start, end = last - first, first, last
    best = ordered[start:end]
    return _middle(best) if 2 * most > len(ordered) and _few_above(ordered, best) else None


def _around(value: float) -> Tuple[float, float]:
    return (1.0 - _CLEAR_DIFFERENCE) * value, value / (1.0 - _CLEAR_DIFFERENCE)


def _near(values: Sequence[float], value: float) -> List[float]:
    """The values that do not clearly differ from one, sorted."""
    low, high = _around(value)
    return sorted(other for other in values if low <= other <= high)


def _few_above(values: Sequence[float], some: Sequence[float]) -> bool:
    return sum(1 for value in values if value > some[-1]) <= _MOST_ABOVE * len(values)


def _middle(ordered: Sequence[float]) -> float:
    return ordered[len(ordered) // 2]
