"""Samples of what pools store and OSDs use, few and sparse: the older, the sparser."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

#: Seconds between two samples.
SAMPLE_SECONDS = 4 * 3600.0
#: Older ones are forgotten.
KEPT_SECONDS = 60 * 86_400.0
MAX_SAMPLES = 160
#: Ratio of the client data that pools which are gone may have held.
_MOST_GONE = 0.01
_MIB = 1 << 20


class Sample(NamedTuple):
    """The cluster at one moment, in whole MiB."""

    at: int                    # seconds since the epoch
    pools: Dict[int, int]      # pool id → stored client data
    classes: Dict[str, int]    # device class → used bytes of its OSDs


def take_sample(at: float, stored: Mapping[int, Optional[int]],
                used: Mapping[str, int]) -> Sample:
    """A sample of bytes: pool id → stored (None: not known), device class → used."""
    return Sample(int(at), {pool: count // _MIB for pool, count in stored.items()
                            if count is not None},
                  {name: count // _MIB for name, count in used.items()})


def is_due(samples: Sequence[Sample], now: float) -> bool:
    """True where the last sample is so old that another one is wanted, or of the future."""
    return not samples or not 0.0 <= now - samples[-1].at < SAMPLE_SECONDS


def with_sample(samples: Sequence[Sample], new: Sample, max_bytes: int) -> Tuple[Sample, ...]:
    """The samples and a new one; thinned out to MAX_SAMPLES, and to `max_bytes` of JSON.

    Samples of the future, before a clock was set back, are dropped.
    """
    kept = [sample for sample in samples if new.at - KEPT_SECONDS <= sample.at < new.at] + [new]
    size = sum(map(_json_bytes, kept))
    while len(kept) > 2 and (len(kept) > MAX_SAMPLES or size > max_bytes):
        size -= _json_bytes(kept.pop(_most_dispensable(kept)))
    return tuple(kept)


def _most_dispensable(samples: Sequence[Sample]) -> int:
    """The number of the sample whose neighbors are nearest for its age; neither end."""
    now = samples[-1].at
    return min(range(1, len(samples) - 1), key=lambda number: (
        (samples[number + 1].at - samples[number - 1].at)
        / (now - samples[number].at + SAMPLE_SECONDS)))


def samples_to_json(samples: Sequence[Sample]) -> List[List[Any]]:
    """JSON-ready."""
    return [[sample.at, sample.pools, sample.classes] for sample in samples]


def samples_from_json(rows: Any) -> Tuple[Sample, ...]:
    """The reverse. Raises ValueError, TypeError, KeyError or AttributeError for anything else."""
    return tuple(Sample(int(at), {int(pool): int(count) for pool, count in pools.items()},
                        {str(name): int(count) for name, count in classes.items()})
                 for at, pools, classes in rows)


def _json_bytes(sample: Sample) -> int:
    return len(json.dumps(samples_to_json([sample]), separators=(",", ":")))


def pool_points(samples: Sequence[Sample], pool: int) -> List[Tuple[float, float]]:
    """(seconds since the epoch, bytes) of a pool, of the samples that have it."""
    return [(float(sample.at), float(sample.pools[pool] * _MIB)) for sample in samples
            if pool in sample.pools]


def class_points(samples: Sequence[Sample], name: str) -> List[Tuple[float, float]]:
    """(seconds since the epoch, used bytes) of a device class, of the samples that have it. Where
    pools that are gone by now held much a sample says nothing of the pools that are left."""
    return [(float(sample.at), float(sample.classes[name] * _MIB)) for sample in samples
            if name in sample.classes and _gone_ratio(sample, samples[-1]) <= _MOST_GONE]


def _gone_ratio(sample: Sample, newest: Sample) -> float:
    """Client data of pools that are gone by now, as a ratio of all."""
    gone = sum(count for pool, count in sample.pools.items() if pool not in newest.pools)
    return gone / max(1, sum(sample.pools.values()))
