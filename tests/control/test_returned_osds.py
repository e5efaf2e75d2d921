"""Which PGs may have data on an OSD that has come back."""
from __future__ import annotations

from typing import Any, FrozenSet, Optional, Sequence

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.control.steering import SteeringTrigger
from equilibrium_mgr.settings import default_settings
from equilibrium_mgr.snapshot.model import Snapshot

UP = dict(up=1, uuid="disk")
DOWN = dict(up=0, uuid="disk")
OUT = {"up": 0, "in": 0, "weight": 0.0, "uuid": "disk"}
MINUTES = 60.0


def seen(osd: Optional[Any], *coming: str) -> Snapshot:
    """osd.5 with these fields, None where it does not exist yet; PGs on their way to it."""
    made = Cluster(hosts(6)).pool(1, size=3)
    for pgid in ("1.0", "1.1", "1.2"):
        if pgid in coming:
            made.pg(pgid, "0 1 5", acting="0 1 2", state="active+remapped+backfill_wait")
        else:
            made.pg(pgid, "0 1 2")
    if osd is None:
        del made.osds[5]
    else:
        made.osd(5, **osd)
    return made.snapshot()


def returned(*looks: Snapshot) -> FrozenSet[str]:
    """By looks five minutes apart."""
    trigger = SteeringTrigger()
    for number, snapshot in enumerate(looks):
        trigger.observe(snapshot, "map", number * 5 * MINUTES)
    settings = default_settings()._replace(active=True)
    steering = trigger.begin_plan(settings, looks[-1], len(looks) * 5 * MINUTES)
    return steering.returned


@pytest.mark.parametrize("before", [
    [seen(UP), seen(DOWN)], [seen(UP), seen(OUT)], [seen(OUT)]])   # the last one: a new mgr
def test_pgs_that_come_with_its_return(before: Sequence[Snapshot]) -> None:
    back = seen(UP, "1.0")
    assert returned(*before, back) == {"1.0"}
    # 1.0 is still on its way, and balancing sends 1.1
    assert returned(*before, back, seen(UP, "1.0", "1.1")) == {"1.0"}
    assert not returned(*before, back, seen(UP), seen(UP, "1.0"))


def test_an_osd_that_was_never_up_has_no_data() -> None:
    """`ceph osd new` makes it, and it starts minutes later."""
    assert not returned(seen(None), seen(OUT), seen(UP, "1.0"))


def test_another_disk_has_no_data() -> None:
    assert not returned(seen(UP), seen(OUT), seen({**UP, "uuid": "new"}, "1.0"))
