"""Estimates the bytes that a shard occupies on a device.

Ceph reports logical bytes per PG and used bytes per OSD. A shard's own part is num_bytes
(replicated) or num_bytes ÷ k (erasure-coded) plus its omap. What devices use beyond that is
apportioned: allocation padding and compression by the pool's own ratio of allocated to stored
bytes, and metadata by a class-wide cost per object. The rest of a device's used bytes (an empty
BlueStore already occupies some) belongs to no shard and does not move.
"""
from __future__ import annotations

from operator import mul
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...runtime.steady import STEADY_RATIO, is_near


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
    return min(max(0.0, slope), sum_y / sum_x)


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
    return min(max(0.0, slope), mean_y / mean_x)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
