"""Whatever stands in the key-value store, the module starts, answers, and sends nothing illegal.

`--spoilt-stores N` tries more of them.
"""

from __future__ import annotations

import base64
import json
import random
import time
import zlib
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from mgr_stub.console.session import Session

from ..asking import run

_PREFIX = "mgr/equilibrium/"
#: What a value in JSON may be by mistake.
_ODD: List[Any] = [None, True, -1, 0, 10**12, 10**30, 1e308, float("nan"), float("inf"), "", "x",
                   "1.0", "é\u0000", [], {}, [[]], {"version": 99}, "a" * 70000, [1] * 5000]
#: Texts that are no value of ours at all.
_FOREIGN = ["", "null", "[]", "{}", "0", "\"x\"", "{", "[" * 100000, "{\"a\":" * 50000, "NaN",
            "not JSON", "{\"version\": 2}", "{\"version\": \"1\"}", "{\"version\": 1}", "\ufeff{}",
            "AQAAAA==", "x" * 65536, "{\"modified\": 1, \"progress_events\": []}"]
_READING = ("status", "ls", "history", "explain", "eval", "show p", "eval p", "dump p", "pool ls")


def leaves(value: Any, path: Tuple[Any, ...] = ()) -> Iterator[Tuple[Any, ...]]:
    """The paths of all parts of a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ())
    for key, part in inner:
        yield from leaves(part, path + (key,))


def with_odd_part(value: Any, rng: random.Random) -> Any:
    """The same with one part replaced, left out or doubled."""
    path = rng.choice(list(leaves(value)))
    if not path:
        return rng.choice(_ODD)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    how = rng.randrange(4)
    if how == 0:
        del holder[path[-1]]
    elif how == 1 and isinstance(holder, list):
        holder.append(holder[path[-1]])
    else:
        holder[path[-1]] = rng.choice(_ODD)
    return value


def _packed_part(text: str, rng: random.Random) -> str:
    plan = json.loads(zlib.decompress(base64.b64decode(text)))
    changes = {**plan}
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.7 and changes.get("changes"):
            changes["changes"] = with_odd_part(changes["changes"], rng)
        else:
            changes = with_odd_part(changes, rng)
            if not isinstance(changes, dict):
                break
    return base64.b64encode(zlib.compress(json.dumps(changes).encode())).decode()


def spoilt(key: str, text: str, others: List[str], rng: random.Random) -> str:
    how = rng.randrange(6)
    if how == 0:
        return rng.choice(_FOREIGN)
    if how == 1:
        return text[:rng.randrange(len(text) + 1)]
    if how == 2:
        return rng.choice(others)
    if how == 3:
        at = rng.randrange(len(text) + 1)
        return text[:at] + chr(rng.randrange(1, 300)) + text[at + 1:]
    try:
        return _packed_part(text, rng) if "/part/" in key else json.dumps(
            with_odd_part(json.loads(text), rng))
    except ValueError:
        return rng.choice(_FOREIGN)


@pytest.fixture(scope="module")
def kept() -> Dict[str, str]:
    """What stands in the store in the middle of an execution, by key."""
    session = Session.from_state(None, 18)
    run(session, "config set mgr mgr/equilibrium/start_delay 0",
        "config set mgr mgr/equilibrium/max_moves_per_round 5",
        "equilibrium optimize q --max-moves 4", "equilibrium execute q", "sim run idle",
        "equilibrium optimize p --max-moves 12", "equilibrium execute p", "sim run 1m")
    values = {key: value for key, value in session.simulation.store.keys.items()
              if key.startswith(_PREFIX)}
    session.close()
    assert {key[len(_PREFIX):] for key in values} >= {
        "execution", "episode", "history", "changes/1", "plan/p/head", "plan/q/head"}
    return values


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store_seed" in metafunc.fixturenames:
        metafunc.parametrize("store_seed", range(metafunc.config.getoption("--spoilt-stores")))


def test_any_store(store_seed: int, kept: Dict[str, str],
                   open_session: Callable[..., Session]) -> None:
    rng = random.Random(store_seed)
    values = dict(kept)
    for key in rng.sample(sorted(values), rng.randint(1, len(values))):
        values[key] = spoilt(key, values[key], sorted(kept.values()), rng)
    for _ in range(rng.randrange(3)):
        values[_PREFIX + rng.choice(["plan/", "plan/x", "plan//head", "plan/z/head", "else",
                                     "plan/p/part/1/99999999999", "plan/p/part/x/y", "summary"])
               ] = rng.choice(_FOREIGN + sorted(kept.values()))
    if rng.random() < 0.3:
        del values[rng.choice(sorted(values))]
    session = open_session(18)
    session.simulation.store.keys.update(values)
    began = time.process_time()
    session.host.failover()
    for line in _READING:
        answer = session.command("equilibrium " + line)
        assert "Traceback" not in answer[2] and "failed to answer" not in answer[2], (line, answer)
    run(session, "equilibrium on", "sim run 5m", "sim failover", "sim run 10m")
    assert "MGR_EQUILIBRIUM_ERROR" not in session.mgr.health_checks, session.mgr.health_checks
    sent = [entry for entry in session.command_log if "upmap" in str(entry)]
    assert len(sent) < 2000
    for line in _READING + ("reset", "optimize p --max-moves 3", "show p", "rm p"):
        answer = session.command("equilibrium " + line)
        assert "Traceback" not in answer[2] and "failed to answer" not in answer[2], (line, answer)
    assert time.process_time() - began < 60.0
    # nothing of a monitor's refusals: what was sent could be read and was kept
    assert not [check for check in session.mgr.health_checks if "APPLY_FAILED" in check], [
        item for item in session.module.balancer.status.rejected.items()][:3]
