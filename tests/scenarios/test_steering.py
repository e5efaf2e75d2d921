"""A failure with steering and without: never fuller, never later, never more that is copied.

`--failures N` has OSDs of N random clusters fail: one to three OSDs, or a host. Meanwhile the mgr
dies in the middle of a call, an OSD comes back, or a flag stops all copying for a while.
"""
from __future__ import annotations

import random
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Set, Tuple

import pytest

from mgr_stub.cluster import pg_reports
from mgr_stub.cluster.pg import Transfer
from mgr_stub.console.session import Session

from . import clusters, drive
from .watch.watch import Watch

STEP_MINUTES = 2
LONGEST_HOURS = 60
#: Shards are steered half a minute after the OSDs are out, so that some have begun to arrive.
RATE = 3 << 20   # bytes per second
DOWN_OUT = "sim run 11m"
AT_REST = ("balanced", "stuck")
REST_MINUTES = 30   # a plan that has waited too long is made again in ten


class Course(NamedTuple):
    """What happened between the failure and balance."""

    peak: float             # highest utilization of an OSD
    whole_minutes: int      # until each PG that lacked a copy had been whole once
    degraded_minutes: int   # PG-minutes until then
    copied_bytes: float
    shards: int             # whose targets were chosen
    broken: List[str]       # rules of safety
    wrong: List[str]        # as Rebuild


class Rebuild:
    """While Ceph rebuilds shards nothing is called stuck: neither the state, nor how an episode
    ends that has sent nothing. What was stuck before is looked at within ten minutes."""

    def __init__(self) -> None:
        self.minutes = 0.0   # for which Ceph has rebuilt shards
        self.wrong: List[str] = []
        self._missing = 0
        self._at = self._stood_still_at = 0.0
        self._entries = 0

    def observe(self, session: Session) -> None:
        """Notes what is wrong since the last observation."""
        if session.module is None:   # the mgr is dead
            return
        missing = copying = 0
        for pg in session.cluster.unclean.values():
            missing += pg_reports.counts_of(session.cluster, pg).degraded
            state = pg_reports.state_of(session.cluster, pg)
            copying += "degraded" in state and ("backfilling" in state or "recovering" in state)
        is_rebuilding = copying > 0 and missing < self._missing
        now = session.clock()
        self._missing = missing
        status = session.module.balancer.status
        begun = status.history[self._entries:]
        self._entries = len(status.history)
        if not is_rebuilding:
            self._stood_still_at = now
        elif now > self._stood_still_at + 600.0:
            self.minutes += (now - self._at) / 60.0
            ended = [entry["outcome"] for entry in begun if not entry["moves"]]
            self.wrong += [f"{now:.0f} {text}: {status.reason}" for text in (status.state, *ended)
                           if text.startswith("stuck")]
        self._at = now


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> Dict[str, float]:
    """Counts the bytes that all transfers copy."""
    total = {"bytes": 0.0}
    setter = Transfer.copied.__set__

    def count(transfer: Transfer, value: float) -> None:
        before = getattr(transfer, "copied", 0.0)
        total["bytes"] += max(0.0, value - before)
        setter(transfer, value)
    monkeypatch.setattr(Transfer, "copied", property(Transfer.copied.__get__, count))
    return total


@pytest.mark.full
def test_steering_is_never_worse(failure_seed: int, tmp_path: Path,
                                 copied: Dict[str, float]) -> None:
    alone = course(failure_seed, tmp_path, copied, steers=False)
    steered = course(failure_seed, tmp_path, copied, steers=True)
    # where not all of it fits, A1 is broken with steering and without
    sleeps = any(what.startswith("A1:") for what in alone.broken)
    assert not [what for what in steered.broken if not (sleeps and what.startswith("A1:"))]
    assert not steered.wrong
    largest, smallest = sizes(failure_seed, tmp_path)
    told = f"{alone} {steered}, a shard is {largest / smallest:.3f} of an OSD"
    assert steered.peak <= alone.peak + largest / smallest, told
    minutes = 1.05 * alone.whole_minutes + largest / RATE / 60.0 + STEP_MINUTES
    assert steered.whole_minutes <= minutes, told
    assert steered.copied_bytes <= 1.15 * alone.copied_bytes, told
    assert steered.degraded_minutes <= 1.2 * alone.degraded_minutes + 60, told


