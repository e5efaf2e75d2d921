"""Keeps the samples in the mgr's key-value store, and the trends that follow from them."""
from __future__ import annotations

import logging
from typing import Callable, Dict, Mapping, NamedTuple, Optional, Tuple

from ..runtime.buffered_kv_store import GROWTH, BufferedKvStore
from ..runtime.kv_store import MAX_LIST_BYTES, KeyValueStore
from .samples import (Sample, class_points, is_due, pool_points, samples_from_json,
                      samples_to_json, take_sample, with_sample)
from .trend import UNKNOWN, Trend, trend_of

#: Seconds between two writes: each is a commit of the monitors. A failover loses what came since.
STORE_SECONDS = 36 * 3600.0
#: A sample waits so long at most for what has not been reported: some of it never may be.
PATIENCE_SECONDS = 1800.0
_UNKNOWN = Trend(UNKNOWN, None)


class Growth(NamedTuple):
    """What is known of the growth; immutable, read by any thread."""

    samples: int = 0
    since: Optional[int] = None           # seconds since the epoch: the oldest sample
    until: Optional[int] = None           # the newest
    pools: Mapping[int, Trend] = {}       # by pool id: of stored client bytes
    classes: Mapping[str, Trend] = {}     # by device class: of used bytes

    def pool(self, pool: int) -> Trend:
        """The trend of a pool."""
        return self.pools.get(pool, _UNKNOWN)

    def device_class(self, name: str) -> Trend:
        """The trend of a device class."""
        return self.classes.get(name, _UNKNOWN)


class GrowthRecorder:
    """Used by the serve thread, once a round; `growth` is replaced whole.

    `stored` returns the client bytes of each pool by id, `used` the used bytes of each device
    class: both are asked for a few times a day. `is_complete` tells whether all of it has been
    reported: to a new mgr only some OSDs have.
    """

    def __init__(self, kv: KeyValueStore, stored: Callable[[], Mapping[int, Optional[int]]],
                 used: Callable[[], Mapping[str, int]], is_complete: Callable[[], bool],
                 log: logging.Logger) -> None:
        self._kv = BufferedKvStore(kv, log)
        self._stored, self._used, self._is_complete, self._log = stored, used, is_complete, log
        self._due_since: Optional[float] = None   # while a sample waits for reports
        self._samples: Optional[Tuple[Sample, ...]] = None   # None before they are read
        self._stored_at: Optional[float] = None   # the newest sample in the store, or the first
        self.growth = Growth()

    def record(self, now: float) -> None:
        """Takes a sample where one is due; now and then stores them, which waits for monitors."""
        if self._samples is None:
            self._samples = self._read()
            self._stored_at = float(self._samples[-1].at) if self._samples else None
            self.growth = growth_of(self._samples)
        if is_due(self._samples, now) and self._is_ready(now):
            self._samples = with_sample(
                self._samples, take_sample(now, self._stored(), self._used()), MAX_LIST_BYTES)
            self.growth = growth_of(self._samples)
            self._store(now)
        self._kv.flush()

    def _is_ready(self, now: float) -> bool:
        if self._due_since is None or self._due_since > now:
            self._due_since = now
        if not self._is_complete() and now - self._due_since < PATIENCE_SECONDS:
            return False
        self._due_since = None
        return True

    def _store(self, now: float) -> None:
        if self._stored_at is None or self._samples is None or self._stored_at > now:
            self._stored_at = now
        elif now - self._stored_at >= STORE_SECONDS:
            self._kv.put(GROWTH, {"samples": samples_to_json(self._samples)})
            self._stored_at = now

    def _read(self) -> Tuple[Sample, ...]:
        kept = self._kv.read(GROWTH)
        try:
            return samples_from_json(kept["samples"]) if kept is not None else ()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._log.warning("the samples of growth cannot be read: %s", error)
            return ()


def growth_of(samples: Tuple[Sample, ...]) -> Growth:
    """The trends of what the newest sample has."""
    if not samples:
        return Growth()
    newest = samples[-1]
    pools: Dict[int, Trend] = {pool: trend_of(pool_points(samples, pool)) for pool in newest.pools}
    classes = {name: trend_of(class_points(samples, name)) for name in newest.classes}
    return Growth(len(samples), samples[0].at, newest.at, pools, classes)
