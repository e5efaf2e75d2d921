"""The gain for which an automatic plan is carried out."""
from __future__ import annotations

from typing import Dict, Optional

from ..plan.model import Plan
from ..plan.weight_shares import bytes_beyond_share
from ..runtime.formatting import format_bytes, format_percent
from ..snapshot.model import Pool, Snapshot
from ..snapshot.operator_weights import held_sentence

#: A pool is small that holds less than this ratio of what the OSDs of its rule use.
_SMALL_RATIO = 0.01


def gain_reason(plan: Plan, snapshot: Snapshot, min_gain: float) -> Optional[str]:
    """The gain for which a plan is carried out, as a clause for the history; None where it is too
    small. `min_gain` is a ratio (the option of that name)."""
    if not plan.changes:
        return None
    osds = snapshot.osds
    leaving: Dict[int, int] = {}   # OSD → bytes that leave it less those that come
    for move in plan.moves:
        leaving[move.source] = leaving.get(move.source, 0) + move.bytes
        leaving[move.target] = leaving.get(move.target, 0) - move.bytes
    drained = sorted({move.source for move in plan.moves
                      if move.source in osds and osds[move.source].drained})
    if drained:
        others = f" (and {len(drained) - 1} more)" if len(drained) > 1 else ""
        return f"osd.{drained[0]}{others} is being drained"
    for osd, relieved in sorted(leaving.items()):
        if relieved > 0 and osd in osds and (
                osds[osd].target_utilization or 0.0) > snapshot.nearfull_ratio:
            return f"osd.{osd} is above nearfull"
    for osd, excess in bytes_beyond_share(snapshot).items():
        if min(excess, leaving.get(osd, 0)) >= max(1.0, min_gain * osds[osd].capacity_bytes):
            return f"{held_sentence(osds[osd])} and has more"   # than operators' weights leave it
    for name, before in sorted(plan.before.classes.items()):
        after = plan.after.classes.get(name)
        if after is not None and before.max - after.max >= max(min_gain, 1e-9):
            return (f"the fullest OSD of class {name} can be brought from"
                    f" {format_percent(before.max)}% to {format_percent(after.max)}%")
    small = {pool.name for pool in snapshot.pools.values() if _is_small(pool, snapshot)}
    for name, was in sorted(plan.before.pools.items()):
        becomes = plan.after.pools.get(name)
        if becomes is not None and was.stored_bytes > 0 and name not in small:
            gained = becomes.free_bytes - was.free_bytes
            # of what the pool holds and could hold
            if gained >= max(min_gain * (was.stored_bytes + was.free_bytes), 1.0):
                return f"pool {name} can have {format_bytes(gained)} more"
    return None if min_gain > 0.0 else "there are moves that improve the placement"


def _is_small(pool: Pool, snapshot: Snapshot) -> bool:
    """True for a pool that holds too little to be worth a move, as `.mgr` does."""
    used = sum(snapshot.osds[osd].used_bytes for osd in (pool.rule.osds() if pool.rule else ())
               if osd in snapshot.osds)
    return pool.stored_bytes * pool.size / pool.data_shards < _SMALL_RATIO * used
