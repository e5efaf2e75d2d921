"""How an OSD is relieved where single moves have ended."""
from __future__ import annotations

from tests.planner.search.parts import Parts
from tests.support.clusters.unit_cluster import single_copies
from tests.support.units import GIB

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.search.relief import OverfullOsd
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.placement_state import PlacementState


def two_osds() -> PlacementState:
    """Shards of 30 and 20 GiB on one OSD, of 25 and 15 on the other."""
    return PlacementState(single_copies([30, 20], [25, 15]).snapshot(), PlanOptions())


def test_a_swap_where_no_move_fits() -> None:
    """30 + 20 against 25 + 15: only an exchange brings both to 45."""
    placement = two_osds()
    parts = Parts(placement, bound=0.45, most=0.45)
    found = parts.relief(0.001).find(0, OverfullOsd(parts.osds, 0.45, 0.0))
    assert found is not None and len(found.steps) == 2
    for step in found.steps:
        placement.move(*step)
    assert placement.used_bytes == [45 * GIB, 45 * GIB]


def test_a_swap_of_a_pools_own_shards_keeps_its_free_space() -> None:
    """No shard more, but more bytes on the OSD that limits the pool."""
    placement = two_osds()
    limits = SearchConstraints(placement, [0])
    limits.set_max_pressure(0, limits.shards_per_free_byte(0, 1))
    assert limits.fits_pressure(1, 0, 0, 0)
    assert not limits.fits_pressure(1, 5 * GIB, 0, 0)
