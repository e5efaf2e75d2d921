"""States which OSDs equilibrium chose for a PG, in flight or arrived, whose shards Ceph copied
anyway (planner/steering.py), and why it chose no others."""
from __future__ import annotations

from typing import List

from ...plan.model import STEER
from ...runtime.formatting import format_time
from ...snapshot.model import Pg
from ...snapshot.upmap_items import apply_items
from .context import ExplainContext


def steering_sentences(pg: Pg, context: ExplainContext) -> List[str]:
    """Returns the OSDs that equilibrium chose for a PG, and why it left the PG to CRUSH."""
    pgid = pg.pgid
    snapshot = context.snapshot
    unexplained = set(snapshot.items_of(pgid))
    sentences: List[str] = []
    for row in context.rows_of(pgid, STEER):
        former = apply_items(row.raw, row.before, snapshot.is_out)
        new = unexplained.intersection(row.after).difference(row.before)
        unexplained -= new
        since = f"(equilibrium, {format_time(row.at)} UTC)"
        for source, target in sorted(new):
            if source in row.raw:   # else it has no effect
                other = former[row.raw.index(source)]
                said = _chosen_sentence(pg, target, target in row.held, other)
                sentences.append(f"{said} {since}")
    steered = context.status.steered
    if steered and pg.is_moving and pgid in steered.left_alone:
        sentences.append("Ceph copies it to the OSDs that CRUSH chose:"
                         f" {steered.left_alone[pgid]}")
    return sentences


def _chosen_sentence(pg: Pg, target: int, is_held: bool, other: int) -> str:
    """Says that a shard is on the target and not on the other OSD."""
    osd = f"osd.{target}"
    anyway = f"to osd.{other}, where Ceph would have copied it"
    if is_held:
        return f"a shard was held on {osd}, where its data is, and did not go {anyway}"
    verb = "went"
    if target not in pg.holders:
        verb = "goes"
    return f"a shard {verb} to {osd}, where there was more room, and not {anyway}"
