"""`status` answers at once while a plan is being made, and that plan says EAGAIN meanwhile."""

from __future__ import annotations

import errno
import time
from typing import Callable, List

from ..cluster import DaemonCluster
from ..harness import workload
from ..harness.commands import (
    ANSWER_SECONDS, assert_refused, equilibrium, equilibrium_json, hooked, optimize, status,
    wait_ready)

SLOW_SECONDS = 8.0


def test_status_answers_while_a_slow_plan_is_made(
        cluster: DaemonCluster, unbalanced: workload.Usage, figure: Callable[[str], None]) -> None:
    with hooked(cluster, "slow.seconds", SLOW_SECONDS):
        started = time.monotonic()
        optimize(cluster, "slow")
        latencies: List[float] = []
        others: List[float] = []
        while time.monotonic() - started < SLOW_SECONDS - 2:
            answer = equilibrium(cluster, "status", format="json")
            assert answer.rc == 0, answer
            assert [p["plan"] for p in answer.json()["planning"]] == ["slow"], answer
            latencies.append(answer.seconds)
            for command in ("show", "execute", "dump"):
                refused = equilibrium(cluster, command, plan="slow")
                assert_refused(refused, errno.EAGAIN)
                others.append(refused.seconds)
            assert_refused(equilibrium(cluster, "eval", option="slow"), errno.EAGAIN)
            assert "slow" in [p["plan"] for p in equilibrium_json(cluster, "ls")["plans"]]
    wait_ready(cluster, "slow")
    assert time.monotonic() - started >= SLOW_SECONDS - 1, "the plan was not slow"
    assert status(cluster)["planning"] == []
    figure(f"status while a plan was made: asked {len(latencies)} times, slowest "
           f"{max(latencies) * 1000:.0f} ms, mean {sum(latencies) / len(latencies) * 1000:.0f} ms; "
           f"slowest of {len(others)} other commands {max(others) * 1000:.0f} ms")
    assert max(latencies + others) < ANSWER_SECONDS
