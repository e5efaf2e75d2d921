"""Counts why no shard of an OSD moves to another one: part of `explain` where nothing improves."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional

from ...execution.rejections import Items
from ...plan.options import effective_fill_limit
from ...plan.weight_shares import share_limits
from ...runtime.time_slice import TimeSlice
from ...settings import Settings
from ...snapshot.model import Osd, Pg, Snapshot

FILL_LIMIT, SHARE, PRESENT, RULE, NO_GAIN = "fill_limit", "share", "present", "rule", "no_gain"
_OBSTACLES = {
    FILL_LIMIT: "would fill an OSD beyond {fill_limit:.4f} (fill_limit)",
    SHARE: "would fill an OSD beyond the share that its weights hold it to",
    PRESENT: "lead to an OSD that has a shard of the PG",
    RULE: "are not what the CRUSH rule could place",
    NO_GAIN: "are allowed, but gain too little or nothing"}
#: About this many ways are counted at most: this runs in the thread of the commands.
_MOST_WAYS = 50_000


def refusals(osd: int, snapshot: Snapshot, settings: Settings, rejected: Items) -> Dict[str, Any]:
    """JSON-ready counts of what keeps the shards of an OSD.

    `kept`: reason → shards that may not move at all. `ways`: obstacle → pairs of another shard and
    an OSD of its rule that can take shards.
    """
    limit = effective_fill_limit(settings.fill_limit, snapshot.backfillfull_ratio)
    shares = share_limits(snapshot) if settings.respect_weights else {}
    kept: Counter[str] = Counter()
    ways: Counter[str] = Counter()
    checkpoint, shards, counted = TimeSlice(), 0, 0
    for pg in snapshot.pgs.values():
        checkpoint()
        if osd not in pg.up:
            continue
        shards += 1
        stays = _reason_to_stay(pg, snapshot, settings, rejected)
        if stays is not None:
            kept[stays] += 1
        elif counted < _MOST_WAYS:
            found = [_obstacle(pg, pg.up.index(osd), target, snapshot, limit, shares.get(target.id))
                     for target in _targets(pg, osd, snapshot)]
            ways.update(found)
            counted += len(found)
    return {"osd": osd, "shards": shards, "kept": dict(kept), "ways": dict(ways),
            "fill_limit": limit}


def refusal_sentences(data: Dict[str, Any]) -> List[str]:
    """The counts as sentences, the most frequent first."""
    sentences = [f"{count} of the {data['shards']} shards on osd.{data['osd']} stay: {reason}"
                 for reason, count in Counter(data["kept"]).most_common()]
    tried = sum(data["ways"].values())
    for reason, count in Counter(data["ways"]).most_common():
        sentences.append(f"{count} of {tried} ways for a shard of osd.{data['osd']} to another OSD"
                         f" {_OBSTACLES[reason].format(fill_limit=data['fill_limit'])}")
    return sentences


def _reason_to_stay(pg: Pg, snapshot: Snapshot, settings: Settings,
                    rejected: Items) -> Optional[str]:
    pool = snapshot.pools[pg.pool]
    if settings.pool_ids is not None and pg.pool not in settings.pool_ids:
        return "pool_ids leaves out their pools"
    if pool.immovable or pg.immovable or pool.rule is None:
        return pool.immovable or pg.immovable or "their CRUSH rule is not understood"
    return "the monitor did not keep their upmaps" if pg.pgid in rejected else None


def _targets(pg: Pg, osd: int, snapshot: Snapshot) -> List[Osd]:
    rule = snapshot.pools[pg.pool].rule
    assert rule is not None
    found = (snapshot.osds.get(other) for other in rule.block_at(pg.up.index(osd)).weights
             if other != osd)
    return [target for target in found if target is not None and target.unusable_reason() is None]


def _obstacle(pg: Pg, position: int, target: Osd, snapshot: Snapshot, fill_limit: float,
             share_bytes: Optional[int]) -> str:
    rule, filled = snapshot.pools[pg.pool].rule, target.target_bytes + pg.shard_bytes
    assert rule is not None
    if target.id in pg.up:
        return PRESENT
    if not rule.allows(pg.up, position, target.id):
        return RULE
    if filled > fill_limit * target.size_bytes:
        return FILL_LIMIT
    return SHARE if share_bytes is not None and filled > share_bytes else NO_GAIN
