"""Whatever happens between the look and the batch, at any call: nothing goes that it forbids.

What comes after the last osdmap that is read before the batch cannot be known, and is not judged.
"""
from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import pytest

from equilibrium_mgr.snapshot.model import pool_of
from mgr_stub.console.session import Session
from mgr_stub.mgr.mgr_process import CALLS
from tests.support.few import few

from . import clusters, random_events
from .rules.judge import Judge

_RANDOM = "random", 6
#: One whose OSDs are fuller: what CRUSH sends to others counts there.
_FULL = "erasure", 2
_SEEN_BY = CALLS["map"]
#: Of each event so many calls are tried without `--full`.
_FEW = 6
#: What others do to the plan's target, its host, its pool and the cluster.
_AIMED = (
    "sim osd down {osd}", "sim osd out {osd}", "sim osd reweight {osd} 0.5", "sim osd lose {osd}",
    "sim osd crush-reweight {osd} 0.1", "sim host down {host}", "sim pool rm {pool}",
    "sim pool pg_num {pool} {pg_num}", "sim osd full-ratios 0.05 0.9 0.95",
    "sim osd full-ratios 0.05 0.06 0.95", "sim flag set norebalance", "sim flag set pause",
    "sim balancer on", "equilibrium off",
    "config set mgr mgr/equilibrium/max_moves_per_round 1",
    "osd pg-upmap-items {pgid} {source} {spare}")
#: What only reports of PGs tell, which are as of the look; what ends the mgr; what looks itself.
_NOT_OF_MAPS = ("scrub", "write", "delete", "grow", "failover", "mgr fail", "mgr fail at", "read",
                "execute")
_KINDS = [kind for kind in dict.fromkeys(random_events.KINDS) if kind.name not in _NOT_OF_MAPS]


class Ready(NamedTuple):
    """A plan that is kept, and how its first batch is sent."""

    cluster: Tuple[str, int]
    path: Path
    kept: Dict[str, str]
    names: Dict[str, Any]               # of the first target, for _AIMED
    points: Sequence[Tuple[str, int]]   # (call by its `sim` name, how many of it)


def opened(ready: Ready) -> Session:
    session = Session.from_state(str(ready.path), 18, seed=ready.cluster[1])
    session.command("config set mgr mgr/equilibrium/start_delay 0")
    session.host.run_for(60.0)
    session.simulation.store.keys.update(ready.kept)
    session.host.failover()
    session.host.run_for(30.0)
    return session


class Sending:
    """Executes the plan and counts the calls; `lines` come at one of them."""

    def __init__(self, session: Session, point: str = "", count: int = 0,
                 lines: Sequence[str] = ()) -> None:
        self.calls: List[str] = []
        self.judge = Judge(session, lambda move: None)
        self.sent_at = 0
        self._came_at = -1
        process: Any = session.mgr.process
        call = process.call

        def counted(name: str) -> Any:
            self.calls.append(name)
            return call(name)
        process.call = counted
        session.simulation.monitor.observers.insert(0, self._on_command)
        if point:
            name, after = CALLS[point.partition("-")[2]], point.startswith("after")
            session.host.interrupt_at(name, after, count, lambda: self._come(after))
            for line in lines:
                session.command(f"sim meanwhile {point} {count} {line}")
        session.command("equilibrium execute p")
        session.host.run_for(40.0)
        process.call = call

    def _come(self, after: bool) -> None:
        self._came_at = len(self.calls) - (0 if after else 1)

    def _on_command(self, entry: Any) -> None:
        if "pg-upmap" in entry.prefix and not self.sent_at:
            self.sent_at = len(self.calls)

    @property
    def came_in_time(self) -> bool:
        """Whether a map was read after the event and before the batch, or could have been: what is
        stored before takes a commit of the monitors."""
        rest = self.calls[self._came_at:self.sent_at or len(self.calls)]
        return self._came_at >= 0 and (_SEEN_BY in rest or CALLS["store"] in rest)


@pytest.fixture(scope="module")
def ready(request: pytest.FixtureRequest,
          tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ready]:
    folder = tmp_path_factory.mktemp("ready")
    session = clusters.session_of(request.param[0], request.param[1], folder)
    for line in ("sim run 1m", "equilibrium optimize p", "sim run 1m"):
        assert session.command(line)[0] == 0
    plan = session.module.plan_store.get("p")
    kept = {key: value for key, value in session.simulation.store.keys.items() if "plan/" in key}
    change = plan.changes[0]
    target = next(osd for osd in change.up_after if osd not in change.up_before)
    source = next(osd for osd in change.up_before if osd not in change.up_after)
    pool = session.cluster.map.pools[pool_of(change.pgid)]
    host_of = session.cluster.crush.host_of
    spares = [osd for osd in sorted(session.cluster.usage) if host_of(osd) == host_of(source)]
    names = {"osd": target, "host": host_of(target), "pgid": change.pgid,
             "pool": pool["pool_name"], "pg_num": 2 * int(pool["pg_num"]), "source": source,
             "spare": next(osd for osd in spares
                           if osd not in (*change.up_before, *change.up_after))}
    made = Ready(request.param, folder / "state.json", kept, names, ())
    session.close()
    session = opened(made)
    plain = Sending(session)
    session.close()
    assert plain.sent_at and not plain.judge.broken
    calls, points = plain.calls[:plain.sent_at], []
    for point, name in CALLS.items():
        counts = range(1, 1 + calls.count(name) * (point != "send"))
        points += [(f"{when}-{point}", count) for count in counts for when in ("before", "after")]
    yield made._replace(points=points)


def _events(ready: Ready, number: int) -> List[str]:
    if number < len(_AIMED):
        return [_AIMED[number].format(**ready.names)]
    stream = random_events.Stream(random.Random(number), clusters.layout_of(*ready.cluster))
    return [line.replace("try ", "") for line in _KINDS[number - len(_AIMED)].lines(stream)][:1]


@pytest.mark.parametrize("ready", [_RANDOM], indirect=True, ids=["random"])
@pytest.mark.parametrize("tries", few((_FEW, 10 ** 6), 1), ids=["few", "all"])
@pytest.mark.parametrize("number", range(len(_AIMED) + len(_KINDS)), ids=[
    *_AIMED, *(kind.name for kind in _KINDS)])
def test_nothing_goes_that_is_forbidden_by_then(number: int, tries: int, ready: Ready) -> None:
    _hold(ready, _events(ready, number), tries, number)


@pytest.mark.parametrize("ready", [_FULL], indirect=True, ids=["erasure"])
@pytest.mark.parametrize("tries", few((_FEW, 2 * _FEW), 1))
@pytest.mark.parametrize("event", few(["out 5", "reweight 5 0.3", "crush-reweight 5 0.4"], 1))
def test_nothing_goes_beside_what_crush_has_just_moved(
        event: str, tries: int, ready: Ready) -> None:
    _hold(ready, [f"sim osd {event}"], tries, 2)


def _hold(ready: Ready, lines: Sequence[str], tries: int, seed: int) -> None:
    wrong, judged = [], 0
    points = list(ready.points)
    random.Random(seed).shuffle(points)
    for point, count in points[:tries]:
        session = opened(ready)
        sending = Sending(session, point, count, lines)
        if sending.came_in_time:
            judged += 1
            wrong += [f"{lines} at {point} {count}: {what}" for what in sending.judge.broken]
            if session.module._failure:
                wrong.append(f"{lines} at {point} {count}: {session.module._failure}")
        session.close()
    assert not wrong, "\n".join(wrong[:10])
    assert judged
