"""Somebody who asks all the time, as dashboards, Prometheus and worried people do."""

from __future__ import annotations

import threading
import time
import urllib.request
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List, NamedTuple

from ..cluster import DaemonCluster, free_port
from ..daemons import Agent, ClusterError, wait_for

PERIOD_SECONDS = 5.0
SCRAPE_EVERY, OTHER_EVERY = 3, 6
"""Of the periods."""
OTHERS = ("osds", "eval", "explain", "drain ls")
ANSWER_SECONDS = 15.0


class Asked(NamedTuple):
    """What `status` said at one moment."""

    at: float           # seconds since the epoch
    now: Dict[str, Any]

    def __str__(self) -> str:
        at, now = time.strftime("%H:%M:%S", time.gmtime(self.at)), self.now
        return (f"{at} {now['state']}: {now['reason']}; look {now['snapshot_age_seconds']} s old; "
                f"{now['moving']}, misplaced {now['misplaced_ratio']}")


class Poller:
    """`status` every 5 s, a scrape of `port` every 15, something else every 30, until stopped."""

    def __init__(self, cluster: DaemonCluster, port: int) -> None:
        self.asked: List[Asked] = []
        self.scrapes = 0
        self.port = port
        self._agent = Agent(cluster.processes, cluster.conf)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="poller", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Nobody asks any more."""
        self._over.set()
        self._thread.join(3 * ANSWER_SECONDS)

    def since(self, at: float) -> List[Asked]:
        """What it said from that moment on."""
        return [asked for asked in self.asked if asked.at >= at]

    def has_said(self, state: str, since: float, after: int = 0) -> bool:
        """Whether it has been in that state from that moment on, the first answers left out."""
        return any(asked.now["state"] == state for asked in self.since(since)[after:])

    def _run(self) -> None:
        periods = 0
        while not self._over.wait(PERIOD_SECONDS):
            periods += 1
            try:
                now = self._ask("status")
                if now is not None:
                    self.asked.append(Asked(time.time(), now))
                if periods % SCRAPE_EVERY == 0:
                    self._scrape()
                if periods % OTHER_EVERY == 0:
                    self._ask(OTHERS[periods // OTHER_EVERY % len(OTHERS)])
            except (ClusterError, OSError):   # no mgr answers
                self._agent.close()
        self._agent.close()

    def _ask(self, command: str) -> Any:
        answer = self._agent.ask("mgr", {"prefix": f"equilibrium {command}", "format": "json"},
                                 seconds=ANSWER_SECONDS)
        return answer.json() if answer.rc == 0 else None

    def _scrape(self) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=10) as got:
            got.read()
        self.scrapes += 1


@contextmanager
def polled(cluster: DaemonCluster) -> Iterator[Poller]:
    """The cluster while it is asked all the time; metrics are served at a port meanwhile."""
    port = free_port()
    cluster.set_option("metrics_port", port)
    poller = Poller(cluster, port)
    try:
        wait_for("the first scrape", lambda: poller.scrapes, 60)
        yield poller
    finally:
        poller.stop()
        cluster.remove_option("metrics_port")
