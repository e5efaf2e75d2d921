"""How the shards of a PG differ in size, by OSD and by position: fitted from look to look."""
from __future__ import annotations

from typing import Dict, Mapping

from ..runtime.checkpoints import Checkpoint
from .model import Pool
from .reading import Reading
from .sizes.osd_factors import NO_FACTORS, OsdFactors, fit_osd_factors


class ShardScale:
    """`fit` with each reading; what is as good as before is kept, so that PGs stay as they are."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self.factors: OsdFactors = NO_FACTORS

    def copy(self) -> ShardScale:
        """One that remembers the same."""
        copied = ShardScale(self._checkpoint)
        copied.factors = self.factors
        return copied

    def fit(self, reading: Reading, pools: Mapping[int, Pool]) -> Dict[int, Pool]:
        """The pools with the ratios of their shards' sizes, where these are not all alike."""
        self.factors = fit_osd_factors(reading.pool_statfs, reading.osd_stats, self.factors,
                                       self._checkpoint)
        found: Dict[int, Pool] = dict(pools)
        for number, pool in pools.items() if self.factors.osds else ():
            ratios = self.factors.beside_osd(number)
            if ratios:
                found[number] = pool._replace(osd_ratios=ratios)
        return found
