"""The size model of a look: the sums that it is fitted to, and its factors, kept between looks."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

from ...runtime.time_slice import piecewise, give_way
from ...runtime.steady import is_near
from ..look import Look
from ..model import pool_of
from .leftovers import Leftovers
from .omap import OmapEstimate, allocated_omap
from .shard_inputs import InputRules
from .shard_sizes import ClassFactors, DeviceInput, SizeModel, class_factors
from .size_sums import SizeSums
from .undeleted_data import UndeletedData

_PGS_A_PIECE, _OSDS_A_PIECE = 200, 1000   # before it gives way again: about a millisecond


class SizeRules(NamedTuple):
    """How the sizes of all PGs follow from their records."""

    inputs: InputRules
    allocation: Mapping[int, float]         # pool id → allocated ÷ logical bytes
    factors: Mapping[str, ClassFactors]     # by device class
    model: SizeModel


_NO_RULES = SizeRules(InputRules({}, {}, False, {}), {}, {}, SizeModel({}, {}, {}))


class KeptSizes:
    """Fits the sizes of one look after the other."""

    def __init__(self) -> None:
        self._sums = SizeSums(())
        self.rules = _NO_RULES
        #: of the last look before shards had left OSDs; those at which they have count these twice
        self._before = _NO_RULES

    def copy(self) -> KeptSizes:
        """One that knows the same factors."""
        copied = KeptSizes()
        copied.rules, copied._before = self.rules, self._before
        return copied

    def fit(self, look: Look, leftovers: Leftovers) -> None:
        """Fits the rules to a look."""
        around = look.surroundings
        self._sums = SizeSums(around.with_statistics, around.shard_ratios)
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            up = look.reading.up[pgid]
            self._sums.add_record(look.pools[pool_of(pgid)], look.record(pgid),
                                  look.acting.get(pgid) or up, up)
        old, pool_stats = self.rules, look.reading.pool_stats
        estimates = self._estimates(pool_stats, leftovers)
        allocation = self._allocation(pool_stats, leftovers.undeleted)
        rules = old._replace(allocation=allocation, inputs=InputRules(
            look.pools, estimates, around.omap_is_late, {}))
        silent: List[str] = []
        for pgid in piecewise(look.pgids, _PGS_A_PIECE):
            if look.record(pgid).is_unknown:
                silent.append(pgid)
            else:
                self._add_shards(look, pgid, rules)
        rules = rules._replace(inputs=rules.inputs._replace(means=self._sums.means(look.pools)))
        for pgid in piecewise(silent, _PGS_A_PIECE):
            self._add_shards(look, pgid, rules)
        factors = self._class_factors(look, leftovers)
        give_way()
        self._before = self._before if leftovers.undeleted.new_pools else old
        self.rules = rules._replace(factors=factors, model=SizeModel(
            allocation, factors, {osd: look.osds[osd].device_class
                                  for osd in around.with_statistics}, look.reading.measured))

    def _add_shards(self, look: Look, pgid: str, rules: SizeRules) -> None:
        record, pool = look.record(pgid), look.pools[pool_of(pgid)]
        shard, _ = rules.inputs.of(pool, record, look.acting_set(pgid))
        if not record.is_unknown:
            self._sums.add_omap(shard)
        self._sums.add_shards(shard, rules.allocation.get(pool.id, 1.0),
                              look.reading.measured.get(pool.id, 0.0))

    def _estimates(self, pool_stats: Iterable[Mapping[str, Any]],
                   leftovers: Leftovers) -> Dict[int, OmapEstimate]:
        """Pool id → estimate of its omap, where its own statistics have it."""
        found = self._sums.omap_estimates(
            allocated_omap(pool_stats, leftovers.uncompacted.bytes_by_pool()))
        kept = self.rules.inputs.omap
        return {pool: kept[pool] if pool in kept and kept[pool].is_near(fitted) else fitted
                for pool, fitted in found.items()}

    def _allocation(self, pool_stats: Iterable[Mapping[str, Any]],
                    undeleted: UndeletedData) -> Dict[int, float]:
        """Pool id → bytes allocated per logical byte, where BlueStore reports it per pool.

        While data moves the pool's figure also counts copies that nothing tells of: what is known
        from before is kept as far as it agrees. At the look at which shards were seen to have left
        their OSDs it was not known that the figure counts them.
        """
        found = self._sums.allocation_ratios({
            pool["poolid"]: pool["store_stats"]["allocated"] for pool in pool_stats
            if pool.get("store_stats", {}).get("allocated", 0) > 0}, undeleted.most_by_pool())
        ratios: Dict[int, float] = {}
        for pool, (least, likely, most) in found.items():
            rules = self._before if pool in undeleted.new_pools else self.rules
            kept = rules.allocation.get(pool, likely)
            ratio = min(most, max(least, kept))
            ratios[pool] = kept if is_near(kept, ratio) else ratio
        return ratios

    def _class_factors(self, look: Look, leftovers: Leftovers) -> Dict[str, ClassFactors]:
        """Device class → factors; those from before while what has left OSDs is only estimated."""
        sums, beside = self._sums, leftovers.device_bytes(look)
        doubtful = {look.osds[osd].device_class for osd in leftovers.undeleted.bytes_by_osd()
                    if osd in look.osds}
        before = self._before if leftovers.undeleted.new_pools else self.rules
        devices: Dict[str, List[DeviceInput]] = {}
        for osd in piecewise(look.osds.values(), _OSDS_A_PIECE):
            if osd.has_statistics:
                devices.setdefault(osd.device_class, []).append(DeviceInput(
                    max(0, osd.used_bytes - beside.get(osd.id, 0)), sums.own_bytes[osd.id],
                    sums.objects[osd.id], sums.explained_bytes[osd.id]))
        return {name: before.factors[name] if name in doubtful and name in before.factors
                else class_factors(members, self.rules.factors.get(name))
                for name, members in piecewise(devices.items(), 1)}
