"""`explain`: why the cluster, an OSD, a pool or a PG is as it is, in sentences and as JSON: what is
so, the one reason, what helps against it, and what would lower a bound that no move can lower."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ...crush.placement import NO_OSD
from ...execution.change_outcomes import WaitingGroup, waiting_groups
from ...execution.guards import blocked_pool_reasons, blocked_pools
from ...execution.size_check.size_corrections import sentence
from ...execution.verdict import WaitingChange
from ...observation.cluster_view import ClusterView
from ...observation.refusals import (
    COUNTED, MOST_PAIRS, NEAR, bound_code, fullest_osds, settled_code)
from ...observation.states import BALANCED, MOVING, OFF, STUCK, THROTTLED
from ...observation.too_full import HELD_UP
from ...plan.model import PoolSpace
from ...plan.osd_filter import osd_id
from ...planner.bound.lower_bound import FAILURE_DOMAIN, OsdSet
from ...planner.bound.whole_shards import pg_num_advice
from ...planner.refusal_census import Census
from ...planner.rule_repair import broken_pgs
from ...runtime.formatting import (
    format_bytes, format_deadline, format_duration, format_percent, named, plural, wrap)
from ...snapshot import reason_codes as codes
from ...snapshot.immovable_reasons import PG_NUM_CHANGING
from ...snapshot.model import Osd, Pg, Pool
from ...snapshot.reason_codes import NOTHING, REASONS, action
from ..cluster.osds import held_json, held_sentences
from ..command_answer import CommandAnswer
from ..drains import is_blocked, stuck_action
from ..table import Row
from .facts import (
    SAME, Facts, describe_bound, explain_osd, explain_pg, explain_pool, set_json, set_of,
    utilization_now)
from .help import census_rows, help_for, numbers_of, state_action
from .outage import find_outage, osd_outage, unused_hosts
from .reason import ExplainContext, Explanation, counted_text, waiting_rows

#: Device classes, pools and the like that a sentence names; it counts the rest.
_NAMES_SHOWN = 10
#: Less capacity than this ratio of a set is not worth a sentence.
_WORTH = 0.001
#: Devices are worth buying where so much more (a ratio of a set) lowers its bound by so much; so
#: are more PGs worth all that moves for them.
_MOST_MORE, _WORTH_DOING = 1.0 / 3.0, 0.03
_IN_ADVICE = 5   # names


def explain(what: Optional[str], context: ExplainContext,
            age_seconds: float) -> Optional[CommandAnswer]:
    """Explains the cluster, or the OSD, pool or PG named `what`; None where there is none. A pool
    may have a number as its name; `osd.` in front names the OSD. `age_seconds`: of the view."""
    view, snapshot = context.view, context.snapshot
    stopped = {pool: sentence(found, snapshot.pools[pool].name)   # and how to have them moved again
               for pool, found in context.status.mispredicted.items() if pool in snapshot.pools}
    pool = next((one for one in snapshot.pools.values() if one.name == what), None)
    osd = osd_id(what or "")
    if not what:
        fullest = fullest_osds(view, context.settings.device_classes)
        osd_set = fullest[0].osd_set if fullest else None
        reason, (data, sentences) = cluster_reason(context), _cluster_facts(context, stopped)
    elif osd in snapshot.osds and (pool is None or what.startswith("osd.")):
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
    said, code = wrap("", reason.what, 0), reason.code
    helps = wrap("do: ", reason.action, 4)
    if outage is not None:
        reason, data["outage"] = reason._replace(action=outage["action"]), outage
        said = wrap("cluster: ", outage["sentence"], 9) + wrap("do: ", outage["action"], 4) + said
        helps = []
    said += wrap("reason: ", f"{code}. {reason.text}" if reason.text else code, 8)
    for row in reason.rows:
        said += wrap(f"{row['count']:>5}  ", row["text"], 7)
    lines, census = said + helps, reason.census
    data.update({
        "osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds,
        "stale_osds": sorted(snapshot.stale_osds), "what": reason.what, "reason_code": code,
        "reason_text": reason.text, "counts": list(reason.rows), "action": reason.action,
        "census": None if census is None else {
            "shards": census.shards, "counted_shards": census.counted, "pairs": census.pairs},
        "advice": advice, "sentences": sentences})
    for one in advice:
        lines += wrap("advice: ", one["sentence"], 8)
    silent = len(snapshot.stale_osds)
    lines.append(f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}"
                 + (f"; {plural(silent, 'OSD')} with older statistics" if silent else ""))
    for sentence_of_it in sentences:
        lines += wrap("- ", sentence_of_it, 2)
    return CommandAnswer(data, "\n".join(lines))


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


# -- the reason ------------------------------------------------------------------------------------

def cluster_reason(context: ExplainContext) -> Explanation:
    """The reason of the state that the cluster is in."""
    status, view = context.status, context.view
    fullest = fullest_osds(view, context.settings.device_classes)
    where = ("how even the cluster could be is not known" if view.utilization_bounds is None
             else "no pool has data that could be placed otherwise"
             if context.settings.device_classes is None
             else "no OSD of the device classes that are balanced holds data that could be placed"
                  " otherwise")
    for osd_set, osd, _ in fullest[:1]:
        where = (f"class {osd_set.device_class} under {', '.join(osd_set.takes[:3])}:"
                 f" {_filled(osd, context)}, bound {format_percent(osd_set.bound)}%")
    what = f"{status.state}: {where}"
    helps = state_action(status, view, context.settings, context.now)
    if view.too_full and status.state in HELD_UP:
        return Explanation(what, codes.TOO_FULL, helps, view.too_full[0].sentence())
    if not fullest or status.state not in (OFF, STUCK, BALANCED):   # something holds it up
        rows = waiting_rows(status.waiting)
        if status.state in (THROTTLED, MOVING) and status.reason_code != codes.MOVING and rows:
            return Explanation(what, rows[0]["code"], helps, _wait_text(status.waiting), rows)
        return Explanation(what, status.reason_code, helps, status.reason, rows)
    osd_set, osd, above = fullest[0]
    asked = context.census()
    assert asked is not None   # there is a set, so that bounds are known
    census = asked.of_osd(osd.id, MOST_PAIRS)
    if status.state == OFF or context.rest_code not in COUNTED:
        return Explanation(what, status.reason_code, help_for(status.reason_code, context),
                           f"{status.reason}; {counted_text(census, f'on osd.{osd.id}')}",
                           census_rows(census, context, context.is_settled), census)
    if above < NEAR:   # nothing lower is possible
        code = bound_code(osd_set)
        numbers, found = numbers_of(code, None, context), domain_advice(osd_set, context)
        if code == codes.BOUND_DOMAIN and found is not None and numbers:
            numbers.update(found["figures"])
        return _reason(what, code, describe_bound(osd_set, context.snapshot), **numbers)
    return _counted(what, settled_code(census, context.rest_code), census, f"on osd.{osd.id}",
                    context, osd_set)


def _reason(what: str, code: str, text: str, **numbers: Any) -> Explanation:
    return Explanation(what, code, action(code, numbers), text)


def _filled(osd: Osd, context: ExplainContext) -> str:
    """'osd.13 is at 84.96%', and where it will be if that differs."""
    if not osd.has_statistics:
        return f"osd.{osd.id} has no statistics"
    now = context.view.used_now.get(osd.id, osd.used_bytes) / osd.size_bytes
    then = osd.target_utilization or 0.0
    soon = "" if abs(now - then) < 0.00005 else f" ({format_percent(then)}% when all has arrived)"
    return f"osd.{osd.id} is at {format_percent(now)}%{soon}"


def _counted(what: str, code: str, census: Census, where: str, context: ExplainContext,
             osd_set: Optional[OsdSet]) -> Explanation:
    """The reason that counts have shown."""
    numbers = numbers_of(code, census.of(code), context)
    if code == codes.GRANULARITY and osd_set is not None:
        for found in pg_num_advice_of(census, osd_set, context):
            if found["figures"]["now_ratio"] - found["figures"]["then_ratio"] >= _WORTH_DOING:
                numbers.update(found["figures"])
    helps = action(code, numbers)
    if code == codes.IMMOVABLE and numbers.get("pgid"):
        helps = _action_for(context.snapshot.pgs[numbers["pgid"]], context)
    elif code == codes.MIN_GAIN and context.rest_code != codes.MIN_GAIN:
        helps = NOTHING   # the option is not the cause
    return Explanation(what, code, helps, counted_text(census, where),
                       census_rows(census, context, context.is_settled), census)


def _action_for(pg: Pg, context: ExplainContext) -> str:
    pool = context.snapshot.pools[pg.pool]
    held = pg.immovable or pool.immovable
    return NOTHING if held is None else held.action(pg.pgid, pool.name)


def _of_census(what: str, census: Census, where: str, context: ExplainContext,
               osd_set: Optional[OsdSet]) -> Explanation:
    """The counted reason; that of the state where moves are allowed and the state sends none."""
    status, code = context.status, census.reason_code
    if context.is_settled or code not in (codes.MIN_GAIN, codes.BALANCED):
        return _counted(what, settled_code(census, context.rest_code) if context.is_settled
                        else code, census, where, context, osd_set)
    text, rows = counted_text(census, where), census_rows(census, context, False)
    if code == codes.BALANCED:
        return Explanation(what, code, action(code, {}), text, rows, census)
    if status.state in (STUCK, BALANCED):   # of a drain: nothing else is moved
        code = codes.SWITCHED_OFF
        return Explanation(what, code, action(code, {}), f"automatic balancing is off; {text}",
                           rows, census)
    return Explanation(what, status.reason_code, help_for(status.reason_code, context),
                       f"{status.reason}; {text}", rows, census)


def _deferred(what: str, deferred: Sequence[WaitingChange], context: ExplainContext) -> Explanation:
    """The reason of planned moves that the throttle's last decision deferred."""
    groups = waiting_groups([change for change, _ in deferred], deferred, codes.NEXT_BATCH, "")
    first = groups[0]
    helps = help_for(first.code, context, limit=first.limit, osd=first.osd, option=first.option)
    return Explanation(what, first.code, helps, _wait_text(groups), waiting_rows(groups))


