"""`explain`: why the cluster, an OSD, a pool or a PG is as it is, in sentences and as JSON: the
facts, the one reason, what helps against it, and what would lower a bound that no move can lower.
"""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from ...execution.guards import blocked_pool_reasons
from ...observation.cluster_view import ClusterView
from ...observation.refusals import SAME
from ...plan.options import osd_id
from ...planner.bound.lower_bound import OsdSet
from ...planner.rule_repair import broken_pgs
from ...runtime.formatting import format_duration, format_percent, named, plural, wrap
from ...snapshot import reason_codes as codes
from ...snapshot.model import Pool
from ..answer import CommandAnswer, Row
from ..cluster.cluster_tables import held_sentences
from .advice import weights_advice, with_room
from .context import ExplainContext
from .facts import (
    Facts, describe_bound, explain_osd, explain_pg, explain_pool, set_json, set_of,
    stopped_pools)
from .outage import find_outage, rebuilding_text
from .reasons import Explanation, cluster_reason, osd_reason, pg_reason, pool_reason
from .steered import steering_sentences


#: PGs that a sentence names; it counts the rest.
_MOST_NAMES = 10


def explain(what: Optional[str], pool_name: Optional[str], context: ExplainContext,
            age_seconds: float) -> Optional[CommandAnswer]:
    """Explains the cluster, or the OSD, pool or PG named `what`; None if there is none.

    `pool_name`: the pool that it would name. The name of a pool can be a number; `osd.` in front
    names the OSD. `age_seconds`: age of the view.
    """
    explained = _named(what, pool_name, context) if what else _cluster(context)
    if explained is None:
        return None
    reason, (data, sentences) = explained
    advice_first = reason.action.startswith(f"{codes.NOTHING} here")   # only the advice helps
    outage = None
    if not what:
        outage = data["outage"] = find_outage(context.status, context.view)
        if outage is not None:
            reason = reason._replace(action=outage["action"])
        else:
            reason = reason._replace(action=with_room(reason.action, context.status, context.view))
    snapshot = context.snapshot
    stale = sorted(snapshot.stale_osds)
    data.update(
        osdmap_epoch=snapshot.epoch,
        snapshot_age_seconds=age_seconds,
        stale_osds=stale,
        what=reason.what,
        reason_code=reason.code,
        reason_text=reason.text,
        counts=list(reason.rows),
        action=reason.action,
        advice=list(reason.advice),
        sentences=sentences)
    lines = _reason_lines(reason, outage, advice_first)
    observed = f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}"
    if stale:
        observed += f"; {plural(len(stale), 'OSD')} with older statistics"
    lines.append(observed)
    for said in sentences:
        lines += wrap("- ", said, 2)
    return CommandAnswer(data, "\n".join(lines))


def _reason_lines(reason: Explanation, outage: Optional[Row], advice_first: bool) -> List[str]:
    """Returns the screen above the facts; an outage and its action come first."""
    advice = []
    for one in reason.advice:
        advice += wrap("advice: ", one["sentence"], 8)
    action = wrap("do: ", reason.action, 4)
    lines = wrap("", reason.what, 0)
    if outage is not None:
        lines = wrap("cluster: ", outage["sentence"], 9) + action + lines
    if advice_first:
        lines += advice
    said = reason.code
    if reason.text:
        said += f". {reason.text}"
    lines += wrap("reason: ", said, 8)
    for row in reason.rows:
        lines += wrap(f"{row['count']:>5}  ", row["text"], 7)
    if outage is None:
        lines += action
    if not advice_first:
        lines += advice
    return lines


def _named(what: str, pool_name: Optional[str],
           context: ExplainContext) -> Optional[Tuple[Explanation, Facts]]:
    """Explains the OSD, pool or PG of that name; None if there is none."""
    view = context.view
    snapshot = context.snapshot
    pool = next((one for one in snapshot.pools.values() if one.name == pool_name), None)
    is_pool = pool is not None and pool.name == what and not what.startswith("osd.")
    osd = osd_id(what)
    if osd in snapshot.osds and not is_pool:
        return (osd_reason(snapshot.osds[osd], set_of(osd, view), context),
                explain_osd(osd, view))
    if pool is not None:
        return _pool(pool, context)
    pg = snapshot.pgs.get(what.lower())
    if pg is not None:
        data, sentences = explain_pg(pg, view, context.rejected)
        return pg_reason(pg, context), (data, sentences + steering_sentences(pg, context))
    return None


