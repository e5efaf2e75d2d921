"""The plan that removes needless pairs of upmap items. Every up set stays as it is."""
from __future__ import annotations

from typing import List, Optional, Tuple

from ..plan.kinds import CLEAN_UP
from ..plan.model import PgChange, Plan, Usage
from ..plan.options import AIMS
from ..snapshot.immovable_reasons import OF_MOTION, TRANSIENT
from ..snapshot.model import Pg, Snapshot
from .needless_pairs import GONE, UpmapFindings, find_needless

NotCleaned = List[Tuple[str, str]]   # (pgid, reason)


def cleanup_plan(snapshot: Snapshot) -> Tuple[Plan, NotCleaned, UpmapFindings]:
    """The plan; what has needless pairs and keeps them, with the reason; and all that was found."""
    found = find_needless(snapshot)
    changes: List[PgChange] = []
    not_cleaned: NotCleaned = list(found.unknown)
    for needless in found.needless:
        pg = snapshot.pgs.get(needless.pgid)
        reason = GONE if pg is None else _obstacle(snapshot, pg)
        if reason is not None or pg is None:
            not_cleaned.append((needless.pgid, str(reason)))
        else:
            changes.append(PgChange(pg.pgid, pg.raw, pg.up, pg.up, needless.keeps, 0,
                                    pg.shard_bytes, pg.objects))
    return Plan(epoch=snapshot.epoch, stop_reason="converged", moves=(), changes=tuple(changes),
                before=Usage({}, {}), after=Usage({}, {}), skipped={},
                min_compat_client=snapshot.min_compat_client, aim=AIMS[0], bounds={},
                kind=CLEAN_UP), not_cleaned, found


def _obstacle(snapshot: Snapshot, pg: Pg) -> Optional[str]:
    """Why the monitor may not keep fewer pairs as they are sent, or None: it judges the up set that
    they lead to, and takes all pairs away where that breaks the rule."""
    if pg.immovable is not None and pg.immovable not in OF_MOTION and (
            pg.immovable not in TRANSIENT):
        return pg.immovable
    rule = snapshot.pools[pg.pool].rule
    if rule is None:
        return "the pool's rule is not understood"
    broken = rule.violation(pg.up) or rule.upmap_rejection(pg.up)
    return f"its placement breaks its rule: {broken}" if broken else None
