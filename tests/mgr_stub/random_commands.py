"""Random command lines for a simulated cluster."""

from __future__ import annotations

import random

from mgr_stub.console.session import Session

FLAGS = ("norebalance", "nobackfill", "norecover", "noscrub")
"""Those that stop backfills, and one that does not."""
LINES = """
sim osd {change} {osd}
sim osd up {osd}
sim osd in {osd}
sim osd reweight {osd} {part:.2f}
sim osd crush-reweight {osd} {weight:.2f}
sim osd lose {osd}
sim write {pool} {size}G
sim delete {pool} {size}G
sim grow {pool} {few}G/1h
sim pool pg_num {pool} {pg_num}
sim pool create new{osd} pg_num=8 size=3 rule=firstn
sim pool rm {made}
sim scrub {pgid} 90s
sim flag set {flag}
sim flag unset {flag}
sim osd full-ratios 0.3 {ratio:.2f} 0.95
sim stats lag {osd}m
osd pg-upmap-items {pgid} {first} {other}
osd pg-upmap-items {pgid} {last} {other}
osd rm-pg-upmap-items {pgid}
osd rm-pg-upmap-items {moved}
config set osd osd_max_backfills {slots}
""".strip().splitlines()


def next_line(session: Session, rng: random.Random) -> str:
    """A random event; the command may be rejected."""
    cluster = session.cluster
    osds, pgid = sorted(cluster.map.osds), rng.choice(sorted(cluster.pgs))
    up = cluster.map.up[pgid]
    pools = [str(pool["pool_name"]) for pool in cluster.map.pools.values()]
    return rng.choice(LINES).format(
        change=rng.choice(("out", "in", "down", "up")),
        osd=rng.choice(osds),
        other=rng.choice(osds),
        part=rng.random(),
        weight=rng.uniform(0.5, 1.5),
        ratio=rng.uniform(0.3, 0.9),
        pool=rng.choice(pools),
        made=max(name for name in ["new", *pools] if name.startswith("new")),
        size=rng.randrange(1, 30),
        few=rng.randrange(9),
        slots=rng.randrange(1, 4),
        pg_num=rng.choice((8, 16, 24, 32, 48)),
        flag=rng.choice(FLAGS),
        pgid=pgid,
        first=up[0],
        last=up[-1],
        moved=max(cluster.map.upmap_items, default=pgid))


def any_line(session: Session, rng: random.Random) -> str:
    """An event, or a `sim run` of a fraction of a peering up to several backfills."""
    if rng.random() < 0.5:
        return next_line(session, rng)
    return f"sim run {rng.choice((0.3, 1, 5, 40, 300, 1800))}s"