def _pool(pool: Pool, context: ExplainContext) -> Tuple[Explanation, Facts]:
    view = context.view
    soon = view.usage.pools[pool.name]
    now = view.usage_now().pools[pool.name]
    reason = pool_reason(pool, now, soon, set_of(soon.limiting_osd, view), context)
    stopped = stopped_pools(context.status, view).get(pool.id)
    return reason, explain_pool(pool, view, now, context.settings.pool_ids, stopped)


# -- the cluster -----------------------------------------------------------------------------------

def _cluster(context: ExplainContext) -> Tuple[Explanation, Facts]:
    reason = cluster_reason(context)
    weights = weights_advice(context)
    reason = reason._replace(advice=[*reason.advice, *weights])
    if weights and context.is_idle and reason.action.startswith(codes.NOTHING):
        reason = reason._replace(action=f"{codes.NOTHING} here; moves keep the lowered weights: the"
                                        " advice says how to leave them")
    return reason, _cluster_facts(context)


def _cluster_facts(context: ExplainContext) -> Facts:
    view = context.view
    snapshot = context.snapshot
    status = context.status
    sets: List[Row] = []
    sentences: List[str] = []
    bounds = view.utilization_bounds
    for osd_set in bounds.sets if bounds is not None else ():
        most, first = max([(view.utilization_now(osd), -osd) for osd in osd_set.osds])
        sets.append(dict(set_json(osd_set), fullest_osd=-first, max=most))
        sentences += [describe_bound(osd_set, snapshot), _fullest_sentence(osd_set, most, view)]
    obstacles = [osd.unusable_reason() for osd in snapshot.osds.values()]
    unusable = Counter(filter(None, obstacles))
    broken = [pg.pgid for pg in broken_pgs(snapshot)]
    sentences += filter(None, [rebuilding_text(view)])
    sentences += stopped_pools(status, view).values()
    sentences += [f"pools wait: {reason}"
                  for reason in sorted(set(blocked_pool_reasons(snapshot).values()))]
    sentences += [f"{plural(count, 'PG')} cannot be moved: {reason}"
                  for reason, count in sorted(snapshot.skipped.items())]
    if broken:
        sentences.append(f"upmap items break the CRUSH rule of {plural(len(broken), 'PG')}:"
                         f" {named(broken, _MOST_NAMES)}; 'ceph equilibrium optimize NAME"
                         " --repair' makes a plan that mends them")
    sentences += held_sentences(snapshot)
    sentences += [f"{plural(count, 'OSD')} can take no shards: {reason}"
                  for reason, count in sorted(unusable.items())]
    data: Dict[str, Any] = {
        "state": status.state,
        "reason": status.reason,
        "sets": sets,
        "skipped_pgs": dict(snapshot.skipped),
        "broken_pgs": broken,
        "outage": None}
    return data, sentences


def _fullest_sentence(osd_set: OsdSet, most_now: float, view: ClusterView) -> str:
    """Says how far the fullest OSD of the set is from the bound when all in flight has arrived.
    `most_now`: the highest utilization now."""
    osds = view.snapshot.osds
    most, first = max([(osds[osd].target_utilization or 0.0, -osd) for osd in osd_set.osds])
    above = most - osd_set.bound
    moves = ""
    if abs(most - most_now) >= SAME:
        moves = " once all that moves has arrived"
    if abs(above) < SAME:
        distance = "as low as can be"
    elif above > 0.0:
        distance = f"{100.0 * above:.1f} points above that"
    else:
        distance = "below that until data has left other OSDs"
    return (f"osd.{-first}, the fullest there{moves}, is at {format_percent(most)}%, {distance}")
