"""Upmap items that other tools have made, legal or not: the module tidies up, and then rests."""
from __future__ import annotations

import random
from pathlib import Path
from typing import Dict, Optional


from mgr_stub.console.session import Session
from mgr_stub.crush.hashes import NONE
from mgr_stub.osdmap.osd_map import MapChange
from mgr_stub.osdmap.upmap import Items

from . import clusters
from .drive import watched

_DAY = 86400.0


def made_by_others(session: Session, rng: random.Random) -> None:
    """Some PGs get pairs: within the rule and against it, and without effect."""
    cluster = session.cluster
    osds = sorted(cluster.map.osds)
    items: Dict[str, Optional[Items]] = {}
    for pgid, pg in sorted(cluster.pgs.items()):
        if pg.raw is None or rng.random() > 0.3:
            continue
        sources = [osd for osd in pg.raw if osd != NONE]
        rng.shuffle(sources)
        pairs = [(source, rng.choice(osds)) for source in sources[:rng.choice((1, 1, 2, 9))]]
        if rng.random() < 0.1:
            pairs.append((rng.choice(osds), rng.choice(osds)))
        pairs = [pair for pair in pairs if pair[0] != pair[1]][:cluster.size_of(pg)]
        items[pgid] = tuple(pairs) or None
    session.simulation.apply_change(MapChange(upmap_items=items))


def test_it_comes_to_rest(any_upmaps_seed: int, tmp_path: Path) -> None:
    session = clusters.session_of("random", any_upmaps_seed, tmp_path)
    session.command("config set mgr mgr/equilibrium/sleep_interval 600")
    session.command("sim backfill rate 1G")
    made_by_others(session, random.Random(f"upmaps {any_upmaps_seed}"))
    watch = watched(session)
    session.command("equilibrium on")
    session.host.run_for(_DAY)
    sent = watch.judge.sent
    session.host.run_for(_DAY)
    assert watch.judge.sent == sent
    assert not watch.broken
    assert session.module.balancer.status.state in ("balanced", "stuck", "throttled")
