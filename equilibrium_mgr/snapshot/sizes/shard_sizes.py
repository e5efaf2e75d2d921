"""Estimates the bytes that a shard occupies on a device.

Ceph reports logical bytes per PG and used bytes per OSD. A shard's own part is num_bytes
(replicated) or num_bytes ÷ k (erasure-coded) plus its omap. What devices use beyond that is
apportioned: allocation padding and compression by the pool's own ratio of allocated to stored
bytes, and metadata by a class-wide cost per object. The rest of a device's used bytes (an empty
BlueStore already occupies some) belongs to no shard and does not move.
"""
from __future__ import annotations

from typing import Any, Collection, Dict, Iterable, List, Mapping, NamedTuple, Sequence, Tuple

from ...runtime.checkpoints import Checkpoint, no_checkpoint, with_checkpoints

_PGS_A_PIECE = 200   # between two checkpoints: well below a millisecond


class ShardInput(NamedTuple):
    """One PG as the size model sees it."""

    pool: int
    acting: Sequence[int]
    data_bytes: int   # num_bytes ÷ k
    omap_bytes: int
    objects: int


class DeviceInput(NamedTuple):
    """One OSD as the size model sees it."""

    device_class: str
    used_bytes: int


class SizeModel:
    """Factors that turn a PG's logical numbers into bytes on a device.

    `allocation_ratio`: pool → allocated ÷ logical data bytes; `bytes_per_object`: device class →
    metadata bytes per object; `class_ratio`: device class → shrink where shards exceed used bytes;
    `classes`: OSD → device class; `measured`: pool → bytes per object that OSDs used beyond all
    that when shards arrived (execution/size_check/prediction.py).
    """

    def __init__(self, allocation_ratio: Mapping[int, float],
                 bytes_per_object: Mapping[str, float], class_ratio: Mapping[str, float],
                 classes: Mapping[int, str], measured: Mapping[int, float] = {}) -> None:
        self._allocation_ratio = allocation_ratio
        self._bytes_per_object = bytes_per_object
        self._class_ratio = class_ratio
        self._classes = classes
        self._measured = measured
        # PGs share few combinations of device classes: (bytes per object, shrink) of each
        self._factors: Dict[Tuple[str, ...], Tuple[float, float]] = {}

    def shard_bytes(self, pg: ShardInput) -> int:
        """Bytes that one shard of the PG occupies; never negative."""
        classes = self._classes
        members = tuple([classes[osd] for osd in pg.acting if osd in classes])
        factors = self._factors.get(members)
        if factors is None:
            factors = self._factors[members] = (
                _mean([self._bytes_per_object.get(c, 0.0) for c in members], 0.0),
                _mean([self._class_ratio.get(c, 1.0) for c in members], 1.0))
        raw = (pg.data_bytes * self._allocation_ratio.get(pg.pool, 1.0)
               + pg.omap_bytes + pg.objects * factors[0])
        measured = self._measured.get(pg.pool, 0.0) if self._measured else 0.0
        return max(0, int(raw * factors[1] + pg.objects * measured))


def fit_sizes(pgs: Collection[ShardInput], devices: Mapping[int, DeviceInput],
              pool_stats: Iterable[Mapping[str, Any]],
              checkpoint: Checkpoint = no_checkpoint,
              measured: Mapping[int, float] = {}) -> SizeModel:
    """Fits the model to what OSDs and pools report; `devices` are the OSDs with statistics.

    `measured`: see SizeModel; the bytes that it explains do not count a second time.
    """
    allocation = _allocation_ratios(
        with_checkpoints(pgs, _PGS_A_PIECE, checkpoint), pool_stats, devices)
    # whole bytes, and points in order: sums of ratios would depend on the order of PGs and OSDs
    data: Dict[int, int] = {osd: 0 for osd in devices}
    objects: Dict[int, int] = {osd: 0 for osd in devices}
    explained: Dict[int, int] = {osd: 0 for osd in devices}   # by `measured`
    for pg in with_checkpoints(pgs, _PGS_A_PIECE, checkpoint):
        own = int(pg.data_bytes * allocation.get(pg.pool, 1.0)) + pg.omap_bytes
        more = int(pg.objects * measured.get(pg.pool, 0.0)) if measured else 0
        for osd in pg.acting:
            if osd in data:
                data[osd] += own
                objects[osd] += pg.objects
                explained[osd] += more
    by_class: Dict[str, List[int]] = {}
    for osd, device in devices.items():
        by_class.setdefault(device.device_class, []).append(osd)
    per_object: Dict[str, float] = {}
    shrink: Dict[str, float] = {}
    for device_class, osds in by_class.items():
        used = sum(devices[o].used_bytes for o in osds)
        # shards of a pool that have arrived may have taken more than its others take, which must
        # not make the shards of all other pools look smaller
        whole = sum(data[o] for o in osds)
        shrink[device_class] = min(1.0, used / whole) if whole > 0 else 1.0
        per_object[device_class] = _cost_per_object(sorted(
            (float(objects[o]), float(devices[o].used_bytes - data[o] - explained[o]))
            for o in osds))
    classes = {osd: device.device_class for osd, device in devices.items()}
    return SizeModel(allocation, per_object, shrink, classes, measured)


def _allocation_ratios(pgs: Iterable[ShardInput], pool_stats: Iterable[Mapping[str, Any]],
                       devices: Mapping[int, DeviceInput]) -> Dict[int, float]:
    """Pool id → bytes allocated per logical byte, where BlueStore reports it per pool.

    `allocated` is the sum over the OSDs that have reported, so that only their shards count.
    """
    logical: Dict[int, int] = {}
    for pg in pgs:
        shards = sum([osd in devices for osd in pg.acting])
        logical[pg.pool] = logical.get(pg.pool, 0) + pg.data_bytes * shards
    ratios: Dict[int, float] = {}
    for pool in pool_stats:
        allocated = pool.get("store_stats", {}).get("allocated", 0)
        if allocated > 0 and logical.get(pool["poolid"], 0) > 0:
            ratios[pool["poolid"]] = allocated / logical[pool["poolid"]]
    return ratios


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
