"""Moves cost few osdmaps: each batch is one epoch, and within an execution a PG is sent once."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Dict, List, Set

import pytest

from mgr_stub.console.session import Session
from mgr_stub.monitor.monitor import MGR
from tests.support.few import few

from . import clusters
from .drive import command

_HOUR = 3600.0
_SET = "config set mgr mgr/equilibrium/"


def batches(session: Session) -> Dict[float, List[str]]:
    """When a batch was sent → its PGs; each is one epoch."""
    sent: Dict[float, List[str]] = {}
    epochs: Dict[float, Set[int]] = {}
    for entry in session.command_log:
        if entry.sender == MGR and "upmap" in entry.prefix:
            sent.setdefault(entry.sent_at, []).append(entry.command["pgid"])
            epochs.setdefault(entry.sent_at, set()).add(entry.epoch)
    assert sent and all(len(found) == 1 for found in epochs.values()), epochs
    assert len(set().union(*epochs.values())) == len(sent)
    return sent


@pytest.mark.parametrize("seed", few(range(40), 2))
@pytest.mark.parametrize("how", ["on", "execute"])
def test_a_batch_is_one_map_and_a_pg_is_in_one_batch(how: str, seed: int, tmp_path: Path) -> None:
    session = clusters.session_of("random", seed, tmp_path)
    command(session, "sim backfill rate 200M")
    command(session, _SET + "start_delay 0")
    command(session, _SET + f"max_moves_per_round {1 + seed % 4 * 3}")
    if how == "on":
        command(session, "equilibrium on")
    else:
        command(session, "equilibrium optimize p")
        command(session, "equilibrium execute p")
    session.host.run_for(12 * _HOUR)
    again = Counter(pgid for pgids in batches(session).values() for pgid in pgids)
    assert how == "on" or set(again.values()) == {1}, again.most_common(3)
    within: Dict[str, float] = {}   # and automatic plans leave it alone for pg_cooldown
    for at, pgids in batches(session).items():
        for pgid in pgids:
            assert at - within.get(pgid, -_HOUR) >= _HOUR, pgid
            within[pgid] = at
    session.close()
