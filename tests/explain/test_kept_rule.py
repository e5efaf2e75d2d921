"""The equivalent rule that `explain` names for a pool whose upmaps monitors cancel is given to it,
as the answer tells step by step: what could not move is balanced, and only what it needs moves."""
from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from mgr_stub.console.mon_commands import _crush
from mgr_stub.console.session import Session
from mgr_stub.crush.edit import with_rule
from tests.benchmark.clusters import state_of
from tests.benchmark.made.shapes import Osds, PoolPlan, fill
from tests.commands.asking import ask, run
from tests.scenarios.clusters import crush_places
from tests.support.clusters.crush_maps import rule_dump

_TAKE = "take default~{0}; choose firstn 2 rack; chooseleaf firstn 1 host; emit"


def fullest(session: Session) -> float:
    return max(max(used.values()) for used in session.cluster.utilizations().values())


@pytest.mark.full   # ten seconds
def test_the_way_that_is_told_leads_to_balance(tmp_path: Path) -> None:
    rng, osds, tree = random.Random("kept/1"), Osds(), {}
    for rack in range(2):
        tree[f"rack r{rack}"] = {
            f"host h{2 * host + rack}": osds.host([1, 1], "hdd") + osds.host([1, 1], "ssd")
            for host in range(3)}
    rules = {0: "; ".join([_TAKE.format("ssd"), _TAKE.format("hdd")])}
    layout = osds.layout(tree, rules, [PoolPlan("hy", 1.0, 128, size=4)])
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state_of(fill(
        layout._replace(highest_fill=0.8), rng, crush_places))))
    session = Session.from_state(str(path), release=18, seed=1)
    run(session, "equilibrium on", "sim run 15m")
    before, action = fullest(session), ask(session, "explain")["action"]
    told = re.search("give pool hy an equivalent rule .*: (take .*); 'ceph osd set norebalance'",
                     action)
    assert told is not None, action
    dump = session.cluster.crush.as_dump()
    text = told.group(1).replace(" class ", "~").replace(" type ", " ")
    steps = rule_dump(1, text, {one["name"]: one["id"] for one in dump["buckets"]})["steps"]
    _crush(lambda crush: with_rule(crush, "kept", 1, steps))(session.host.simulation)
    assert before > 0.75
    for command in re.findall("'ceph ([^']+)'", action[told.end(1):]):
        run(session, command.replace(" RULE", " kept"), "sim run 1m")
        while command.endswith("freeze") and "nothing to freeze" not in run(session, command):
            run(session, "sim run 1m")
    assert ask(session, "status")["moving"]["other_shards"] == 0
    run(session, "sim run 12h")
    status = ask(session, "status")
    bounds = [row["bound_utilization"] for row in status["classes"]]
    assert status["state"] == "balanced", status
    assert fullest(session) < max(bounds) + 0.03 < before, status
    session.close()
