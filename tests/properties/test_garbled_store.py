"""Stored values with nonsense in them: the next mgr raises nothing and goes on with its plan."""
from __future__ import annotations

import json
import random
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from mgr_stub.console.session import Session
from tests.scenarios import clusters

_PREFIX = "mgr/equilibrium/"
#: JSON as Python writes and reads it, which has these words as well.
_NONSENSE = ("Infinity", "-Infinity", "NaN", "1e999", "-1", "1" + "0" * 400, "0.5", "null", "true",
             '"x"', '"\\ud800"', "[]", "{}", "[[]]", '{"x": [NaN]}')
_MARK = "\u0001garbled\u0001"
#: Values and parts of `execution` without which it is not known what to go on with, or that it was
#: under way a short while ago.
_NAMES_THE_PLAN = ("plan/", "execution, cut", "execution, plan", "execution, version",
                   "execution, at: -1", "execution, at: 0.5", "execution, at: true")
_TRIES = 10


def _spoilt(stored: str, rng: random.Random) -> Tuple[str, str]:
    """(what was done to the value, the value): one of its parts is another, or it is cut."""
    if rng.random() < 0.1:
        cut = rng.randrange(len(stored))
        return f"cut after {cut}", stored[:cut]
    try:
        value = json.loads(stored)
    except ValueError:   # a part of a plan
        cut = rng.randrange(len(stored))
        return f"other bytes at {cut}", stored[:cut] + "!" + stored[cut + 1:]
    holder, key = rng.choice(list(_places(value)) or [({"": value}, "")])
    holder[key] = _MARK
    word = rng.choice(_NONSENSE)
    return f"{key}: {word}", json.dumps(value).replace(json.dumps(_MARK), word)


def _places(value: Any) -> Iterator[Tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(
            len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from _places(value[key])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuple[Session, Dict[str, str]]]:
    """A session in the middle of a named plan, with something in every value that is stored."""
    session = clusters.session_of("nested", 3, tmp_path_factory.mktemp("garbled"))
    for line in ("config set mgr mgr/equilibrium/start_delay 0",
                 "config set mgr mgr/equilibrium/max_moves_per_round 2", "sim backfill rate 1M",
                 "equilibrium on", "sim run 4m", "equilibrium off", "equilibrium drain add 0",
                 "sim mon drop 0.5", "sim run 4m", "equilibrium off", "sim mon drop 0",
                 "equilibrium drain rm 0", "equilibrium optimize p", "equilibrium execute p",
                 "sim run 2m", "sim flag set norebalance", "sim run 1m"):
        assert session.command(line)[0] == 0, line
    assert session.module.balancer.plan_name == "p"
    kept = dict(session.simulation.store.keys)
    yield session, kept
    session.close()


@pytest.mark.parametrize("seed", range(_TRIES))
def test_the_next_mgr_goes_on(seed: int, stored: Tuple[Session, Dict[str, str]]) -> None:
    session, kept = stored
    rng = random.Random(f"store/{seed}")
    wrong: List[str] = []
    for key in sorted(kept):
        what, value = _spoilt(kept[key], rng)
        session.simulation.store.keys = {**kept, key: value}
        session.host.kill_mgr(1.0)
        session.host.run_for(5.0)
        name, failure = key[len(_PREFIX):], session.module._failure
        if failure:
            wrong.append(f"{name}, {what}: a round fails: {failure}")
        for command in ("status", "history", "ls", "undo --dry-run"):
            said = session.command("equilibrium " + command)[2]
            if "Traceback" in said:
                wrong.append(f"{name}, {what}: '{command}' fails: {said}")
        if not f"{name}, {what}".startswith(_NAMES_THE_PLAN) and (
                session.module.balancer.plan_name != "p"):
            wrong.append(f"{name}, {what}: the plan under way is forgotten")
    assert not wrong, "\n".join(wrong)
