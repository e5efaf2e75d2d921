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
        for source, target in sorted(new):
            # else it has no effect, or a former item had brought the shard there
            if source in row.raw and target not in former:
                chosen = f"sent to osd.{target}"
                if target in row.held:
                    chosen = f"held on osd.{target}, where its data is"
                sentences.append(
                    f"a shard was {chosen}, and did not go to osd.{former[row.raw.index(source)]},"
                    f" where Ceph would have copied it (equilibrium, {format_time(row.at)} UTC)")
    steered = context.status.steered
    if steered and pg.is_moving and pgid in steered.left_alone:
        sentences.append("Ceph copies it to the OSDs that CRUSH chose:"
                         f" {steered.left_alone[pgid]}")
    return sentences