def _wait_text(groups: Sequence[WaitingGroup]) -> str:
    shards = sum(group.shards for group in groups)
    return f"{plural(shards, 'planned shard')} {'waits' if shards == 1 else 'wait'}:"


def osd_reason(osd: Osd, osd_set: Optional[OsdSet], context: ExplainContext) -> Explanation:
    """The reason for which an OSD is as full as it is."""
    bound = "" if osd_set is None else f", bound {format_percent(osd_set.bound)}%"
    what = (f"class {osd.device_class}, host {osd.host or 'none'}: {_filled(osd, context)}{bound}")
    outage, obstacle = osd_outage(osd, context), osd.unusable_reason()
    if outage is not None:
        code, helps, said = outage
        return Explanation(f"{said}. {what}", code, helps)
    if osd.drained:
        return _drained_reason(osd.id, what, context)
    if obstacle is not None:
        return _reason(what, codes.TARGET_UNAVAILABLE, f"no shard may go to it: it is {obstacle}",
                       osd=osd.id)
    deferred = [row for row in context.status.deferred
                if osd.id in set(row[0].up_before) ^ set(row[0].up_after)]
    if deferred:
        return _deferred(what, deferred, context)
    if osd_set is None:
        return _reason(what, codes.BALANCED, "no pool that holds data may use it")
    if (osd.target_utilization or 0.0) < osd_set.bound + NEAR:
        return _reason(what, codes.BALANCED, "it is not fuller than the bound of its set")
    asked = context.census()
    assert asked is not None
    return _of_census(what, asked.of_osd(osd.id, MOST_PAIRS), f"on osd.{osd.id}", context, osd_set)