def course(seed: int, folder: Path, copied: Dict[str, float], steers: bool) -> Course:
    """Balances a cluster, lets OSDs fail, and watches until it is whole."""
    session = clusters.session_of("random", seed, folder)
    options = ("steer_recovery", "hold_placement")
    for name in options:
        drive.command(session, f"config set mgr mgr/equilibrium/{name} {str(steers).lower()}")
    watch = Watch(session)
    session.host.observers.append(lambda _: watch(session))
    drive.command(session, "equilibrium on")
    drive.command(session, "sim run 10h")
    drive.command(session, f"sim backfill rate {RATE}")
    osds = lost(seed, session)
    drive.command(session, f"config set mgr target_max_misplaced_ratio {limit_of(seed)}")
    for osd in osds:
        drive.command(session, f"sim osd down {osd}")
    drive.command(session, DOWN_OUT)
    copied["bytes"] = 0.0
    meanwhile = events(seed, osds)
    waiting = lacking_pgs(session)
    rebuild = Rebuild()
    peak = 0.0
    degraded = shards = rests = 0
    whole = -1
    for minutes in range(0, 60 * LONGEST_HOURS, STEP_MINUTES):
        for line in meanwhile.get(minutes, ()):
            drive.command(session, line)
        drive.command(session, f"sim run {STEP_MINUTES}m")
        peak = max([peak, *[usage.used / usage.total for usage in session.cluster.usage.values()
                            if usage.total]])
        rebuild.observe(session)
        if session.module is None:   # the mgr is dead: the next one takes over soon
            rests = 0
            continue
        status = session.module.balancer.status
        if status.steered is not None:
            shards = status.steered.elsewhere_shards + status.steered.held_shards
        if whole < 0:
            waiting &= lacking_pgs(session)   # not small PGs that balancing moves: these lack, too
            degraded += len(waiting) * STEP_MINUTES
            if not waiting:
                whole = minutes
        is_over = whole >= 0 and minutes > max(meanwhile, default=0)
        rests += STEP_MINUTES
        if not is_over or session.cluster.unclean or status.state not in AT_REST:
            rests = 0
        if rests >= REST_MINUTES:
            break
    found = Course(peak, whole, degraded, copied["bytes"], shards,
                   watch.broken, rebuild.wrong)
    session.close()
    return found


def lost(seed: int, session: Session) -> Sequence[int]:
    """The OSDs that fail: one to three, or those of a host."""
    rng = random.Random(f"failures/{seed}")
    osds = sorted(session.cluster.map.osds)
    if rng.random() < 0.5:
        return rng.sample(osds, rng.randint(1, 3))
    crush = session.cluster.crush
    hosts = [sorted(crush.weights_below(number)) for number, bucket in crush.buckets.items()
             if bucket["type_name"] == "host" and "~" not in bucket["name"]]
    return rng.choice(sorted(hosts))


def limit_of(seed: int) -> float:
    """The misplaced limit."""
    return random.Random(f"failures/limit/{seed}").choice((0.01, 0.05))


def events(seed: int, osds: Sequence[int]) -> Dict[int, List[str]]:
    """Minute after the failure, even → lines of then. A third of the seeds has none."""
    rng = random.Random(f"failures/events/{seed}")
    found: Dict[int, List[str]] = {}
    if not seed % 3:
        return found
    kind = rng.choice(("mgr", "mgr", "return", "flag"))
    minute = rng.choice((0, 0, 4, 20, 60))
    if kind == "mgr":
        point = rng.choice(("before-send", "after-send", "before-store", "after-store"))
        found[minute] = [f"sim mgr fail at {point} {rng.randint(1, 12)}"]
    elif kind == "return":
        found[minute] = [f"sim osd up {osds[0]}"]
    else:
        found[minute] = ["sim flag set nobackfill"]
        found[minute + 20] = ["sim flag unset nobackfill"]
    return found


def lacking_pgs(session: Session) -> Set[str]:
    """PGs that lack a copy."""
    found = set()
    for pgid, pg in session.cluster.unclean.items():
        state = pg_reports.state_of(session.cluster, pg)
        if "degraded" in state or "undersized" in state:
            found.add(pgid)
    return found


def sizes(seed: int, folder: Path) -> Tuple[float, float]:
    """Bytes of the largest shard, and of the smallest OSD."""
    session = clusters.session_of("random", seed, folder)
    smallest = min(usage.total for usage in session.cluster.usage.values() if usage.total)
    largest = max(pg.shard.total for pg in session.cluster.pgs.values())
    session.close()
    return largest, smallest
