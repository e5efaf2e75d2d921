"""PGs whose log reaches back to their first object: Ceph fills their new OSDs by recovery."""

from __future__ import annotations

import time
from collections import Counter
from typing import Callable, Iterator, List, NamedTuple

import pytest

from ..cluster import DaemonCluster
from ..harness import workload
from ..harness.commands import equilibrium, ready_plan, shards_in_flight, status
from ..harness.map_history import MapHistory
from .filling import delete_pool, make_pool, unclean, write

pytestmark = [pytest.mark.releases(16, 20), pytest.mark.long]

POOL = "logs"
OBJECTS, BYTES = 2400, 60000
SLOW = {"osd_recovery_max_active": "1", "osd_recovery_sleep": "0.1"}
"""A shard of 300 objects is under way for half a minute."""
PATIENCE_SECONDS = 240
GAP_SECONDS = 16.0
"""A round finds the PG of the last one peering, looks again 10 s later, and then sends."""
LAG_SECONDS = 5.0
"""So old a state of the PGs may the module's be: its round, the OSDs' reports."""


class Sample(NamedTuple):
    at: float
    ceph: int       # moves of the plan whose PGs Ceph does not call clean
    flight: int     # moves in flight as `status` says
    state: str
    reason: str
    states: str     # of PGs that are not clean, for messages


@pytest.fixture(scope="module")
def logged(cluster: DaemonCluster) -> Iterator[DaemonCluster]:
    """A pool that was written once, and slow recovery."""
    make_pool(cluster, POOL)
    write(cluster, POOL, "o", OBJECTS, BYTES, 0)
    for name, value in SLOW.items():
        cluster.mon("config set", who="osd", name=name, value=value)
    yield cluster
    equilibrium(cluster, "off")
    for name in SLOW:
        cluster.mon("config rm", who="osd", name=name)
    workload.wait_clean(cluster, PATIENCE_SECONDS)
    delete_pool(cluster, POOL)


def test_the_plan_goes_at_the_pace_of_its_limits(
        logged: DaemonCluster, figure: Callable[[str], None]) -> None:
    logged.set_option("max_moves_per_round", 1)
    time.sleep(4)
    plan = ready_plan(logged, "logs", pools=[POOL], aim="even")
    assert len(plan["moves"]) >= 2, plan
    history = MapHistory(logged)
    assert equilibrium(logged, "execute", plan="logs").rc == 0
    began = time.time()
    samples = watch(logged, Counter(move["pgid"] for move in plan["moves"]))
    ended = [batch.at - began for batch in history.additions()]
    states = sorted({word for sample in samples for word in sample.states.split()})
    figure(f"{len(plan['moves'])} moves by log recovery, one a round of 2 s: sent after "
           f"{[round(at, 1) for at in ended]} s; most in flight at once "
           f"{max(sample.flight for sample in samples)}, by Ceph "
           f"{max(sample.ceph for sample in samples)}; states seen: {states}")
    assert {pg for batch in history.additions() for pg in batch.pgids} == set(
        plan["predicted_up"])
    assert not [sample for sample in samples if sample.state == "blocked"], said(samples)
    gaps = [later - earlier for earlier, later in zip([0.0, *ended], ended)]
    assert max(gaps) <= GAP_SECONDS, f"{gaps}\n{said(samples)}"
    wrong = [sample for sample in samples if not agrees(sample, samples)]
    assert not wrong, said(wrong) + "\n\nall:\n" + said(samples)
    up = workload.up_sets(logged)
    assert {pgid: up[pgid] for pgid in plan["predicted_up"]} == plan["predicted_up"]


def watch(cluster: DaemonCluster, moves: Counter[str]) -> List[Sample]:
    """A sample a second until the plan is through and all PGs are clean."""
    samples: List[Sample] = []
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        moving = unclean(cluster)
        now = status(cluster)
        samples.append(Sample(
            time.time(), sum(moves[pg["pgid"]] for pg in moving), shards_in_flight(now),
            now["state"], now["reason"],
            " ".join(sorted(f"{pg['state']}" for pg in moving))))
        if now["state"] == "off" and not moving and len(samples) > 5:
            return samples
        time.sleep(1.0)
    pytest.fail(f"not through: {now}\n{said(samples)}")


def agrees(sample: Sample, samples: List[Sample]) -> bool:
    """What is in flight is what Ceph showed at some time of the last seconds, or will at once."""
    near = [other.ceph for other in samples
            if sample.at - LAG_SECONDS <= other.at <= sample.at + LAG_SECONDS]
    return min(near) <= sample.flight <= max(near)


def said(samples: List[Sample]) -> str:
    began = samples[0].at if samples else 0.0
    return "\n".join(f"{sample.at - began:6.1f} s: {sample.flight} in flight, Ceph {sample.ceph}; "
                     f"{sample.state}: {sample.reason}; {sample.states}" for sample in samples)