def _drained_reason(osd: int, what: str, context: ExplainContext) -> Explanation:
    """Why an OSD that is being drained still has shards."""
    status, drains = context.status, context.status.drains
    left = drains.remaining.get(osd)
    if osd in drains.down:
        return _reason(what, codes.TARGET_UNAVAILABLE,
                       f"it is being drained; {drains.down_sentence}", osd=osd)
    if left is None or not left.shards:
        rest = "" if left is None else ", and no shard is left"
        return _reason(what, codes.BALANCED, f"it is being drained{rest}")
    said = (f"it is being drained: {plural(left.shards, 'shard')}, {format_bytes(left.bytes)} left,"
            f" {left.leaving} on their way")
    if drains.drains.is_paused:
        return Explanation(what, codes.SWITCHED_OFF, "'ceph equilibrium drain add"
                           f" osd.{osd}' goes on", f"{said}; paused by 'ceph equilibrium off'")
    if drains.cooling(osd):
        said += f"; {drains.cooling_sentence}"
    stuck = sorted((one for one in drains.held if one.osd == osd), key=lambda one: -one.shards)
    said += "".join(f"; {one.shards} cannot leave: {REASONS[one.code].stuck}, such as pg"
                    f" {one.example}" for one in stuck)
    if is_blocked(status):
        return Explanation(what, status.reason_code,
                           state_action(status, context.view, context.settings, context.now),
                           f"{status.reason}; {said}")
    if not stuck:
        return _reason(what, codes.MOVING, said)
    return Explanation(what, codes.CANNOT_LEAVE, stuck_action(stuck[0], context.settings), said)


