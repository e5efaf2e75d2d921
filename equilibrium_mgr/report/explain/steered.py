"""States which OSDs equilibrium chose for a PG, in flight or arrived, whose shards Ceph copied
anyway (planner/steering.py), and why it chose no others."""
from __future__ import annotations

from typing import Any, Dict, List

from ...plan.model import STEER
from ...runtime.formatting import format_time
from ...snapshot.model import Pg
from ...undo.change_log import ChangeRow
from .context import ExplainContext
from .facts import Facts


def steering_facts(pg: Pg, context: ExplainContext) -> Facts:
    """Returns the OSDs that equilibrium chose for a PG, and why it left the PG to CRUSH."""
    pgid = pg.pgid
    unexplained = set(context.snapshot.items_of(pgid))
    chosen: List[Dict[str, Any]] = []
    for row in context.rows_of(pgid, STEER):
        for pair in row.after:
            if pair in unexplained and pair not in row.before:
                unexplained.remove(pair)
                chosen.append(_choice(row, *pair))
    sentences = [_chosen_sentence(one, pg) for one in chosen]
    why = None
    steered = context.status.steered
    if steered and pg.is_moving:
        why = steered.left_alone.get(pgid)
    if why is not None:
        sentences.append(f"Ceph copies it to the OSDs that CRUSH chose: {why}")
    return {"steered": chosen, "not_steered": why}, sentences


def _choice(row: ChangeRow, source: int, target: int) -> Dict[str, Any]:
    """Returns one choice, JSON-ready. `source`, `target`: a pair of upmap items of the row."""
    return {
        "osd": target,
        "instead_of": dict(row.before).get(source, source),
        "is_held": target in row.held,
        "at": row.at}


def _chosen_sentence(one: Dict[str, Any], pg: Pg) -> str:
    osd = f"osd.{one['osd']}"
    anyway = f"to osd.{one['instead_of']}, where Ceph would have copied it"
    since = f"(equilibrium, {format_time(one['at'])} UTC)"
    if one["is_held"]:
        return f"a shard was held on {osd}, where its data is, and did not go {anyway} {since}"
    verb = "went"
    if one["osd"] not in pg.holders:
        verb = "goes"
    return f"a shard {verb} to {osd}, where there was more room, and not {anyway} {since}"
