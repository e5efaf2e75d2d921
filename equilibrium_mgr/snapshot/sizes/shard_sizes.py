"""Estimates the bytes that a shard occupies on a device.

Ceph reports logical bytes per PG and used bytes per OSD. A shard's own part is num_bytes
(replicated) or num_bytes ÷ k (erasure-coded) plus its omap. What devices use beyond that is
apportioned: allocation padding and compression by the pool's own ratio of allocated to stored
bytes, and metadata by a class-wide cost per object. The rest of a device's used bytes (an empty
BlueStore already occupies some) belongs to no shard and does not move.
"""
from __future__ import annotations

from math import sqrt
from operator import mul
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...runtime.steady import STEADY_RATIO, is_near


#: RocksDB's files come and go by so many bytes on any OSD. A cost of objects that explains smaller
#: differences only is believed where it is clear: in full from so many times its standard error on,
#: and not at all below half of that. Of 7 OSDs of 20.2.4, with 20 MB beside 4,700 objects and 15
#: beside 3,800, it was 3.6 times, and there were 20 MB still once 3,400 of these had left.
_NOISE_BYTES = 64 << 20
_CLEAR_ERRORS = 8.0


class ShardInput(NamedTuple):
    """One PG as the size model sees it."""

    pool: int
    acting: Sequence[int]
    data_bytes: int   # num_bytes ÷ k
    omap_bytes: int
    objects: int


class DeviceInput(NamedTuple):
    """One OSD as the size model sees it: its own figures, and sums over the shards on it."""

    used_bytes: int
    own_bytes: int        # of the shards, by the first part of the model
    objects: int
    explained_bytes: int  # by `measured`, see SizeModel


class ClassFactors(NamedTuple):
    """What the shards on OSDs of one device class occupy beyond their own part."""

    bytes_per_object: float = 0.0   # metadata
    ratio: float = 1.0              # below 1 where shards exceed used bytes


class SizeModel:
    """Factors that turn a PG's logical numbers into bytes on a device.

    `allocation_ratio`: pool → allocated ÷ logical data bytes; `factors`: device class → its
    factors; `classes`: OSD with statistics → device class; `measured`: pool → bytes per object that
    OSDs used beyond all that when shards arrived (execution/size_check/prediction.py).
    """

    def __init__(self, allocation_ratio: Mapping[int, float], factors: Mapping[str, ClassFactors],
                 classes: Mapping[int, str], measured: Mapping[int, float] = {}) -> None:
        self._allocation_ratio = allocation_ratio
        self._factors = factors
        self._classes = classes
        self._measured = measured
        # PGs share few combinations of device classes: the factors of each
        self._mixed: Dict[Tuple[str, ...], ClassFactors] = {}

    def shard_bytes(self, pg: ShardInput) -> int:
        """Bytes that one shard of the PG occupies; never negative."""
        classes = self._classes
        members = tuple([classes[osd] for osd in pg.acting if osd in classes])
        factors = self._mixed.get(members)
        if factors is None:
            found = [self._factors.get(name, ClassFactors()) for name in members]
            factors = self._mixed[members] = ClassFactors(
                _mean([each.bytes_per_object for each in found], 0.0),
                _mean([each.ratio for each in found], 1.0))
        raw = (pg.data_bytes * self._allocation_ratio.get(pg.pool, 1.0)
               + pg.omap_bytes + pg.objects * factors.bytes_per_object)
        measured = self._measured.get(pg.pool, 0.0) if self._measured else 0.0
        return max(0, int(raw * factors.ratio + pg.objects * measured))


def class_factors(devices: Sequence[DeviceInput],
                  kept: Optional[ClassFactors] = None) -> ClassFactors:
    """Fits the factors of a device class to its OSDs; `kept` where these are as good.

    They are while neither another ratio nor another cost of objects would change what the shards on
    any OSD occupy by more than STEADY_RATIO of an OSD's bytes.
    """
    used = sum([device.used_bytes for device in devices])
    # shards of a pool that have arrived may have taken more than its others take, which must
    # not make the shards of all other pools look smaller
    whole = sum([device.own_bytes for device in devices])
    ratio = min(1.0, used / whole) if whole > 0 else 1.0
    objects = [device.objects for device in devices]
    beside = [device.used_bytes - device.own_bytes - device.explained_bytes for device in devices]
    if kept is not None and is_near(kept.ratio, ratio) and _costs_alike(
            kept.bytes_per_object, objects, beside, whole):
        return kept
    return ClassFactors(_cost_per_object(sorted(
        zip(map(float, objects), map(float, beside)))), ratio)


def _costs_alike(kept: float, objects: Sequence[int], beside: Sequence[int], whole: int) -> bool:
    """True where the fitted cost of an object makes little difference to the kept one.

    `objects` and bytes `beside` the shards are of each OSD, `whole` bytes those of all shards.
    """
    difference = abs(_slope(objects, beside) - kept) * max(objects, default=0)
    bytes_of_one = (whole + kept * sum(objects)) / max(1, len(objects))
    return difference <= STEADY_RATIO * bytes_of_one


def _slope(objects: Sequence[int], beside: Sequence[int]) -> float:
    """As _cost_per_object, by whole numbers: quicker, and the same in any order of the OSDs."""
    count, sum_x, sum_y = len(objects), sum(objects), sum(beside)
    spread = count * sum(map(mul, objects, objects)) - sum_x * sum_x
    if sum_x <= 0 or sum_y <= 0 or spread <= 0:
        return 0.0
    slope: float = (count * sum(map(mul, objects, beside)) - sum_x * sum_y) / spread
    return _believed(min(max(0.0, slope), sum_y / sum_x), objects, beside)


def _cost_per_object(points: Sequence[Tuple[float, float]]) -> float:
    """Slope of overhead over objects (least squares), kept between 0 and the mean cost."""
    if not points:
        return 0.0
    mean_x = _mean([x for x, _ in points], 0.0)
    mean_y = _mean([y for _, y in points], 0.0)
    if mean_x <= 0.0 or mean_y <= 0.0:
        return 0.0
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread <= 0.0:
        return 0.0
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return _believed(min(max(0.0, slope), mean_y / mean_x),
                     [int(x) for x, _ in points], [int(y) for _, y in points])


def _believed(cost: float, objects: Sequence[int], beside: Sequence[int]) -> float:
    """The part of a fitted cost of an object that is more than noise."""
    explained = cost * (max(objects) - min(objects))
    if explained >= 2.0 * _NOISE_BYTES:
        return cost
    return cost * max(0.0, explained / _NOISE_BYTES - 1.0, _clearness(objects, beside))


def _clearness(objects: Sequence[int], beside: Sequence[int]) -> float:
    """How clear the slope of bytes over objects is, from 0 to 1: by its standard error (Student's
    t). Whole numbers, so that the order of the OSDs makes no difference."""
    count, sum_x, sum_y = len(objects), sum(objects), sum(beside)
    if count < 3:
        return 1.0
    spread_x = count * sum(map(mul, objects, objects)) - sum_x * sum_x
    spread_y = count * sum(map(mul, beside, beside)) - sum_y * sum_y
    both = count * sum(map(mul, objects, beside)) - sum_x * sum_y
    unexplained = spread_x * spread_y - both * both
    if unexplained <= 0:
        return 1.0
    errors = sqrt(both * both * (count - 2) / unexplained)
    return min(1.0, max(0.0, 2.0 * errors / _CLEAR_ERRORS - 1.0))


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
