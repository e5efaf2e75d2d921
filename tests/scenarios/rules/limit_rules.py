"""The rules of the module's own limits and of what it cannot know; each yields what is wrong.

S2 no target is nearfull, S5 bytes in transit and moves a round, S15 pairs of upmap items in the
map, S16 PG shards per OSD, S17 nothing to or from an OSD that does not report, and no omap on OSDs
too small to report it.
"""
from __future__ import annotations

import sys
from typing import Callable, Dict, Iterator

from mgr_stub.console.session import Session
from tests.support.units import GIB

from ..watch import cluster_view
from .moment import Moment
from .under_way import Outgoing

#: Of an OSD's size: what has been copied is told in whole objects.
_TRANSIT_SLACK = 0.01
#: What an OSD may get to, of the PG shards from which on it withholds PGs.
_HARD_SHARE = 0.8
#: An OSD is silent after this long; it is looked at at least so often while a plan is under way.
_SILENT_SECONDS, _LOOKS_SECONDS = 120.0, 600.0


def s2_nearfull(moment: Moment, move: Outgoing) -> Iterator[str]:
    nearfull = moment.cluster.map.ratio("nearfull_ratio")
    for osd in move.gains:
        if moment.reported_utilization(osd) >= nearfull:
            yield f"goes to osd.{osd}, which is nearfull"


def s5_transit(moment: Moment, move: Outgoing) -> Iterator[str]:
    """Our own moves alone: a single one may pass the share."""
    if move.redirects:
        return
    ratio = moment.settings.max_transit_ratio
    osds = set(move.gains + move.losses)
    alone = not any(osds.intersection(other.gains + other.losses)
                    for other in moment.ours.moves.values() if other is not move)
    if alone or not ratio:
        return
    leaving = [osd for osd in move.losses if not moment.is_emergency(osd)]
    for osds, into in ((move.gains, True), (leaving, False)):
        for osd in osds:
            level = moment.ours.bytes_at(osd, into) / moment.cluster.usage[osd].total
            if level > ratio + _TRANSIT_SLACK:
                yield f"makes it {level:.3f} of osd.{osd} in transit, at most {ratio:.3f} may"


def s5_round(moment: Moment, move: Outgoing) -> Iterator[str]:
    if move.redirects:
        return
    most = moment.settings.max_moves_per_round
    at_once = [other for other in moment.ours.moves.values()
               if other.entry.sent_at == move.entry.sent_at]
    moves = sum(max(len(other.gains), len(other.losses)) for other in at_once)
    if len(at_once) > 1 and moves > most and not any(map(moment.is_emergency, move.losses)):
        yield f"makes it {moves} moves in one round, at most {most} may"


def most_pairs(moment: Moment) -> int:
    """Of upmap items that the option allows; as good as all where it is 0."""
    option, pgs = moment.settings.max_upmap_items, len(moment.cluster.pgs)
    if not option:
        return sys.maxsize
    return max(1, int(option * pgs if option <= 1.0 else option))


def most_shards(session: Session) -> int:
    """Of PGs that an OSD may get."""
    core = session.simulation.config.core
    return int(_HARD_SHARE * float(core("mgr", "mon_max_pg_per_osd"))
               * float(core("mgr", "osd_max_pg_per_osd_hard_ratio")))


def s15_items(moment: Moment, move: Outgoing) -> Iterator[str]:
    if len(move.items) <= len(move.had) or move.moves_nothing:
        return
    items = dict(moment.cluster.map.upmap_items)
    items.update((pgid, other.items) for pgid, other in moment.ours.moves.items()
                 if other.entry.returncode is None)
    pairs, most = sum(map(len, items.values())), most_pairs(moment)
    if pairs > most:
        yield f"makes it {pairs} pairs of upmap items, at most {most} may be"


def s16_shards(moment: Moment, move: Outgoing) -> Iterator[str]:
    most = most_shards(moment.session)
    for osd in move.gains:
        here = moment.pg_shards[osd]
        coming = sum(1 for other in moment.ours.moves.values()
                     if other.entry.returncode is None and osd in other.gains)
        if here + coming > most:
            yield f"makes it {here + coming} PG shards on osd.{osd}, at most {most} may be"


def s17_reports(moment: Moment, move: Outgoing) -> Iterator[str]:
    reports, now = moment.reports, moment.session.clock.now
    if moment.cluster.map.acting_primary(move.pgid) in reports.unreported:
        yield "is moved though nobody has reported it"
    if move.moves_nothing:
        return
    if moment.cluster.release < 18 and move.pg.omap_reported < move.pg.omap_bytes // 2:
        yield "is moved though most of its omap has not been told"
    since = reports.hanging_since
    for osd in move.gains + move.losses:
        if osd in reports.unreported and cluster_view.may_take(moment.cluster, osd):
            yield f"is moved to or from osd.{osd}, which has not reported"
        full_readings = max(_LOOKS_SECONDS, moment.settings.sleep_interval)
        if osd in since and now - max(since[osd], moment.active_since) > (
                _SILENT_SECONDS + 2 * full_readings):
            yield f"is moved to or from osd.{osd}, silent for {int(now - since[osd])} s"


def s17_small(moment: Moment, move: Outgoing) -> Iterator[str]:
    """RocksDB's own files come and go by more than a small OSD's omap."""
    if move.moves_nothing:
        return
    cluster, least = moment.cluster, moment.settings.min_omap_osd_size * GIB
    nearfull = cluster.map.ratio("nearfull_ratio")
    if move.pg.omap_bytes <= move.pg.shard.data or any(
            moment.is_full(osd, nearfull) for osd in move.up_before):
        return
    for osd in move.up_before:
        if cluster.usage[osd].total < least:
            yield f"is moved though most of it is omap, and osd.{osd} is small"


OF_LIMITS: Dict[str, Callable[[Moment, Outgoing], Iterator[str]]] = {
    "S2 nearfull": s2_nearfull, "S5 transit": s5_transit, "S5 round": s5_round,
    "S15": s15_items, "S16": s16_shards, "S17": s17_reports,
    "S17 small": s17_small}
