"""The rules that one move has to keep, each as what is wrong with it, or nothing.

S1 the up set keeps its rule, S2 targets can take, S3 no target passes its fill limit, S5 shards
moving to and from an OSD, S6 one change per PG and its cooldown, S7 well-formed items, S9 nothing
outside `pool_ids`, `device_classes` and the OSDs that `from_buckets`, `to_buckets` and
`not_buckets` leave, S13 the monitor would keep the items as they are sent.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Callable, Dict, Iterator, Set

from tests.oracle.strict_rule import StrictRules

from mgr_stub.crush.hashes import NONE
from mgr_stub.osdmap.crush_map import CrushMap

from ..watch import cluster_view
from .moment import Moment
from .under_way import Outgoing, circles

#: Rounding, as a ratio.
_SLACK = 1e-6
#: The store keeps whole seconds of when a PG was moved.
_SECOND = 1.0


class History:
    """pgid → our last command that the monitor has done."""

    def __init__(self) -> None:
        self._last: Dict[str, Outgoing] = {}
        self._made_way: Set[str] = set()

    def add(self, move: Outgoing) -> None:
        self._last[move.pgid] = move
        self._made_way.discard(move.pgid)

    def end(self, move: Outgoing, moment: Moment) -> None:
        """A command that leaves the PG's data where it is: nothing has been copied before it makes
        way for steps of pg_num."""
        transfers = move.pg.transfers.values()
        is_begun = any(one.copied for one in transfers)
        if moment.splitting and transfers and not is_begun:
            self._made_way.add(move.pgid)

    def seconds_since(self, moment: Moment, pgid: str) -> float:
        """By the wall clock, or by the virtual one where that was set back; infinite where it was
        never moved."""
        if pgid in self._made_way and not moment.splitting:
            return float("inf")
        last = self._last.get(pgid)
        if last is None or last.entry.returncode != 0:
            return float("inf")
        if not last.gains or not last.entry.kept:
            return float("inf")
        return max(moment.cluster.clock() - last.sent_at,
                   moment.session.clock.now - last.entry.sent_at)


@lru_cache(maxsize=2)
def strict_rules(crush: CrushMap) -> StrictRules:
    return StrictRules(crush.as_dump())


def s1_rule(moment: Moment, move: Outgoing) -> Iterator[str]:
    cluster = moment.cluster
    found = cluster.map.pools[move.pg.pool_id]
    wrong = strict_rules(cluster.crush).fault(int(found["crush_rule"]), int(found["size"]),
                                           move.pg.raw or (), move.up_after)
    if wrong:
        yield f"is sent to {move.up_after}: {wrong}"
    view = moment.session.module.balancer.status.view
    pool = view.snapshot.pools.get(move.pg.pool_id) if view is not None else None
    if pool is None or pool.rule is None:
        return
    reason = pool.rule.violation(move.up_after)
    if reason:
        yield f"is sent to {move.up_after}: {reason}"


def s2_targets(moment: Moment, move: Outgoing) -> Iterator[str]:
    cluster = moment.cluster
    if len(move.up_after) != cluster.size_of(move.pg) or NONE in move.up_after:
        yield f"is moved while a shard has no OSD: {move.up_after}"
    for osd in move.gains:
        if not cluster_view.may_take(cluster, osd):
            yield f"goes to osd.{osd}, which is down or out"
        if osd in moment.drained:
            yield f"goes to osd.{osd}, which is being drained"


def s3_fill(moment: Moment, move: Outgoing) -> Iterator[str]:
    cluster = moment.cluster
    peaks = cluster_view.peaks(cluster, moment.ours)
    limit = cluster_view.fill_limit(cluster)
    if moment.settings.fill_limit > 0.0:
        limit = min(limit, moment.settings.fill_limit)
    for osd in move.gains:
        level = peaks[osd] / cluster.usage[osd].total
        if level > limit * (1.0 + moment.reports.noise) + _SLACK:
            yield f"may fill osd.{osd} to {level:.4f} of {limit:.4f}"


def s5_backfills(moment: Moment, move: Outgoing) -> Iterator[str]:
    if move.redirects:
        return   # Ceph has begun it
    most = moment.settings.max_backfills_per_osd
    directions = cluster_view.transit(moment.cluster, moment.ours)
    if not most:
        return
    # one that is too full may give all that it has too much
    leaving = [osd for osd in move.losses if not moment.is_emergency(osd)]
    for osds, moving, words in ((move.gains, directions[0], "coming to"),
                                (leaving, directions[1], "leaving")):
        for osd in osds:
            count = sum(other == osd for _, other in moving)
            if count > most:
                yield f"makes it {count} shards {words} osd.{osd}, at most {most} may"


def s6_once(moment: Moment, move: Outgoing, history: History) -> Iterator[str]:
    earlier = moment.ours.moves.get(move.pgid)
    if move.moves_nothing or move.redirects:
        return
    if earlier is not None:
        if earlier.items != move.items:
            yield "is moved again before it has arrived"
        return  # the same once more: the answer to the first was lost
    if move.restores:
        return  # somebody has asked for it
    cooldown = moment.settings.pg_cooldown - _SECOND
    seconds = history.seconds_since(moment, move.pgid)
    nearfull = moment.cluster.map.ratio("nearfull_ratio")
    may_leave = any(osd in moment.drained or moment.is_full(osd, nearfull) for osd in move.losses)
    if seconds < cooldown and not may_leave:
        yield f"is moved again after {int(seconds)} s"


def s7_items(moment: Moment, move: Outgoing) -> Iterator[str]:
    items, raw = move.items, move.raw
    if not items and not move.had:
        yield "has no items that could be removed"
    if len(items) > moment.cluster.size_of(move.pg):
        yield f"gets {len(items)} pairs, more than it has shards"
    sources, targets = [pair[0] for pair in items], [pair[1] for pair in items]
    is_twice = len(set(sources)) < len(sources) or len(set(targets)) < len(targets)
    if is_twice and not circles(raw, move.up_after):
        yield f"has an OSD in two pairs: {items}"
    present = set(raw)   # pairs apply in their order: one may take what another has left
    for source, target in items:
        if source not in raw:
            yield f"moves from osd.{source}, which CRUSH did not choose: {raw}"
        if (source not in present or target in present) and not move.restores:
            yield f"moves from osd.{source} to osd.{target}, which Ceph skips: {raw}, {items}"
        present = present - {source} | {target}
    is_idle = move.up_before == move.up_after and len(items) >= len(move.had)
    if is_idle or items == move.had:
        yield f"is sent what changes nothing: {items}"


def s9_scope(moment: Moment, move: Outgoing) -> Iterator[str]:
    settings = moment.settings
    if not moment.automatic or moment.drains:
        return  # a named plan has the scope of its making, a drain that of its OSDs
    if settings.pool_ids is not None and move.pg.pool_id not in settings.pool_ids:
        yield "is moved, and its pool is not in pool_ids"
    for osd in move.gains + move.losses:
        name, wanted = cluster_view.class_of(moment.cluster, osd), settings.device_classes
        if wanted is not None and name not in wanted:
            yield f"moves on osd.{osd}, whose class is not in device_classes"
    yield from _outside_buckets(moment, move)


def _outside_buckets(moment: Moment, move: Outgoing) -> Iterator[str]:
    """OSDs that from_buckets, to_buckets and not_buckets forbid, by the simulated CRUSH tree."""
    settings, crush = moment.settings, moment.cluster.crush
    for osds, only, option in ((move.losses, settings.from_buckets, "from_buckets"),
                               (move.gains, settings.to_buckets, "to_buckets")):
        for osd in osds:
            names = _names_above(crush, osd)
            if only is not None and not names & only:
                yield f"moves on osd.{osd}, which is not in {option}"
            if settings.not_buckets is not None and names & settings.not_buckets:
                yield f"moves on osd.{osd}, which not_buckets spares"


def _names_above(crush: CrushMap, osd: int) -> Set[str]:
    """The names by which an option can name an OSD: its own, and those of buckets above it."""
    names = {f"osd.{osd}", str(osd)}
    return names.union(bucket["name"] for number, bucket in crush.buckets.items()
                       if osd in crush.weights_below(number))


def s13_kept(moment: Moment, move: Outgoing) -> Iterator[str]:
    kept = cluster_view.kept(moment.cluster, move.pg, move.items)
    if kept != move.items:
        yield f"is sent {move.items}, of which the monitor would keep {kept}"


#: Looked at with the move among those under way.
OF_ONE_MOVE: Dict[str, Callable[[Moment, Outgoing], Iterator[str]]] = {
    "S1": s1_rule, "S2": s2_targets, "S3": s3_fill, "S5": s5_backfills, "S7": s7_items,
    "S9": s9_scope, "S13": s13_kept}
