"""Random streams of drift: a balanced cluster becomes uneven in one way, then in another.

The same seed gives the same stream. Between two steps there is time to become balanced again.
"""
from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from equilibrium_mgr.planner.planner import make_plan
from mgr_stub.console.session import Session
from mgr_stub.crush.dump_editor import DumpEditor
from mgr_stub.crush.tree import rebuild_shadow_trees
from mgr_stub.osdmap.osd_map import MapChange

from .. import clusters
from ..drive import command, watched
from ..rules.under_way import UpmapLog
from ..watch.truth import ask
from ..watch.watch import Watch
from .asking import Asker

HOUR = 3600.0
#: Until the cluster is balanced the first time, and after each step.
_FIRST_SECONDS, _STEP_SECONDS = 5 * HOUR, 2.5 * HOUR
Lines = List[str]
#: Steps that are twice as likely as others.
_OFTEN = ("allocation", "slow allocation", "upmaps", "full ratios")


class Phase(NamedTuple):
    """What the module did from one step to the next."""

    step: str
    sent: Dict[str, List[str]]         # PG → its upmap commands
    waited: Optional[float]            # seconds until the first of them
    highest: Dict[str, float]          # utilization by device class in the end
    moved_bytes: int
    state: str


class Played(NamedTuple):
    """A stream to its end."""

    phases: List[Phase]
    episodes: int
    watch: Watch


def play(seed: int, folder: Path, asker: Optional[Asker] = None, steps: int = 2) -> Played:
    """Plays the stream of a seed; what the cluster does is the same whatever the module does."""
    rng = random.Random(f"drift/{seed}")
    folder.mkdir(exist_ok=True)
    session = clusters.session_of("random", seed, folder)
    command(session, "sim backfill rate 1G")
    watch = watched(session)
    command(session, "equilibrium on")
    phases = [_phase("start", session, watch, asker, _FIRST_SECONDS)]
    for _ in range(steps):
        step = rng.choice([*STEPS, *_OFTEN])
        for line in STEPS[step](session, random.Random(rng.random())):
            command(session, line)
        phases.append(_phase(step, session, watch, asker, _STEP_SECONDS))
    episodes = ask(session, "history")["total"]
    session.close()
    return Played(phases, episodes, watch)


def _phase(step: str, session: Session, watch: Watch, asker: Optional[Asker],
           seconds: float) -> Phase:
    start, log, moved = session.clock.now, UpmapLog(session), watch.figures.moved_bytes
    if asker is None:
        session.host.run_for(seconds)
    else:
        asker.run_until(session, start + seconds)
    sent: Dict[str, List[str]] = {}
    ours = log.ours()
    for entry in ours:
        sent.setdefault(str(entry.command["pgid"]), []).append(str(entry.command.get("id", "")))
    first = ours[0].sent_at - start if ours else None
    highest = {name: max(used.values()) for name, used in session.cluster.utilizations().items()}
    return Phase(step, sent, first, highest, watch.figures.moved_bytes - moved,
                 session.module.balancer.status.state)


class Week(NamedTuple):
    """Some days of drift."""

    moved_bytes: int
    worst: float   # ratio by which a fresh plan would have lowered a class, at a full hour


def balanced_demo() -> Tuple[Session, Watch]:
    """The demo cluster, balanced, and a watch that does not look yet."""
    session = Session.from_state(release=18)
    command(session, "sim backfill rate 1G")
    watch = Watch(session)
    command(session, "equilibrium on")
    session.host.run_for(_FIRST_SECONDS)
    return session, watch