def pool_reason(pool: Pool, now: PoolSpace, soon: PoolSpace, osd_set: Optional[OsdSet],
                context: ExplainContext) -> Explanation:
    """The reason for which a pool can take no more than it can. `soon`: when all has arrived;
    counted are the targets of the OSD that limits the pool then, `osd_set` is its set."""
    snapshot, limiting = context.snapshot, soon.limiting_osd
    free, later = format_bytes(now.free_bytes), format_bytes(soon.free_bytes)
    what = f"pool {pool.name} can take {free} more"
    what += f" ({later} when all has arrived)" if later != free else ""
    if now.limiting_osd is not None:
        what += f"; full first: {_filled(snapshot.osds[now.limiting_osd], context)}"
    if pool.immovable:
        code = (codes.RULE_UNKNOWN if pool.rule is None else codes.PG_NUM_CHANGING
                if pool.immovable == PG_NUM_CHANGING else codes.IMMOVABLE)
        return Explanation(what, code, pool.immovable.action("PGID", pool.name),
                           f"none of its PGs can be moved: {pool.immovable}")
    if pool.id in context.status.mispredicted:
        return _reason(what, codes.MISPREDICTED, "its shards took more than predicted")
    guard = blocked_pools(snapshot).get(pool.id)
    if guard is not None:
        return Explanation(what, codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason)
    deferred = [row for row in context.status.deferred
                if row[0].pgid in snapshot.pgs and snapshot.pgs[row[0].pgid].pool == pool.id]
    if deferred:
        return _deferred(what, deferred, context)
    asked = context.census()
    if limiting is None or asked is None or osd_set is None:
        return _reason(what, codes.BALANCED, "no OSD with statistics holds any of it")
    return _of_census(what, asked.of_osd(limiting, MOST_PAIRS, pool.id), f"of it on osd.{limiting}",
                      context, osd_set)


def pg_reason(pg: Pg, context: ExplainContext) -> Explanation:
    """The reason for which a PG stays where it is: what holds it whatever is planned, what defers
    its planned moves, or what refuses any."""
    pool, pgid = context.snapshot.pools[pg.pool], pg.pgid
    what = (f"pg {pgid} of pool {pool.name}, {format_bytes(pg.shard_bytes)} a shard:"
            f" {', '.join(_shard(osd, context) for osd in pg.up)}")
    for entry in context.view.too_full:
        if pgid in entry.pgids:
            return Explanation(what, codes.TOO_FULL, help_for(codes.TOO_FULL, context),
                               entry.sentence())
    if pg.immovable:
        return Explanation(what, codes.RULE_UNKNOWN if pool.rule is None else codes.IMMOVABLE,
                           _action_for(pg, context), f"it cannot be moved: {pg.immovable}")
    if pg.is_moving:
        return Explanation(what, codes.IN_FLIGHT, help_for(codes.IN_FLIGHT, context),
                           "it is moving")
    if pgid in context.rejected:
        return _reason(what, codes.REJECTED, context.rejected[pgid].reason)
    guard = blocked_pools(context.snapshot).get(pool.id)
    if guard is not None:
        return Explanation(what, codes.DEGRADED, help_for(codes.DEGRADED, context), guard.reason)
    alone, left = context.excluded.codes.get(pgid), context.excluded.seconds_left.get(pgid)
    if alone is not None:
        return _reason(what, alone, "automatic plans leave it alone until then",
                       until=format_deadline(context.now + left) if left and context.now else None)
    deferred = [row for row in context.status.deferred if row[0].pgid == pgid]
    if deferred:
        return _deferred(what, deferred, context)
    asked = context.census()
    if asked is None:
        return _reason(what, codes.NOT_READY, "how even the cluster could be is not known")
    return _of_census(what, asked.of_pg(pg, MOST_PAIRS), f"of pg {pgid}", context, None)


def _shard(number: int, context: ExplainContext) -> str:
    osd = context.snapshot.osds.get(number)
    if number == NO_OSD or osd is None or not osd.has_statistics:
        return "no OSD" if number == NO_OSD else f"osd.{number}"
    used = context.view.used_now.get(number, osd.used_bytes)
    return f"osd.{number} {format_percent(used / osd.size_bytes)}%"


