"""Finds OSDs that an operator limits to a share of their size, by `osd reweight` or CRUSH weights.

An OSD is "held" if CRUSH weight ÷ size × reweight is clearly below that of comparable OSDs. A
reweight always counts. CRUSH weights stand for sizes in most clusters, and for something else in
some (all 1.0, relative speeds). They count only if enough OSDs of a device class and root weigh
their size in TiB, or most have the same weight per byte, or most of one size the same weight.
"""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..runtime.time_slice import piecewise
from .model import Osd, Pg, Pool

#: A difference below this ratio is not intended by the operator.
_CLEAR_DIFFERENCE = 0.1
_LEAST_ALIKE = 1.0 - _CLEAR_DIFFERENCE

#: Ceph gives new OSDs their size in TiB as weight. If this ratio of a class weighs about that,
#: weights are sizes, even if an operator has lowered most others.
_TIB = 1 << 40
_TIB_WEIGHTS = 1.0 / 3.0

#: This ratio with exactly that weight (up to _SAME) is enough. While hardware is replaced, the new
#: OSDs whose weights rise step by step can be many times as many as the old ones.
_EXACT_TIB_WEIGHTS = 0.05

#: OSDs whose sizes differ by more than this factor have different sizes.
_OTHER_SIZE = 1.1

#: Weights stand for something else if more than this ratio of the OSDs weighs clearly more than the
#: others. The same follows if the second ratio has the same weight in spite of different sizes.
#: Weights that differ by at most the third ratio are the same.
_MOST_ABOVE = 0.1
_CONSTANT = 0.75
_SAME = 0.02

#: Fewer OSDs of one size than this show no usual weight of that size.
_MIN_SAME_SIZE = 3

#: An operator who leaves an OSD less than this share of its size wants it to be empty.
_ALMOST_NOTHING = 0.01

_PGS_A_PIECE, _OSDS_A_PIECE = 500, 2000   # between two calls of `give_way`: about a millisecond

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
    """Returns the OSDs. Held ones have the share of their size that their weights leave them."""
    found = dict(devices)
    for members in _classes(devices, crush).values():
        densities = [d.density * d.reweight for d in members]
        if min(densities) >= _LEAST_ALIKE * max(densities):
            continue   # in nearly all clusters
        crush_shares = _crush_shares(members)
        usual = max([d.reweight for d in members])   # even if only few OSDs have it
        for device in members:
            by_reweight = min(1.0, device.reweight / usual)
            by_crush = crush_shares.get(device.osd, 1.0)
            share = by_reweight * by_crush
            if share < _LEAST_ALIKE:
                found[device.osd] = found[device.osd]._replace(
                    share=share, held_by=_cause(by_reweight, by_crush))
    return found


def with_base_bytes(osds: Dict[int, Osd], pgs: Iterable[Pg],
                    pools: Mapping[int, Pool]) -> Dict[int, Osd]:
    """Returns the OSDs. Held ones have the bytes that they use in addition to the shards of their
    up sets.

    An empty BlueStore uses some hundred MiB, which no reweight reduces.
    """
    base = {number: osd.target_bytes for number, osd in osds.items() if osd.share < 1.0}
    if not base:
        return osds
    subtract_shards(base, pgs, pools)
    held = {number: osds[number]._replace(base_bytes=max(0, count))
            for number, count in base.items()}
    return {**osds, **held}


def subtract_shards(used: Dict[int, int], pgs: Iterable[Pg], pools: Mapping[int, Pool]) -> None:
    """Subtracts the shards of up sets from `used`, which has bytes for some of the OSDs."""
    for pg in piecewise(pgs, _PGS_A_PIECE):
        pool = pools[pg.pool]
        for osd in pg.up:
            if osd in used:
                used[osd] -= pool.bytes_on(pg.shard_bytes, osd, pg.up)


def full_weight(osd: Osd) -> str:
    """Returns the CRUSH weight of an OSD's whole size."""
    return f"{osd.device_size / _TIB:.5f}"


def held_sentence(osd: Osd) -> str:
    """Returns a sentence about an OSD that is held."""
    share = f"{100.0 * osd.share:.3g}"
    if osd.share < _ALMOST_NOTHING:
        share = "less than 1"
    return f"osd.{osd.id} is held to {share}% of its size by its {osd.held_by}"


def held_advice(osd: Osd) -> str:
    """Returns `held_sentence`, and the command that empties an OSD whose share is almost nothing.

    Weights alone leave its last small shards there, because their moves gain nothing.
    """
    if osd.share >= _ALMOST_NOTHING or osd.drained:
        return held_sentence(osd)
    return f"{held_sentence(osd)}; 'ceph equilibrium drain add osd.{osd.id}' empties it"


def _cause(by_reweight: float, by_crush: float) -> str:
    """Returns the name of the weight that is clearly lower, or of both."""
    shares = {BY_REWEIGHT: by_reweight, BY_CRUSH_WEIGHT: by_crush}
    least = 1.0 - _CLEAR_DIFFERENCE / 2.0
    return " and its ".join([cause for cause, share in shares.items() if share < least])


