"""Random command lines for a simulated cluster."""

from __future__ import annotations

import random
from typing import List

from mgr_stub.console.session import Session

#: Flags that stop backfills, and one that does not.
_FLAGS = ("norebalance", "nobackfill", "norecover", "noscrub")


def next_line(session: Session, rng: random.Random) -> str:
    """A random event; the command may be rejected."""
    cluster = session.cluster
    osd, pgid = rng.choice(sorted(cluster.map.osds)), rng.choice(sorted(cluster.pgs))
    other = rng.choice(sorted(cluster.map.osds))
    pool = rng.choice([str(pool["pool_name"]) for pool in cluster.map.pools.values()])
    lines: List[str] = [
        f"sim osd {rng.choice(('out', 'in', 'down', 'up'))} {osd}", f"sim osd up {osd}",
        f"sim osd in {osd}", f"sim osd reweight {osd} {rng.random():.2f}",
        f"sim osd crush-reweight {osd} {rng.uniform(0.5, 1.5):.2f}", f"sim osd lose {osd}",
        f"sim write {pool} {rng.randrange(1, 30)}G", f"sim delete {pool} {rng.randrange(1, 30)}G",
        f"sim grow {pool} {rng.randrange(0, 9)}G/1h",
        f"sim pool pg_num {pool} {rng.choice((8, 16, 24, 32, 48))}", f"sim scrub {pgid} 90s",
        f"osd pg-upmap-items {pgid} {cluster.map.up[pgid][0]} {other}",
        f"osd pg-upmap-items {pgid} {cluster.map.up[pgid][-1]} {other}",
        f"osd rm-pg-upmap-items {pgid}", f"sim flag set {rng.choice(_FLAGS)}",
        f"sim flag unset {rng.choice(_FLAGS)}", f"config set osd osd_max_backfills {osd % 3 + 1}",
        f"sim osd full-ratios 0.3 {rng.uniform(0.3, 0.9):.2f} 0.95", f"sim stats lag {osd}m",
        f"sim pool create new{osd} pg_num=8 size=3 rule=firstn"]
    if pool.startswith("new"):
        lines.append(f"sim pool rm {pool}")
    return rng.choice(lines)


def any_line(session: Session, rng: random.Random) -> str:
    """An event, or a `sim run` of a fraction of a peering up to several backfills."""
    if rng.random() < 0.5:
        return next_line(session, rng)
    return f"sim run {rng.choice((0.3, 1, 5, 40, 300, 1800))}s"
