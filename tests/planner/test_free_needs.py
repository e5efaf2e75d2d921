"""What must stay free on an OSD, kept between questions, is what a pass over its pools gives."""
from __future__ import annotations

import random

from tests.support.clusters.random_clusters import random_cluster

from equilibrium_mgr.plan.options import PlanOptions
from equilibrium_mgr.planner.state.constraints import SearchConstraints
from equilibrium_mgr.planner.state.placement_state import PlacementState


def fits(limits: SearchConstraints, placement: PlacementState, osd: int, more: float, plus: int,
         minus: int) -> bool:
    """The rule itself: every pool of the OSD keeps its shards per free byte."""
    free = limits.usable_bytes[osd] - placement.used_bytes[osd] - more
    for group, most in limits.max_pressure.items():
        counts = placement.groups[group].counts[osd]
        if counts and group != minus and counts / most > free:
            return False
    if plus not in limits.max_pressure or plus == minus:
        return True
    return placement.groups[plus].counts[osd] + 1 <= limits.max_pressure[plus] * free


def test_as_by_a_pass_over_all_pools() -> None:
    rng = random.Random(11)
    placement = PlacementState(random_cluster(2, True).snapshot(), PlanOptions())
    groups = [group.index for group in placement.groups]
    limits = SearchConstraints(placement, groups)
    answers = set()
    for _ in range(3000):
        osd = rng.randrange(len(placement.size_bytes))
        if rng.random() < 0.2:
            group = rng.choice(groups)
            limits.set_max_pressure(group, limits.max_pressure[group] * rng.choice(
                (0.93, 0.98, 0.99, 1.0, 1.06)))
        if rng.random() < 0.1:
            pg = rng.randrange(len(placement.pgs))
            source = rng.choice(placement.up[pg])
            if placement.is_legal(pg, source, osd):
                placement.move(pg, source, osd)
        more = rng.uniform(-0.2, 0.2) * placement.size_bytes[osd]
        plus, minus = rng.choice(groups), rng.choice(groups + [-1])
        wanted = fits(limits, placement, osd, more, plus, minus)
        assert limits.fits_pressure(osd, more, plus, minus) is wanted
        answers.add(wanted)
    assert answers == {False, True}
