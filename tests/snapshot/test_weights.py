"""Which OSDs count as held by the operator's weights, and to what share."""
from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import Dict, Mapping, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.rules import OSD_RULE
from tests.support.units import TIB

from equilibrium_mgr.plan.usage import with_chance
from equilibrium_mgr.snapshot.model import Osd, Snapshot, without_shares
from equilibrium_mgr.snapshot.operator_weights import held_sentence

#: 12 OSDs of 4 TiB
ALIKE = [4.0] * 12


def cluster_of(sizes: Sequence[float], weights: Sequence[float],
               reweights: Mapping[int, float]) -> Cluster:
    """OSDs on hosts of two; sizes are TiB."""
    cluster = Cluster(hosts(len(sizes) // 2, 2), {0: OSD_RULE}, weights=dict(enumerate(weights)))
    cluster.sizes = {osd: int(size * TIB) for osd, size in enumerate(sizes)}
    for osd, reweight in reweights.items():
        cluster.osd(osd, weight=reweight)
    return cluster


def snapshot_of(sizes: Sequence[float], weights: Sequence[float],
                reweights: Mapping[int, float] = MappingProxyType({})) -> Snapshot:
    return cluster_of(sizes, weights, reweights).snapshot()


def shares(snapshot: Snapshot) -> Dict[int, float]:
    return {osd.id: round(osd.share, 3) for osd in snapshot.osds.values() if osd.share < 1.0}


@pytest.mark.parametrize("reweight, found", [
    (1.0, {}), (0.95, {}), (0.91, {}), (0.85, {5: 0.85}), (0.1, {5: 0.1}), (0.0, {})])
def test_a_lowered_reweight_is_a_share(reweight: float, found: Dict[int, float]) -> None:
    assert shares(snapshot_of(ALIKE, ALIKE, {5: reweight})) == found


@pytest.mark.parametrize("unit", [1.0, 0.125, 250.0])
def test_a_lowered_crush_weight_is_a_share_in_every_unit(unit: float) -> None:
    weights = [4.0 * unit] * 11 + [0.4 * unit]
    assert shares(snapshot_of(ALIKE, weights)) == {11: 0.1}


def test_both_together() -> None:
    weights = [4.0] * 11 + [2.0]
    snapshot = snapshot_of(ALIKE, weights, {11: 0.5, 3: 0.5})
    assert shares(snapshot) == {3: 0.5, 11: 0.25}
    assert held_sentence(snapshot.osds[3]) == "osd.3 is held to 50% of its size by its reweight"
    assert held_sentence(snapshot.osds[11]) == (
        "osd.11 is held to 25% of its size by its reweight and its CRUSH weight")


@pytest.mark.parametrize("reweight", [0.8, 0.3])
def test_one_reweight_for_all_is_none(reweight: float) -> None:
    assert shares(snapshot_of(ALIKE, ALIKE, dict.fromkeys(range(12), reweight))) == {}


@pytest.mark.parametrize("drained", [3, 9, 10, 11])
def test_drain_of_all_but_few(drained: int) -> None:
    reweights = dict.fromkeys(range(drained), 0.3)
    assert shares(snapshot_of(ALIKE, ALIKE, reweights)) == reweights


@pytest.mark.parametrize("size, weight", [(4.0, 0.4), (4.0, 3.0), (8.0, 0.8), (8.0, 6.0)])
def test_hardware_is_exchanged_by_steps(size: float, weight: float) -> None:
    """Many more new OSDs than old ones, all of them weighed in together."""
    sizes = [4.0] * 4 + [size] * 28
    found = shares(snapshot_of(sizes, [4.0] * 4 + [weight] * 28))
    assert found == dict.fromkeys(range(4, 32), weight / size)


@pytest.mark.parametrize("sizes, weights", [
    ([4.0] * 9 + [8.0] * 3, [1.0] * 12),
    ([4.0] * 4 + [8.0] * 4 + [16.0] * 4, [1.0] * 12),
    ([4.0] * 11 + [8.0], [1.0] * 12),
    ([4.0] * 9 + [16.0] * 3, [2.0] * 9 + [4.0] * 3),        # roots of sizes
    ([4.0] * 12, [1.0, 5.0, 2.0, 7.0, 3.0, 1.5, 9.0, 4.0, 2.5, 6.0, 0.5, 8.0]),
    ([4.0] * 12, [40.0] * 5 + [20.0] * 7)])                   # two speeds
def test_weights_that_are_no_sizes_hold_nothing(sizes: Sequence[float],
                                                weights: Sequence[float]) -> None:
    assert shares(snapshot_of(sizes, weights)) == {}


def test_a_drained_osd_among_constant_weights() -> None:
    sizes = [4.0] * 6 + [8.0] * 6
    assert shares(snapshot_of(sizes, [1.0] * 11 + [0.2])) == {11: 0.2}


def test_what_cannot_leave_does_not_count() -> None:
    """An empty BlueStore uses something, whatever its share."""
    cluster, used = cluster_of(ALIKE, ALIKE, {5: 0.1}), TIB // 100
    cluster.used = dict.fromkeys(cluster.osds, used)
    snapshot = cluster.snapshot()
    other, held = snapshot.osds[4], snapshot.osds[5]
    assert held.base_bytes == used and held.spared_bytes == int(0.9 * used)
    assert held.capacity_bytes == int(held.share * 4 * TIB)
    assert other.spared_bytes == 0 and other.capacity_bytes == 4 * TIB
    assert not shares(without_shares(snapshot))


def test_shares_by_chance_read_each_osd_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not once for each OSD of a lowered weight: that took seconds for a thousand of them."""
    weights = [4.0] * 28 + [2.0] * 12
    cluster = cluster_of([4.0] * 40, weights, {}).pool(1, size=1)
    for osd, weight in enumerate(weights):
        used = int((0.15 + 0.475 * weight) * TIB)
        cluster.osd(osd, used=used).pg(f"1.{osd:x}", [osd], used)
    snapshot = cluster.snapshot()
    snapshot = snapshot._replace(
        osds={osd.id: osd._replace(pg_shards=2) for osd in snapshot.osds.values()})
    reads: Counter[int] = Counter()
    target_bytes = Osd.target_bytes.fget

    def counted(osd: Osd) -> int:
        reads[osd.id] += 1
        return int(target_bytes(osd))

    monkeypatch.setattr(Osd, "target_bytes", property(counted))
    raised = with_chance(snapshot)
    assert [osd.id for osd in raised.osds.values() if osd.share > 0.51] == list(range(40))
    assert max(reads.values()) <= 6