def week(seed: int, days: int, is_continuous: bool) -> Week:
    """The demo cluster while half of its OSDs, drawn once, become fuller or emptier by 0.1 points
    an hour: under automatic balancing, or with a plan a day."""
    rng = random.Random(f"week/{seed}")
    (session, watch), worst = balanced_demo(), 0.0
    if not is_continuous:
        command(session, "equilibrium off")
    used = {osd: usage.utilization for osd, usage in sorted(session.cluster.usage.items())}
    drifts = {osd: rng.choice((-0.001, 0.001)) for osd in rng.sample(list(used), len(used) // 2)}
    session.host.observers.append(lambda _: watch(session))
    for hour in range(1, 24 * days + 1):
        for osd, drift in drifts.items():
            command(session, f"sim osd allocation {1.0 + hour * drift / used[osd]:.6f} {osd}")
        if not is_continuous and hour % 24 == 0:
            command(session, "equilibrium optimize daily --replace")
            session.host.run_for(60.0)
            session.command("equilibrium execute daily")   # refused where it is empty
        session.host.run_for(HOUR)
        if is_continuous:   # by the module's own figures: chance finds more by slightly others
            plan = make_plan(session.module.balancer.observer.view.snapshot)
            worst = max([worst, *(usage.max - plan.after.classes[name].max
                                  for name, usage in plan.before.classes.items())])
    session.close()
    return Week(watch.figures.moved_bytes, worst)


# -- steps ----------------------------------------------------------------------------------------

def _fullest(session: Session) -> List[int]:
    """OSDs, the fullest first."""
    usage = session.cluster.usage
    return sorted(session.cluster.map.osds, key=lambda osd: -usage[osd].utilization)


def _pool(session: Session, rng: random.Random) -> str:
    pools = session.cluster.map.pools
    return str(pools[rng.choice(sorted(pools))]["pool_name"])


def _omap(session: Session, rng: random.Random) -> Lines:
    """Erasure-coded pools have none."""
    names = [str(pool["pool_name"]) for _, pool in sorted(session.cluster.map.pools.items())
             if not pool["erasure_code_profile"]]
    return [f"sim write-omap {rng.choice(names)} {rng.choice((2, 8))}G"][:len(names)]


def _slow_allocation(session: Session, rng: random.Random) -> Lines:
    """In pieces of which none is much."""
    osd = rng.choice(_fullest(session)[:3])
    for piece in range(1, 9):
        session.simulation.schedule.at(session.clock.now + 600.0 * piece, partial(
            session.command, f"sim osd allocation {1 + 0.006 * piece:.3f} {osd}"))
    return []


def _deletes(session: Session, rng: random.Random) -> Lines:
    name, cluster = _pool(session, rng), session.cluster
    pool = cluster.map.pool_named(name)
    assert pool is not None
    stored = sum(pg.num_bytes for pg in cluster.pgs_of(pool))
    return [f"sim delete {name} {int(stored * rng.choice((0.2, 0.6)))}"]


def _full_ratios(session: Session, rng: random.Random) -> Lines:
    """So low that the fullest OSD is above nearfull, or above backfillfull."""
    near = session.cluster.usage[_fullest(session)[0]].utilization - rng.choice((0.01, 0.03))
    return [f"sim osd full-ratios {near:.3f} {near + rng.choice((0.005, 0.1)):.3f} 0.97"]


def set_class(session: Session, osd: int, name: str) -> Lines:
    """Gives an OSD another device class."""
    editor = DumpEditor(session.cluster.crush.as_dump())
    editor.devices[osd]["class"] = name
    rebuild_shadow_trees(editor)
    session.simulation.apply_change(MapChange(crush=editor.dump()))
    return []


def _rules(session: Session, rng: random.Random) -> Lines:
    """A pool gets the rule of another one of its kind."""
    pools = session.cluster.map.pools
    number = rng.choice(sorted(pools))
    rule = rng.choice([pool["crush_rule"] for pool in pools.values() if all(
        pool[key] == pools[number][key] for key in ("type", "size"))])
    session.simulation.apply_change(MapChange(pools={
        number: {**pools[number], "crush_rule": rule}}))
    return []


def _pool_made(session: Session, rng: random.Random) -> Lines:
    name = f"made{int(session.clock.now)}"
    return [f"sim pool create {name} pg_num=16 size=3",
            f"sim write {name} {rng.choice((1, 30))}G"]


#: What becomes of the cluster at once, and the command lines for the rest of it.
STEPS: Dict[str, Callable[[Session, random.Random], Lines]] = {
    "allocation": lambda session, rng: [
        f"sim osd allocation 1.0{rng.randint(3, 8)} {rng.choice(_fullest(session)[:3])}"],
    "allocation of all": lambda session, rng: [   # looks like noise
        f"sim osd allocation {rng.uniform(0.99, 1.05):.4f} {osd}" for osd in _fullest(session)],
    "slow allocation": _slow_allocation,
    "omap": _omap,
    "writes": lambda session, rng: [f"sim write {_pool(session, rng)} {rng.choice((10, 40))}G"],
    "growth": lambda session, rng: [f"sim grow {_pool(session, rng)} {rng.choice((5, 20))}G/1h"],
    "deletes": _deletes,
    "upmaps": lambda session, rng: [
        f"osd rm-pg-upmap-items {pgid}" for pgid in sorted(session.cluster.map.upmap_items)
        if rng.random() < 0.6],
    "full ratios": _full_ratios,
    "weights": lambda session, rng: [
        f"sim osd {rng.choice(('', 'crush-'))}reweight {rng.choice(_fullest(session))} 0.3"],
    "classes": lambda session, rng: set_class(session, rng.choice(_fullest(session)), rng.choice(
        [*sorted(set(session.cluster.crush.classes.values())), "nvme"])),
    "rules": _rules, "pool made": _pool_made,
    "pool deleted": lambda session, rng: [f"sim pool rm {_pool(session, rng)}"][
        :len(session.cluster.map.pools) - 1]}
