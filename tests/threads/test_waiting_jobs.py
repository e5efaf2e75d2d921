"""A job that waits, as a plan does while PGs have just been remapped: in virtual time."""
from __future__ import annotations

from typing import Callable, List

from .running import Running


def ends_of_a_wait(running: Running) -> List[bool]:
    """Gets what a job is told that has begun to wait for 100 s, once it goes on."""
    ended: List[bool] = []
    jobs = running.session.module.jobs
    jobs.submit("wait", lambda: ended.append(jobs.wait(100.0)))
    return ended


def test_job_waits_until_time_has_passed(run_mgr: Callable[..., Running]) -> None:
    running = run_mgr()
    ended = ends_of_a_wait(running)
    running.run(90.0)
    assert ended == []
    running.run(120.0)
    assert ended == [True] and not running.broken()


def test_shutdown_ends_the_wait(run_mgr: Callable[..., Running]) -> None:
    running = run_mgr()
    ended = ends_of_a_wait(running)
    running.run(1.0)
    running.close()
    assert ended == [False]
