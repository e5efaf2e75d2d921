"""What an episode leads to: the utilization of each OSD once its moves have arrived, and how far
that was from what was measured then.

A prediction is made of what OSDs held when the episode began, of what was in flight then, and of
the moves that the monitor has kept since. What clients write meanwhile is not in it.
"""
from __future__ import annotations

import base64
import binascii
import struct
import zlib
from itertools import accumulate
from typing import Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

from ...observation.cluster_view import ClusterView
from ...plan.model import PgChange
from ...snapshot.model import Snapshot

Utilizations = Mapping[int, float]   # OSD → used bytes ÷ size

#: Utilizations are stored as whole numbers of this part, up to 1.3.
_PARTS = 50_000
_MOST = 0xFFFF
#: Bytes of the largest stored prediction: that of 10,000 OSDs takes 30,000.
_MAX_PACKED_BYTES = 40_000
#: OSDs with large errors that an entry of the history names.
_WORST = 5


class PredictionError(NamedTuple):
    """Predicted against measured utilization of OSDs, absolute differences of ratios."""

    mean: float
    largest: float
    osd: int     # the one with the largest


def predicted_utilization(view: ClusterView) -> Dict[int, float]:
    """The prediction at the begin of an episode, of OSDs that are in."""
    return {osd.id: view.used_soon[osd.id] / osd.size_bytes
            for osd in view.snapshot.osds.values()
            if osd.has_statistics and osd.is_in and osd.id in view.used_soon}


def shift(changes: Iterable[PgChange], snapshot: Snapshot) -> Dict[int, float]:
    """By how much the utilization of OSDs grows by these changes."""
    found: Dict[int, float] = {}
    for change in changes:
        before, after = frozenset(change.up_before), frozenset(change.up_after)
        for osd in before ^ after:
            size = snapshot.osds[osd].size_bytes if osd in snapshot.osds else 0
            if size > 0:
                part = change.bytes_on(osd) / size
                found[osd] = found.get(osd, 0.0) + (part if osd in after else -part)
    return found


def shifted(predicted: Utilizations, by: Utilizations) -> Dict[int, float]:
    """The prediction with more moves; OSDs that it does not have stay out."""
    return {osd: ratio + by.get(osd, 0.0) for osd, ratio in predicted.items()}


def max_by_class(utilizations: Utilizations, classes: Mapping[int, str]) -> Dict[str, float]:
    """Device class → highest utilization. `classes`: OSD → device class."""
    found: Dict[str, float] = {}
    for osd, ratio in utilizations.items():
        if osd in classes:
            found[classes[osd]] = max(found.get(classes[osd], 0.0), ratio)
    return {name: round(ratio, 6) for name, ratio in sorted(found.items())}


def prediction_error(predicted: Utilizations,
                     measured: Utilizations) -> Optional[PredictionError]:
    """None where no OSD is in both."""
    errors = [(abs(measured[osd] - max(0.0, ratio)), osd) for osd, ratio in predicted.items()
              if osd in measured]
    if not errors:
        return None
    largest, osd = max(errors)
    return PredictionError(round(sum(error for error, _ in errors) / len(errors), 6),
                           round(largest, 6), osd)


def worst_predictions(predicted: Utilizations,
                      measured: Utilizations) -> List[Tuple[int, float, float]]:
    """(OSD, predicted, measured) of the few OSDs with the largest errors, the largest first. Sizes
    of shards are estimates: an OSD that is emptied may come out below 0, which counts as 0."""
    found = sorted((-abs(measured[osd] - max(0.0, ratio)), osd)
                   for osd, ratio in predicted.items() if osd in measured)
    return [(osd, round(max(0.0, predicted[osd]), 6), round(measured[osd], 6))
            for _, osd in found[:_WORST]]


def pack(predicted: Utilizations) -> str:
    """A text for the key-value store, exact to 0.00001; '' where it would be too long."""
    osds = sorted(predicted)
    values = [min(_MOST, max(0, round(predicted[osd] * _PARTS))) for osd in osds]
    gaps = [osd - before for before, osd in zip([0, *osds], osds)]   # alike, so they pack well
    packed = zlib.compress(struct.pack(f">{len(osds)}I{len(osds)}H", *gaps, *values))
    text = base64.b64encode(packed).decode()
    return text if len(text) <= _MAX_PACKED_BYTES else ""


def unpack(text: object) -> Dict[int, float]:
    """The reverse of `pack`; empty for what cannot be understood."""
    if not isinstance(text, str) or len(text) > _MAX_PACKED_BYTES:
        return {}
    try:
        plain = zlib.decompressobj().decompress(base64.b64decode(text.encode()), 1 << 20)
        count = len(plain) // 6
        numbers = struct.unpack(f">{count}I{count}H", plain)
    except (binascii.Error, struct.error, zlib.error, ValueError):
        return {}
    return {osd: value / _PARTS
            for osd, value in zip(accumulate(numbers[:count]), numbers[count:])}