# -- advice on bounds that no move lowers ----------------------------------------------------------

def _advice(code: str, sentence: str, **figures: Any) -> Row:
    """One thing that an operator could change, JSON-ready; bytes and ratios."""
    return {"code": code, "sentence": sentence, "figures": figures}


def pg_num_advice_of(census: Census, osd_set: OsdSet, context: ExplainContext) -> List[Row]:
    """More PGs for the pool whose shards are most often larger than the difference."""
    found, snapshot = census.of(codes.GRANULARITY), context.snapshot
    pools = {} if found is None else found.pools
    for pool in sorted(pools, key=lambda number: (-pools[number], number))[:2]:
        for better in pg_num_advice(snapshot, osd_set, pool, context.max_pg_shards[0]):
            now = max(snapshot.osds[osd].target_utilization or 0.0 for osd in osd_set.osds)
            then = max(osd_set.bound, min(better.then, now))
            name = snapshot.pools[pool].name
            if now - then >= _WORTH:
                return [_advice(
                    codes.GRANULARITY, f"pg_num {better.pg_num} of pool {name} would lower the"
                    f" fullest OSD of class {osd_set.device_class} from {format_percent(now)}% to"
                    f" about {format_percent(then)}%",
                    pool=name, pg_num=better.pg_num, now_ratio=now, then_ratio=then)]
    return []


def domain_advice(osd_set: OsdSet, context: ExplainContext) -> Optional[Row]:
    """The capacity that brings the bound of a set down to the mean utilization of the set, where a
    failure domain that is too small sets the bound; None elsewhere."""
    binding, osds = osd_set.binding, context.snapshot.osds
    if binding.kind != FAILURE_DOMAIN:
        return None
    at_bound = [osds[osd] for osd in binding.osds]
    members = [osds[osd] for osd in osd_set.osds]
    size, used = _sums(at_bound)
    all_size, all_used = _sums(members)
    # (used of those at the bound) ÷ (their size + more) = (all that is used) ÷ (all sizes + more)
    if all_used <= used or size <= 0:
        return None
    held = osd_set.bound * size
    more = (held * all_size - all_used * size) / (all_used - held)
    then = all_used / (all_size + more)
    if not 0.0 < more < _MOST_MORE * all_size or osd_set.bound - then < _WORTH_DOING or (
            not context.is_settled):
        return None
    where = named(sorted({osd.host or f"osd.{osd.id}" for osd in at_bound}), _IN_ADVICE)
    return _advice(
        codes.BOUND_DOMAIN, f"{format_bytes(more)} more on {where}, or on new hosts, would lower"
        f" the bound from {format_percent(osd_set.bound)}% to {format_percent(then)}%",
        bytes=format_bytes(more), capacity_bytes=int(more), buckets=where,
        now_ratio=osd_set.bound, then_ratio=then, bound=f"{format_percent(then)}%")


def advice_for(osd_set: OsdSet, reason: Explanation, context: ExplainContext) -> List[Row]:
    """All that applies to a set: capacity, the room that lowered weights cost it, and more PGs, but
    these only where whole shards are the reason."""
    found = [domain_advice(osd_set, context)]
    members = [context.snapshot.osds[osd] for osd in osd_set.osds]
    held = [osd for osd in members if osd.share < 1.0]
    unused = sum(osd.size_bytes - osd.capacity_bytes for osd in held)
    size, used = _sums(members)
    if held and unused >= _WORTH * size:
        on_devices = sum(osd.device_bytes(osd.size_bytes - osd.capacity_bytes) for osd in held)
        found.append(_advice(
            codes.REWEIGHT, f"weights of {named([f'osd.{osd.id}' for osd in held], _IN_ADVICE)}"
            f" keep {format_bytes(on_devices)} of class {osd_set.device_class} unused:"
            f" {format_percent(used / size)}% if all were filled by size,"
            f" {format_percent(used / (size - unused))}% now",
            unused_bytes=on_devices, osds=[osd.id for osd in held], then_ratio=used / size,
            now_ratio=used / (size - unused)))
    if reason.code == codes.GRANULARITY and reason.census is not None:
        found += pg_num_advice_of(reason.census, osd_set, context)
    return [one for one in found if one is not None]


def _sums(osds: List[Osd]) -> Tuple[int, int]:
    """(bytes of all sizes, bytes used once all has arrived)."""
    return sum(osd.size_bytes for osd in osds), sum(osd.target_bytes for osd in osds)
