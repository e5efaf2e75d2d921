"""What stays where it is: how much, for which reason, and what an operator can do about it."""
from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, List

from ...execution.guards import blocked_pool_reasons
from ...execution.size_check.size_corrections import sentence
from ...runtime.formatting import plural
from ...snapshot import reason_codes as codes
from ...snapshot.model import BEING_DRAINED
from ...snapshot.operator_weights import BY_REWEIGHT, held_sentence
from ...snapshot.reason_codes import action
from .markup import LEFT, Html, paragraph, section, table
from .facts.sources import PageFacts

#: PGs, pools or OSDs that have a row of their own for one kind of reason.
_MOST_ROWS = 10


def staying_section(facts: PageFacts) -> Html:
    """One row for each reason."""
    rows = [*_options(facts), *_pgs(facts), *_pools(facts), *_osds(facts)]
    if not rows:
        return section("What stays, and why", paragraph(
            "Nothing is left out: every PG may be moved, and every OSD may take shards."))
    return section("What stays, and why", table(
        "What stays, and why", ["WHAT", "WHY", "WHAT TO DO"], [LEFT, "text", "text"], rows,
        facts.checkpoint))


def _options(facts: PageFacts) -> Iterator[List[str]]:
    settings, snapshot = facts.sources.settings, facts.view.snapshot
    if settings.pool_ids is not None:
        others = len(set(snapshot.pools) - settings.pool_ids)
        if others:
            yield [plural(others, "pool"), "the option pool_ids leaves them out",
                   action(codes.POOL_EXCLUDED, {"option": "pool_ids"})]
    if settings.device_classes is not None:
        count = sum(1 for osd in snapshot.osds.values()
                    if osd.device_class not in settings.device_classes)
        if count:
            yield [plural(count, "OSD"), "the option device_classes leaves them out",
                   action(codes.POOL_EXCLUDED, {"option": "device_classes"})]
    for option in ("from_buckets", "to_buckets", "not_buckets"):
        names = getattr(settings, option)
        if names is not None:
            yield [", ".join(sorted(names)), f"the option {option}",
                   action(codes.OSD_EXCLUDED, {"option": option})]


def _pgs(facts: PageFacts) -> Iterator[List[str]]:
    snapshot = facts.view.snapshot
    for reason, count in sorted(snapshot.skipped.items(), key=lambda item: (-item[1], item[0])):
        pools = [pool.name for pool in snapshot.pools.values() if pool.immovable == reason]
        yield [plural(count, "PG"), reason, reason.action(
            "PGID", pools[0] if len(pools) == 1 else "POOL")]
    rejected = facts.sources.status.rejected
    reasons = Counter(item.reason for item in rejected.values())
    for said, count in reasons.most_common(_MOST_ROWS):
        yield [plural(count, "PG"), f"the monitor did not keep their upmap items: {said}",
               action(codes.REJECTED, {})]


def _pools(facts: PageFacts) -> Iterator[List[str]]:
    snapshot = facts.view.snapshot
    for pool_id, found in sorted(facts.sources.status.mispredicted.items()):
        pool = snapshot.pools.get(pool_id)
        if pool is not None:
            yield [f"pool {pool.name}", sentence(found, pool.name),
                   action(codes.MISPREDICTED, {"pool": pool.name})]
    blocked = Counter(blocked_pool_reasons(snapshot).values())
    for reason, count in blocked.most_common(_MOST_ROWS):
        yield [f"{plural(count, 'pool')}, for now", reason, action(codes.DEGRADED, {})]


def _osds(facts: PageFacts) -> Iterator[List[str]]:
    snapshot = facts.view.snapshot
    unusable: Dict[str, List[int]] = {}
    for osd in snapshot.osds.values():
        reason = osd.unusable_reason()
        if reason is not None:
            unusable.setdefault(reason, []).append(osd.id)
    for reason, osds in sorted(unusable.items()):
        code = codes.CANNOT_LEAVE if reason == BEING_DRAINED else codes.TARGET_UNAVAILABLE
        yield [_named(osds), f"{reason}: can take no shards",
               action(code, {"osd": osds[0]} if len(osds) == 1 else {})]
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    for osd in held[:_MOST_ROWS]:
        yield [f"osd.{osd.id}", held_sentence(osd), action(
            codes.REWEIGHT, {"osd": osd.id} if osd.held_by == BY_REWEIGHT else {})]
    if len(held) > _MOST_ROWS:
        yield [plural(len(held) - _MOST_ROWS, "more OSD", "more OSDs"),
               "weights hold them to a share of their size", action(codes.REWEIGHT, {})]


def _named(osds: List[int]) -> str:
    shown = ", ".join(f"osd.{osd}" for osd in sorted(osds)[:_MOST_ROWS])
    more = len(osds) - _MOST_ROWS
    return f"{shown} and {more} more" if more > 0 else shown
