"""Plans that follow drift: the demo cluster, balanced, whose OSDs become fuller and emptier."""
from __future__ import annotations


from mgr_stub.console.session import Session

from equilibrium_mgr.planner.planner import make_plan


def test_what_shards_are_allocated_more_on_some_osds_is_not_fixed() -> None:
    """It goes with the shards: these OSDs are brought down as far as others are. They allocate too
    little more than others to be told by a factor (`snapshot/sizes/osd_factors.py`)."""
    session = Session.from_state(release=18)
    session.command("sim osd allocation 1.07 1 5 9 13")
    session.host.run_for(120.0)
    plan = make_plan(session.module.gateway.snapshot())
    session.close()
    after = plan.after.classes["hdd"]
    assert after.max <= after.mean + 0.01
