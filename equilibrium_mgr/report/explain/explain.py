"""`explain`: why the cluster is not better balanced, in sentences and as JSON."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from ...execution.guards import blocked_pool_reasons
from ...execution.size_check.size_corrections import sentence
from ...observation.cluster_view import ClusterView
from ...observation.refusals import fullest_osds
from ...planner.rule_repair import broken_pgs
from ...runtime.formatting import format_duration, format_percent, plural, wrap
from ...snapshot.model import Pool
from ..cluster.osds import held_json, held_sentences
from ..command_answer import CommandAnswer
from .advice import Advice, advice_for
from .facts import (
    Facts, SAME, describe_bound, explain_osd, explain_pg, explain_pool, set_json, set_of,
    utilization_now)
from .outage import find_outage, unused_hosts
from .reason import ExplainContext, Reason
from .reasons import cluster_reason, osd_reason, pg_reason, pool_reason

#: Device classes and pools that a sentence names; it counts the rest.
_NAMES_SHOWN = 10


def explain(what: Optional[str], context: ExplainContext,
            age_seconds: float) -> Optional[CommandAnswer]:
    """Explains the cluster, or the OSD, pool or PG named `what`; None where there is none.
    `age_seconds`: of the view."""
    found = _explain(what, context)
    if found is None:
        return None
    reason, advice, (data, sentences) = found
    snapshot = context.snapshot
    data.update({"osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds,
                 "stale_osds": sorted(snapshot.stale_osds), **reason.to_json(),
                 "advice": [one.to_json() for one in advice], "sentences": sentences})
    lines = reason.lines()
    for one in advice:
        lines += wrap("advice: ", one.sentence, 8)
    lines.append(_age(context, age_seconds))
    for said in sentences:
        lines += wrap("- ", said, 2)
    return CommandAnswer(data, "\n".join(lines))


def _age(context: ExplainContext, age_seconds: float) -> str:
    silent = len(context.snapshot.stale_osds)
    said = f"observed {format_duration(age_seconds)} ago, osdmap e{context.snapshot.epoch}"
    return said + (f"; {plural(silent, 'OSD')} with older statistics" if silent else "")


#: The reason, what else would help, and the rest: JSON-ready facts with sentences.
_Found = Tuple[Reason, List[Advice], Facts]


def _explain(what: Optional[str], context: ExplainContext) -> Optional[_Found]:
    """A pool may have a number as its name; `osd.` in front names the OSD."""
    view, snapshot = context.view, context.view.snapshot
    if not what:
        return _explain_cluster(context)
    if what.startswith("osd."):
        osd = _osd_number(what[len("osd."):], view)
        if osd is not None:
            return _osd(osd, context)
    for pool in snapshot.pools.values():
        if pool.name == what:
            return _pool(pool, context)
    osd = _osd_number(what, view)
    if osd is not None:
        return _osd(osd, context)
    pg = snapshot.pgs.get(what.lower())
    if pg is None:
        return None
    return pg_reason(pg, context), [], explain_pg(pg, view, context.rejected)


def _osd(number: int, context: ExplainContext) -> _Found:
    osd_set = set_of(number, context.view)
    reason = osd_reason(context.snapshot.osds[number], osd_set, context)
    advice = advice_for(osd_set, reason, context) if osd_set is not None else []
    return reason, advice, explain_osd(number, context.view)


def _pool(pool: Pool, context: ExplainContext) -> _Found:
    space, now = context.view.usage.pools[pool.name], context.view.usage_now().pools[pool.name]
    limiting = space.limiting_osd
    osd_set = None if limiting is None else set_of(limiting, context.view)
    reason = pool_reason(pool, now, space, osd_set, context)
    advice = advice_for(osd_set, reason, context) if osd_set is not None else []
    return reason, advice, explain_pool(pool, context.view, now, context.settings.pool_ids,
                                        _stopped(context).get(pool.id))


def _osd_number(text: str, view: ClusterView) -> Optional[int]:
    # Python refuses to read thousands of digits
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if number in view.snapshot.osds else None


def _explain_cluster(context: ExplainContext) -> _Found:
    reason, fullest = cluster_reason(context), fullest_osds(
        context.view, context.settings.device_classes)
    advice = [] if not fullest else advice_for(fullest[0].osd_set, reason, context)
    outage, (data, sentences) = find_outage(context.status, context.view), _cluster_facts(context)
    if outage is not None:
        reason = reason._replace(action=outage.action, outage=outage.sentence)
    unused = unused_hosts(context.snapshot)
    data.update(outage=None if outage is None else outage._asdict(),
                unused_hosts=unused)
    return reason, advice, (data, [host["sentence"] for host in unused] + sentences)


def _cluster_facts(context: ExplainContext) -> Facts:
    view, snapshot = context.view, context.view.snapshot
    sets, sentences = _sets(view)
    unusable = Counter(reason for reason in (
        osd.unusable_reason() for osd in snapshot.osds.values()) if reason)
    troubled = sorted(set(blocked_pool_reasons(snapshot).values()))
    sentences += [entry.sentence() for entry in view.too_full]
    sentences += _limited(context)
    stopped = _stopped(context)
    sentences += [reason for _, reason in sorted(stopped.items())]
    sentences += [f"pools wait: {reason}" for reason in troubled]
    sentences += [f"{plural(count, 'PG')} cannot be moved: {reason}"
                  for reason, count in sorted(snapshot.skipped.items())]
    broken = broken_pgs(snapshot)
    if broken:
        sentences.append(f"upmap items break the CRUSH rule of {plural(len(broken), 'PG')}:"
                         f" {_named(pg.pgid for pg in broken)}; 'ceph equilibrium optimize NAME"
                         " --repair' makes a plan that mends them")
    sentences += held_sentences(snapshot)
    sentences += [f"{plural(count, 'OSD')} can take no shards: {reason}"
                  for reason, count in sorted(unusable.items())]
    if context.rejected:
        sentences.append(f"{plural(len(context.rejected), 'PG')} not moved because the"
                         " monitor did not keep the upmap items")
    if view.in_flight_moves:
        sentences.append(f"{plural(view.in_flight_moves, 'shard')} in flight")
    return {"state": context.status.state, "reason": context.status.reason, "sets": sets,
            "skipped_pgs": dict(snapshot.skipped), "unusable_osds": dict(unusable),
            "held_osds": held_json(snapshot), "broken_pgs": [pg.pgid for pg in broken],
            "mispredicted": [stopped[pool] for pool in sorted(stopped)],
            "troubled": troubled, "rejected_upmaps": len(context.rejected),
            "in_flight_moves": view.in_flight_moves,
            "too_full": [entry.to_json(snapshot.full_ratio) for entry in view.too_full]}, sentences


def _stopped(context: ExplainContext) -> Dict[int, str]:
    """Pool id → why its moves were stopped, with the command that allows them again."""
    pools = context.view.snapshot.pools
    return {pool: sentence(found, pools[pool].name)
            for pool, found in context.status.mispredicted.items() if pool in pools}


def _sets(view: ClusterView) -> Tuple[List[Dict[str, Any]], List[str]]:
    """Facts and sentences about each set of OSDs between which data can move."""
    snapshot = view.snapshot
    if view.utilization_bounds is None:
        return [], ["how even the cluster could be is not known; the mgr log tells why"]
    if not view.utilization_bounds.sets:
        return [], ["no pool has data that could be placed otherwise"]
    found: List[Dict[str, Any]] = []
    sentences: List[str] = []
    for osd_set in view.utilization_bounds.sets:
        fullest, most = _fullest_of({osd: utilization_now(osd, view) for osd in osd_set.osds})
        soon_fullest, soon_most = _fullest_of({
            osd: snapshot.osds[osd].target_utilization or 0.0 for osd in osd_set.osds})
        above = most - osd_set.bound
        found.append(dict(set_json(osd_set, snapshot), fullest_osd=fullest, max=most,
                          above_bound=above, soon_fullest_osd=soon_fullest, soon_max=soon_most))
        distance = (f"{100.0 * above:.1f} points above that" if above >= SAME
                    else "as low as can be")
        sentences += [describe_bound(osd_set, snapshot),
                      f"osd.{fullest}, the fullest there, is at {format_percent(most)}%,"
                      f" {distance}"]
        if abs(soon_most - most) >= SAME:
            sentences.append(f"when all has arrived the fullest there is osd.{soon_fullest}, at"
                             f" {format_percent(soon_most)}%")
    return found, sentences


def _fullest_of(utilizations: Mapping[int, float]) -> Tuple[int, float]:
    """(OSD, utilization) of the fullest one."""
    fullest = max(utilizations, key=lambda osd: (utilizations[osd], -osd))
    return fullest, utilizations[fullest]


def _limited(context: ExplainContext) -> List[str]:
    """The options that limit balancing."""
    sentences: List[str] = []
    if context.settings.pool_ids is not None:
        pools = context.view.snapshot.pools
        names = _named(
            pools[pool].name for pool in sorted(context.settings.pool_ids) if pool in pools)
        sentences.append(f"balancing is limited to pools: {names}")
    if context.settings.device_classes is not None:
        sentences.append("balancing is limited to device classes:"
                         f" {_named(sorted(context.settings.device_classes))}")
    for chosen, what in ((context.settings.from_buckets, "limited to moves off"),
                        (context.settings.to_buckets, "limited to moves to"),
                        (context.settings.not_buckets, "sparing")):
        if chosen is not None:
            sentences.append(f"balancing is {what}: {_named(sorted(chosen))}")
    return sentences


def _named(names: Iterable[str]) -> str:
    known = list(names)
    more = len(known) - _NAMES_SHOWN
    shown = ", ".join(known[:_NAMES_SHOWN]) or "none that is there"
    return f"{shown} and {more} more" if more > 0 else shown
