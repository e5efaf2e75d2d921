"""Moves cost few osdmaps: each batch is one epoch, and within an execution a PG is sent once."""
from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Sequence

import pytest

from tests.support.few import few

from . import clusters
from .drive import command, watched
from .rules.under_way import is_ours

_HOUR = 3600.0
_SET = "config set mgr mgr/equilibrium/"


@pytest.mark.parametrize("seed", few([1, 0, *range(2, 40)], 1))
@pytest.mark.parametrize("how", [("equilibrium on",), (
    "equilibrium optimize p", "equilibrium execute p")], ids=["on", "execute"])
def test_a_batch_is_one_map_and_a_pg_is_in_one_batch(
        how: Sequence[str], seed: int, tmp_path: Path) -> None:
    session = clusters.session_of("random", seed, tmp_path)
    watch = watched(session)
    for line in ("sim backfill rate 200M", _SET + "start_delay 0",
                 _SET + f"max_moves_per_round {1 + seed % 4 * 3}", *how):
        command(session, line)
    session.host.run_for(12 * _HOUR)
    session.close()
    ours = list(filter(is_ours, session.command_log))
    maps = {(entry.sent_at, entry.epoch) for entry in ours}
    assert ours and len(maps) == len(dict(maps)) == len({epoch for _, epoch in maps})
    assert not watch.broken   # S6: automatic plans leave a PG alone for pg_cooldown
    again = Counter(entry.command["pgid"] for entry in ours)
    assert len(how) == 1 or set(again.values()) == {1}, again.most_common(3)
