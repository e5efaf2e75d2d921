"""What an OSD withholds, as it has too many PGs by its own options, is taken back."""
from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Set

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import run
from tests.explain.followed import open_cluster


def withheld(session: Session) -> List[str]:
    return [pgid for pgid, pg in session.cluster.unclean.items() if pg.withheld_by]


@pytest.mark.parametrize("how, seed, limit", [
    ("automatic", 20, 23), ("plan", 20, 23), ("failover", 20, 23), ("by a new primary", 15, 15)])
def test_a_withheld_pg_is_inactive_for_minutes_and_not_sent_there_again(
        how: str, seed: int, limit: int, tmp_path: Path) -> None:
    session = open_cluster("random", seed, tmp_path)
    # below what OSDs have that moves go to, and not known to the mgr
    run(session, f"config set osd mon_max_pg_per_osd {limit}",
        "config set osd osd_max_pg_per_osd_hard_ratio 1", "sim run 1m")
    if how == "plan":
        run(session, "equilibrium optimize p", "equilibrium execute p")
    else:
        run(session, "equilibrium on")
    seconds: Dict[str, int] = {}   # of each PG in that state
    raised: Set[str] = set()
    for moment in range(240):
        run(session, "sim run 30s")
        raised.update(session.mgr.health_checks)
        for pgid in withheld(session):
            seconds[pgid] = seconds.get(pgid, 0) + 30
        if moment == 1 and how == "failover":
            assert seconds
            run(session, "sim failover")
    most = 180 if how in ("automatic", "plan") else 240
    assert 2 <= len(seconds) <= 3 and max(seconds.values()) <= most, seconds   # none twice
    assert not withheld(session)
    assert "MGR_EQUILIBRIUM_WITHHELD" in raised
    assert "MGR_EQUILIBRIUM_APPLY_FAILED" not in raised
    session.close()
