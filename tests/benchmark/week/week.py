"""A simulated week of a cluster of 300 OSDs: whose processor time it takes.

Automatic balancing is on from the start and CRUSH itself places the PGs. What happens is in EVENTS.
Reported bytes are off by up to 0.05 %, an OSD's by 5 GiB, and otherwise an hour later. With 1 % of
an OSD, several of its shards, the module takes every pool for mispredicted and rests.
"""
from __future__ import annotations

import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Tuple

from mgr_stub.clock import parse_span
from mgr_stub.console.session import Session

from tests.scenarios.clusters import crush_places
from tests.support.rules import EC_HDD_HOSTS, HDD_HOSTS

from ..clusters import state_of
from ..memory import peak_bytes
from ..made.shapes import SEED, Layout, Osds, PoolPlan, fill
from .shares import shared

#: Moments of virtual time, and command lines of the simulation. OSD 42 dies and is replaced by an
#: empty one; growth and deletes are those of clients.
EVENTS: Tuple[Tuple[str, str], ...] = (
    ("0s", "sim stats noise 0.0005 1h"), ("0s", "equilibrium on"),
    ("36h", "sim failover"),
    ("2d", "sim osd out 17"), ("3d", "sim osd in 17"),
    ("84h", "sim osd lose 42"), ("90h", "sim osd up 42"), ("90h", "sim osd in 42"),
    ("4d", "sim host add h30 10 12T"),
    ("5d", "sim grow cephfs 20T/1d"), ("6d", "sim grow cephfs 0"), ("6d", "sim delete backup 30T"))
SPAN = "7d"
HOSTS = 30
_PER_HOST = 10


def _layout(rng: random.Random, hosts: int) -> Layout:
    """Devices of three sizes; 9,248 PGs with 33,888 shards on 30 hosts, and less in proportion."""
    osds = Osds()
    tree = {f"host h{h}": osds.host([rng.choice((8, 12, 16)) for _ in range(_PER_HOST)])
            for h in range(hosts)}
    pools = [PoolPlan("rbd", 0.45, 4096), PoolPlan("cephfs", 0.2, 2048),
             PoolPlan("backup", 0.3, 2048, size=6, rule=1, k=4), PoolPlan("rgw", 0.05, 1024),
             PoolPlan("meta", 0.002, 32, omap_bytes=64 << 20)]
    scaled = [pool._replace(pg_num=max(1, pool.pg_num * hosts // HOSTS)) for pool in pools]
    return osds.layout(tree, {0: HDD_HOSTS, 1: EC_HDD_HOSTS}, scaled)


def session_of(hosts: int, folder: Path) -> Session:
    """A simulated mgr on such a cluster; `folder` is for the state file."""
    rng = random.Random(f"week/{SEED}")
    path = folder / "state.json"
    path.write_text(json.dumps(state_of(fill(_layout(rng, hosts), rng, crush_places))))
    return Session.from_state(str(path), release=18, seed=SEED)


def play(session: Session, span: str = SPAN) -> None:
    """The week, or its beginning. Raises RuntimeError for a command that fails."""
    start, end = session.clock.now, session.clock.now + parse_span(span)
    for moment, line in EVENTS:
        session.host.run_until(min(start + parse_span(moment), end))
        if session.clock.now < start + parse_span(moment):
            return
        code, _, problem = session.command(line)
        if code:
            raise RuntimeError(f"'{line}' failed: {problem}")
    session.host.run_until(end)


def measure_week(hosts: int = HOSTS, span: str = SPAN) -> Dict[str, Any]:
    """Processor seconds by whose they are, utilizations and bytes, ready for JSON."""
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        session = session_of(hosts, Path(folder))
    made = time.process_time()
    before = _highest(session)
    with shared() as shares:
        play(session, span)
    taken = time.process_time() - made
    found = {
        "osds": len(session.cluster.map.osds), "pools": len(session.cluster.map.pools),
        "pgs": len(session.cluster.pgs),
        "shards": sum(len(up) for up in session.cluster.map.up.values()),
        "virtual_seconds": session.clock.elapsed(), "setup_seconds": made - begun,
        "seconds": taken, "seconds_by": shares.seconds, "before": before,
        "after": _highest(session), "epochs": session.cluster.map.epoch,
        "commands": _commands(session), "looks": shares.looks,
        "state": session.module.balancer.state, "peak_bytes": peak_bytes()}
    session.close()
    return found


def _highest(session: Session) -> Dict[str, float]:
    return {name: max(used.values()) for name, used in session.cluster.utilizations().items()}


def _commands(session: Session) -> int:
    commands: List[str] = [entry.prefix for entry in session.command_log]
    return sum("upmap" in prefix for prefix in commands)
