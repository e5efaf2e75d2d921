"""What `status` says to do at a moment of a random stream is done as it stands, nothing else."""
from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import pytest
from tests.explain.followed import carried_out, harm
from tests.explain.same_figures import differing
from tests.scenarios import clusters, drive, random_events
from tests.scenarios.scenario import TRY, Scenario
from tests.scenarios.watch import advice

from equilibrium_mgr.snapshot.reason_codes import NOTHING

#: What puts a cluster into need: faults of the mgr, its reports and its clock tell nothing of that.
_KINDS = (
    random_events._osd_down, random_events._osd_lose, random_events._host_down,
    random_events._full_ratios, random_events._flag_set, random_events._host_add,
    random_events._osd_out, random_events._osd_reweight, random_events._write,
    random_events._backfill_rate)
_WAIT = "sim run 1d"
_SLACK = 0.005


class End(NamedTuple):
    """What was said, what was done for it, and how it is a day later."""

    said: Dict[str, Any]
    done: Sequence[str]
    after: Dict[str, Any]
    harm: Tuple[float, ...]
    backfillfull: float   # the ratio


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "advice_seed" in metafunc.fixturenames:
        metafunc.parametrize("advice_seed", range(
            16 if metafunc.config.getoption("--full") else 2))


@pytest.mark.full
def test_advice_of_a_stream_helps(advice_seed: int, tmp_path: Path) -> None:
    played = random_events.stream_of("advice", advice_seed, _KINDS)
    moment = random.Random(advice_seed).choice([event.at for event in played.events[4:-6]]
                                               or [played.events[-1].at]) + 300.0
    alone = _play(played, moment, tmp_path, False)
    action, code = alone.said["action"], alone.said["reason_code"]
    print(f"{alone.said['state']}: {code}: {action}")
    if action.startswith("nothing;"):
        assert _ended(alone), (alone.said, alone.after)
    if action.startswith("nothing"):
        return
    acted = _play(played, moment, tmp_path, True)
    assert acted.said["action"] == action and acted.done, (acted.said, action)
    assert _ended(acted), (acted.said, acted.done, acted.after)
    # what is rebuilt fills OSDs, as far as Ceph's own limit or the one that was named
    raised = re.search("full-ratio ([0-9.]+)", action)
    limit = float(raised.group(1)) if raised else alone.backfillfull
    most = (max(alone.harm[0], limit), *alone.harm[1:])
    assert all(one <= other + _SLACK for one, other in zip(acted.harm, most)), (
        action, acted.harm, alone.harm)


def _ended(seen: End) -> bool:
    """The matter is another one."""
    return (seen.said["action"] == NOTHING or seen.after["action"] != seen.said["action"]
            or seen.after["reason_code"] != seen.said["reason_code"])


def _play(played: Scenario, moment: float, folder: Path, acts: bool) -> End:
    session = clusters.session_of(played.cluster, played.seed, folder, played.release)
    try:
        start = session.simulation.clock.now
        lines = [f"config set mgr mgr/equilibrium/{name} {value}"
                 for name, value in played.options]
        for line in lines:
            drive.command(session, line)
        for event in played.events:
            if event.at > moment:
                break
            drive.run_to(session, start + event.at)
            session.command(event.line[len(TRY):] if event.line.startswith(TRY) else event.line)
        drive.run_to(session, start + moment)
        said = _status(session)
        done: List[str] = carried_out(said["action"], session) if acts else []
        for line in done:
            drive.command(session, line)
        drive.command(session, _WAIT)
        return End(said, done, _status(session), harm(session),
                   session.cluster.map.ratio("backfillfull_ratio"))
    finally:
        session.close()


def _status(session: Any) -> Dict[str, Any]:
    """On a view of this moment; its advice has its form."""
    session.command("equilibrium status")
    session.command("sim run 61s")
    status: Dict[str, Any] = json.loads(session.command("equilibrium status --format json")[1])
    wrong = [*advice.told(status, advice.plain(session, "status")), *differing(session)]
    assert not wrong, wrong
    return status