def _classes(devices: Mapping[int, Osd],
             crush: CrushHierarchy) -> Dict[Tuple[str, int], List[_Device]]:
    """Returns (device class, root) → its OSDs that are in and have weight and statistics."""
    found: Dict[Tuple[str, int], List[_Device]] = defaultdict(list)
    for number, (root, weight) in piecewise(_placed(crush).items(), _OSDS_A_PIECE):
        osd = devices.get(number)
        if osd is None or not osd.has_statistics or not osd.is_in:
            continue
        size = osd.size_bytes
        reweight = osd.reweight
        if weight > 0.0 and reweight > 0.0:
            found[osd.device_class, root].append(
                _Device(number, weight, size, reweight, weight * _TIB / size))
    return found


def _placed(crush: CrushHierarchy) -> Dict[int, Tuple[int, float]]:
    """Returns OSD id → (id of its root, CRUSH weight), without shadow trees."""
    buckets = crush.buckets.values()
    below = {item for bucket in buckets for item, _ in bucket.items}
    placed: Dict[int, Tuple[int, float]] = {}
    for bucket in buckets:
        root = bucket.id
        if root not in below and "~" not in bucket.name:
            for osd, weight in crush.subtree(root).weights.items():
                placed.setdefault(osd, (root, weight))
    return placed


def _crush_shares(members: Sequence[_Device]) -> Dict[int, float]:
    """Returns OSD id → its weight per byte as a ratio of the usual one, at most 1.

    Leaves out OSDs of a size without a usual weight.
    """
    sizes = _by_size(members)
    usual, spread = _usual_density(members, sizes)
    shares: Dict[int, float] = {}
    for likes in sizes:
        reference = usual
        if not spread and len(likes) >= _MIN_SAME_SIZE:
            reference = _majority([d.density for d in likes]) or usual
        if reference:
            shares.update({d.osd: min(1.0, d.density / reference) for d in likes})
    return shares


def _by_size(members: Sequence[_Device]) -> List[List[_Device]]:
    """Groups OSDs of about the same size, the smallest first."""
    sizes: List[List[_Device]] = []
    most = 0.0   # bytes of the last size
    for device in sorted(members, key=lambda d: d.size):
        if device.size > most:
            most = _OTHER_SIZE * device.size
            sizes.append([])
        sizes[-1].append(device)
    return sizes


def _usual_density(members: Sequence[_Device],
                   sizes: Sequence[Sequence[_Device]]) -> Tuple[Optional[float], bool]:
    """Returns (usual weight of a TiB in the class, True if it holds for OSDs of any size).

    The weight is None if weights do not stand for sizes.
    """
    if len(sizes) > 1 and _constant(members):
        return None, False
    densities = [d.density for d in members]
    near_one = _near(densities, 1.0)
    exact = sum([abs(density - 1.0) <= _SAME for density in near_one])
    least_exact = max(_MIN_SAME_SIZE, _EXACT_TIB_WEIGHTS * len(members))
    is_convention = len(near_one) >= _TIB_WEIGHTS * len(members) or exact >= least_exact
    if near_one and is_convention and _few_above(densities, near_one):
        return _middle(near_one), True
    usual = _majority(densities)
    if usual is None:
        return None, False
    with_usual = [likes for likes in sizes if _near([d.density for d in likes], usual)]
    return usual, len(with_usual) > 1


def _constant(members: Sequence[_Device]) -> bool:
    """Returns True if most OSDs have the same weight although their sizes differ."""
    usual = _middle(sorted([d.weight for d in members]))
    same = [d.size for d in members if abs(d.weight - usual) <= _SAME * usual]
    return len(same) >= _CONSTANT * len(members) and max(same) > _OTHER_SIZE * min(same)


def _majority(values: Sequence[float]) -> Optional[float]:
    """Returns the value that is clearly the usual one: most values are near it, and few are above
    these. None without such a value."""
    ordered = sorted(values)
    most = 0
    start = 0
    end = 0
    for value in ordered:
        low, high = _around(value)
        first = bisect_left(ordered, low)
        last = bisect_right(ordered, high)
        if last - first >= most:
            most = last - first
            start = first
            end = last
    best = ordered[start:end]
    if 2 * most > len(ordered) and _few_above(ordered, best):
        return _middle(best)
    return None


def _around(value: float) -> Tuple[float, float]:
    """Returns the range of values that do not clearly differ from one."""
    return _LEAST_ALIKE * value, value / _LEAST_ALIKE


def _near(values: Sequence[float], value: float) -> List[float]:
    """Returns the values that do not clearly differ from one, sorted."""
    low, high = _around(value)
    return sorted([other for other in values if low <= other <= high])


def _few_above(values: Sequence[float], some: Sequence[float]) -> bool:
    """Returns True if few of the values are above the highest of `some`, which is sorted."""
    return sum([value > some[-1] for value in values]) <= _MOST_ABOVE * len(values)


def _middle(ordered: Sequence[float]) -> float:
    """Returns the median of sorted values, the upper one of two."""
    return ordered[len(ordered) // 2]
