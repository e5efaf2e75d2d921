"""`explain`: why the cluster is not better balanced, in sentences and as JSON."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from ...execution.guards import blocked_pool_reasons
from ...execution.size_check.size_corrections import sentence
from ...observation.cluster_view import ClusterView
from ...observation.refusals import fullest_osds
from ...planner.rule_repair import broken_pgs
from ...runtime.formatting import format_duration, format_percent, named, plural, wrap
from ..cluster.osds import held_json, held_sentences
from ..command_answer import CommandAnswer
from .advice import advice_for
from .facts import (
    SAME, Facts, describe_bound, explain_osd, explain_pg, explain_pool, set_json, set_of,
    utilization_now)
from .outage import find_outage, unused_hosts
from .reason import ExplainContext
from .reasons import cluster_reason, osd_reason, pg_reason, pool_reason

#: Device classes, pools and the like that a sentence names; it counts the rest.
_NAMES_SHOWN = 10


def explain(what: Optional[str], context: ExplainContext,
            age_seconds: float) -> Optional[CommandAnswer]:
    """Explains the cluster, or the OSD, pool or PG named `what`; None where there is none. A pool
    may have a number as its name; `osd.` in front names the OSD. `age_seconds`: of the view."""
    view, snapshot = context.view, context.snapshot
    stopped = {pool: sentence(found, snapshot.pools[pool].name)   # and how to have them moved again
               for pool, found in context.status.mispredicted.items() if pool in snapshot.pools}
    pool = next((one for one in snapshot.pools.values() if one.name == what), None)
    osd = _osd_number(what or "", view)
    if not what:
        fullest = fullest_osds(view, context.settings.device_classes)
        osd_set = fullest[0].osd_set if fullest else None
        reason, (data, sentences) = cluster_reason(context), _cluster_facts(context, stopped)
    elif osd is not None and (pool is None or what.startswith("osd.")):
        osd_set = set_of(osd, view)
        reason = osd_reason(snapshot.osds[osd], osd_set, context)
        data, sentences = explain_osd(osd, view)
    elif pool is not None:
        soon, now = view.usage.pools[pool.name], view.usage_now().pools[pool.name]
        osd_set = None if soon.limiting_osd is None else set_of(soon.limiting_osd, view)
        reason = pool_reason(pool, now, soon, osd_set, context)
        data, sentences = explain_pool(pool, view, now, context.settings.pool_ids,
                                       stopped.get(pool.id))
    elif what.lower() in snapshot.pgs:
        pg, osd_set = snapshot.pgs[what.lower()], None
        reason, (data, sentences) = pg_reason(pg, context), explain_pg(pg, view, context.rejected)
    else:
        return None
    advice = advice_for(osd_set, reason, context) if osd_set is not None else []
    outage = None if what else find_outage(context.status, view)
    if outage is not None:
        reason = reason._replace(action=outage.action, outage=outage.sentence)
        data["outage"] = outage._asdict()
    data.update({"osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds,
                 "stale_osds": sorted(snapshot.stale_osds), **reason.to_json(),
                 "advice": advice, "sentences": sentences})
    lines = reason.lines()
    for one in advice:
        lines += wrap("advice: ", one["sentence"], 8)
    silent = len(snapshot.stale_osds)
    lines.append(f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}"
                 + (f"; {plural(silent, 'OSD')} with older statistics" if silent else ""))
    for said in sentences:
        lines += wrap("- ", said, 2)
    return CommandAnswer(data, "\n".join(lines))


def _osd_number(text: str, view: ClusterView) -> Optional[int]:
    text = text[len("osd."):] if text.startswith("osd.") else text
    # Python refuses to read thousands of digits
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    return number if number in view.snapshot.osds else None


def _cluster_facts(context: ExplainContext, stopped: Dict[int, str]) -> Facts:
    view, snapshot = context.view, context.snapshot
    sets, said = _sets(view)
    unused = unused_hosts(snapshot)
    unusable = Counter(reason for reason in (
        osd.unusable_reason() for osd in snapshot.osds.values()) if reason)
    troubled = sorted(set(blocked_pool_reasons(snapshot).values()))
    broken = [pg.pgid for pg in broken_pgs(snapshot)]
    sentences = [host["sentence"] for host in unused] + said + [
        entry.sentence() for entry in view.too_full] + _limited(context)
    sentences += [reason for _, reason in sorted(stopped.items())]
    sentences += [f"pools wait: {reason}" for reason in troubled]
    sentences += [f"{plural(count, 'PG')} cannot be moved: {reason}"
                  for reason, count in sorted(snapshot.skipped.items())]
    if broken:
        sentences.append(f"upmap items break the CRUSH rule of {plural(len(broken), 'PG')}:"
                         f" {named(broken, _NAMES_SHOWN)}; 'ceph equilibrium optimize NAME"
                         " --repair' makes a plan that mends them")
    sentences += held_sentences(snapshot)
    sentences += [f"{plural(count, 'OSD')} can take no shards: {reason}"
                  for reason, count in sorted(unusable.items())]
    if context.rejected:
        sentences.append(f"{plural(len(context.rejected), 'PG')} not moved because the"
                         " monitor did not keep the upmap items")
    if view.movements:
        sentences.append(f"{plural(len(view.movements), 'shard')} in flight")
    return {"state": context.status.state, "reason": context.status.reason, "sets": sets,
            "skipped_pgs": dict(snapshot.skipped), "unusable_osds": dict(unusable),
            "held_osds": held_json(snapshot), "broken_pgs": broken,
            "mispredicted": [stopped[pool] for pool in sorted(stopped)],
            "troubled": troubled, "rejected_upmaps": len(context.rejected),
            "in_flight_moves": len(view.movements), "outage": None, "unused_hosts": unused,
            "too_full": [entry.to_json(snapshot.full_ratio) for entry in view.too_full]}, sentences


def _sets(view: ClusterView) -> Tuple[List[Dict[str, Any]], List[str]]:
    """Facts and sentences about each set of OSDs between which data can move."""
    if view.utilization_bounds is None:
        return [], ["how even the cluster could be is not known; the mgr log tells why"]
    if not view.utilization_bounds.sets:
        return [], ["no pool has data that could be placed otherwise"]
    found: List[Dict[str, Any]] = []
    sentences: List[str] = []
    for osd_set in view.utilization_bounds.sets:
        (most, first), (soon_most, soon_first) = (
            max((utilization, -osd) for osd, utilization in utilizations)
            for utilizations in ([(osd, utilization_now(osd, view)) for osd in osd_set.osds], [
                (osd, view.snapshot.osds[osd].target_utilization or 0.0) for osd in osd_set.osds]))
        above = most - osd_set.bound
        found.append(dict(set_json(osd_set, view.snapshot), fullest_osd=-first, max=most,
                          above_bound=above, soon_fullest_osd=-soon_first, soon_max=soon_most))
        distance = (f"{100.0 * above:.1f} points above that" if above >= SAME
                    else "as low as can be")
        sentences += [describe_bound(osd_set, view.snapshot),
                      f"osd.{-first}, the fullest there, is at {format_percent(most)}%, {distance}"]
        if abs(soon_most - most) >= SAME:
            sentences.append(f"when all has arrived the fullest there is osd.{-soon_first}, at"
                             f" {format_percent(soon_most)}%")
    return found, sentences


def _limited(context: ExplainContext) -> List[str]:
    """The options that limit balancing."""
    settings, pools = context.settings, context.snapshot.pools
    chosen = settings.pool_ids
    limits = [("limited to pools", None if chosen is None else [
        pools[pool].name for pool in sorted(chosen) if pool in pools])]
    limits += [(what, None if names is None else sorted(names)) for what, names in (
        ("limited to device classes", settings.device_classes),
        ("limited to moves off", settings.from_buckets),
        ("limited to moves to", settings.to_buckets), ("sparing", settings.not_buckets))]
    return [f"balancing is {what}: {named(names, _NAMES_SHOWN) or 'none that is there'}"
            for what, names in limits if names is not None]
