"""The job thread: one job after the other, apart from the caller, and no job ends it."""
from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import List

from equilibrium_mgr.runtime.job_thread import JobThread
from tests.support.fakes import LOG

PATIENCE = 10.0


def test_jobs_run_in_order_in_another_thread() -> None:
    jobs, done = JobThread(LOG), threading.Event()
    ran: List[str] = []
    threads: List[int] = []

    def job(name: str) -> None:
        ran.append(name)
        threads.append(threading.get_ident())
    for name in "abcde":
        jobs.submit(name, partial(job, name))
    jobs.submit("last", done.set)
    assert done.wait(PATIENCE)
    jobs.stop()
    assert ran == list("abcde")
    assert len(set(threads)) == 1
    assert threads[0] != threading.get_ident()


def test_a_waiting_job_goes_on_when_the_thread_is_stopped() -> None:
    jobs, begun = JobThread(LOG), threading.Event()
    answers: List[bool] = []

    def job() -> None:
        begun.set()
        answers.append(jobs.wait(PATIENCE))
    jobs.submit("waits", job)
    assert begun.wait(PATIENCE)
    jobs.stop()
    assert answers == [False]


def test_the_first_goes_before_what_waits() -> None:
    jobs, runs, go_on, done = (JobThread(LOG), threading.Event(), threading.Event(),
                               threading.Event())
    order: List[str] = []

    def job() -> None:
        runs.set()
        go_on.wait(PATIENCE)
    jobs.submit("runs", job)
    assert runs.wait(PATIENCE)
    for name in ("a", "b"):
        jobs.submit(name, partial(order.append, name))
    jobs.submit("first", partial(order.append, "first"), first=True)
    jobs.submit("last", done.set)
    go_on.set()
    assert done.wait(PATIENCE)
    jobs.stop()
    assert order == ["first", "a", "b"]


def test_failing_job_does_not_end_the_thread() -> None:
    jobs, done = JobThread(LOG), threading.Event()

    def fail() -> None:
        raise RuntimeError("no")
    jobs.submit("bad", fail)
    jobs.submit("good", done.set)
    assert done.wait(PATIENCE)
    jobs.stop()


def test_a_job_that_has_ended_is_not_kept() -> None:
    """It may hold a snapshot, and the next one may come hours later."""
    thread, ended = JobThread(LOG), threading.Event()

    class Held:
        def run(self) -> None:
            pass
    held = Held()
    gone = weakref.finalize(held, ended.set)
    thread.submit("held", held.run)
    del held
    assert ended.wait(PATIENCE)
    assert not gone.alive
    thread.stop()
