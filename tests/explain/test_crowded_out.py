"""An expansion moves more data than the misplaced limit lets balancing add to, and OSDs above
nearfull wait: `status` names `freeze`, which lets them go first; not if shards were held."""
from __future__ import annotations

import json
import random
from pathlib import Path
from typing import List

import pytest
from mgr_stub.console.session import Session
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Osds, PoolPlan, fill
from tests.commands.asking import ask, paste, run
from tests.scenarios.clusters import crush_places

_RULE = "set_chooseleaf_tries 5; take default~hdd; chooseleaf indep 0 host; emit"


def _expanded(folder: Path) -> Session:
    """Erasure-coded data on eight hosts, and two hosts more; the first hours are over."""
    osds = Osds()
    tree = {f"host h{host}": osds.host([4, 4, 4, 4]) for host in range(8)}
    layout = osds.layout(tree, {0: _RULE}, [PoolPlan("ec", 1.0, 256, size=6, k=4)])
    path = folder / "state.json"
    path.write_text(json.dumps(state_of(fill(
        layout._replace(highest_fill=0.94), random.Random("crowded/1"), crush_places))))
    session = Session.from_state(str(path), release=16, seed=1)
    run(session, "config set mgr mgr/equilibrium/hold_placement false", "equilibrium on",
        "sim run 10m", "sim host add h8 4 4T", "sim host add h9 4 4T",
        "sim run 2h")
    return session


def _nearfull(session: Session) -> List[int]:
    ratio = session.cluster.map.ratio("nearfull_ratio")
    return [osd for osd, usage in session.cluster.usage.items() if usage.utilization > ratio]


@pytest.mark.full   # a minute
def test_the_fullest_go_first(tmp_path: Path) -> None:
    ends: List[float] = []
    for acts in (False, True):
        session = _expanded(tmp_path)
        backfillfull = session.cluster.map.ratio("backfillfull_ratio")
        assert _nearfull(session)
        assert all(usage.utilization < backfillfull for usage in session.cluster.usage.values())
        action = ask(session, "status")["action"]
        assert action.startswith("'ceph osd set norebalance', 'ceph equilibrium freeze'"), action
        if acts:
            paste(session, run(session, "equilibrium status"))
        began = session.clock.elapsed()
        while _nearfull(session) and session.clock.elapsed() - began < 86400.0:
            run(session, "sim run 15m")
        ends.append(session.clock.elapsed() - began)
        session.close()
    print("minutes until no OSD is nearfull:", [round(end / 60.0) for end in ends])
    assert ends[1] < 0.5 * ends[0], ends
