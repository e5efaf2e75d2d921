"""`explain PGID OSD`: each check that a move of one PG to one OSD has to pass, in the order in
which the planner and the sender ask, with its answer; and whether it would gain.

The answers are those of the checks themselves: of a placement that the planner has just begun, and
of a batch of which nothing is chosen yet. They depend on the OSD that loses a shard: it is the one
whose move the fewest checks refuse, and of those the one whose move gains most; or as the plan
under way has it.
"""
from __future__ import annotations

import errno
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from ...control.status import BalancerStatus
from ...execution.throttle import Candidate, ThrottleState, binding_checks, by_urgency
from ...observation.cluster_view import BLOCKED, OFF, WAITING
from ...plan.options import effective_fill_limit, osd_id, upmap_pairs_left
from ...planner.planner import PlannedChanges
from ...planner.refusal_census import RefusalCensus
from ...planner.state.placement_state import pg_refusals
from ...runtime.formatting import format_duration, format_percent, wrap
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd, Pg
from ..answer import CommandAnswer, CommandError, Row
from .advice import help_for
from .context import ExplainContext
from .facts import filled, osds_text
from .figures import excluding_option
from .reasons import action_for, pg_line

PLANNER, SENDER, GAIN = "planner", "sender", "gain"
#: What each asks.
_STAGES = {PLANNER: "may a plan move it there?", SENDER: "may it be sent now?",
           GAIN: "would it gain?"}
#: The planner's checks in their order: names, and the codes by which each refuses.
_ASKED: Mapping[str, Tuple[str, ...]] = {
    "pool_ids": (codes.POOL_EXCLUDED,), "movable": (codes.IMMOVABLE, codes.PG_NUM_CHANGING),
    "monitor": (codes.REJECTED,),
    "left alone": (codes.COOLDOWN, codes.GIVEN_UP, codes.MISPREDICTED),
    "other shard": (codes.HOLDS_SHARD,), "CRUSH rule": (codes.FAILURE_DOMAIN,),
    "OSD": (codes.TARGET_UNAVAILABLE,), "scope": (codes.OSD_EXCLUDED,),
    "PGs per OSD": (codes.PG_COUNT,), "max_upmap_items": (codes.UPMAP_ITEMS,),
    "upmap items": (codes.EXCHANGE,), "fill_limit": (codes.FILL_LIMIT,),
    "lowered weight": (codes.REWEIGHT,)}
#: The checks of the sender, as an operator reads their names.
_SENDING: Mapping[str, str] = {
    "pool_is_blocked": "health", "pg_is_immovable": "movable", "pg_is_in_flight": "in flight",
    "target_cannot_take": "OSD", "osd_is_silent": "statistics", "pg_is_busy": "scrub",
    "pg_is_cooling": "pg_cooldown", "osd_is_needed_by_steps": "pg_num",
    "target_is_full": "fill_limit", "misplaced_budget_is_used_up": "max_misplaced_ratio",
    "backfills_of_osd_are_used_up": "max_backfills_per_osd",
    "traffic_of_osd_is_used_up": "max_transit_ratio",
    "target_would_be_fullest": "fullest meanwhile",
    "upmap_items_are_used_up": "max_upmap_items", "target_has_too_many_pgs": "PGs per OSD"}
#: These have no answer for one move: they are about the rest of its batch.
OF_BATCH = ("is_reserved_for_relief", "moves_of_round_are_used_up")
#: Against these nothing is to be done for the sake of one move.
_NO_HELP = (codes.FAILURE_DOMAIN, codes.HOLDS_SHARD, codes.EXCHANGE, codes.GRANULARITY,
            codes.BALANCED, codes.MIN_GAIN)
#: Codes of moves that would make the cluster more even.
_GAINING = (codes.MIN_GAIN, codes.NEARFULL)


class Pair(NamedTuple):
    """The answers on a PG and an OSD, JSON-ready."""

    rows: Sequence[Row]
    source: Optional[int]    # the OSD that would lose a shard
    sources: Sequence[int]   # those that could by the CRUSH rule

    def allows(self, stage: str) -> Optional[bool]:
        """Whether all checks of a stage let the move pass; None where none was asked."""
        found = [row["allows"] for row in self.rows if row["stage"] == stage]
        return all(found) if found else None


def explain_pair(pgid: str, name: str, context: ExplainContext, state: ThrottleState,
                 age_seconds: float) -> CommandAnswer:
    """Explains why a PG is not on an OSD. `state`: of a batch of which nothing is chosen yet;
    `age_seconds`: of the view. Raises CommandError for what there is not."""
    snapshot, number = context.snapshot, osd_id(name)
    pg = snapshot.pgs.get(pgid.lower())
    if pg is None:
        raise CommandError(errno.ENOENT if pgid[:1].isdigit() else errno.EINVAL,
                           f"'{pgid}' is no PG, which alone can be explained with OSD '{name}'")
    if number is None or number not in snapshot.osds:
        raise CommandError(errno.EINVAL if number is None else errno.ENOENT,
                           f"'{name}' is no OSD that pg {pgid} could go to")
    osd = snapshot.osds[number]
    found = ask(pg, osd, context, state)
    is_there = osd.id in pg.up
    refusing = [row for row in found.rows if not row["allows"] and (
        not is_there or row["code"] == codes.HOLDS_SHARD)]
    code = refusing[0]["code"] if refusing else None
    verdict = _verdict(found, refusing, pg, osd)
    helps = _helps(refusing[0], pg, osd, context) if refusing else codes.NOTHING
    lines = wrap("", pg_line(pg, context), 0) + wrap(
        "", f"{filled(osd, context)}: class {osd.device_class}, host {osd.host or 'none'}", 0)
    lines += wrap("reason: ", f"{code}. {verdict}" if code else verdict, 8)
    asked = ""
    for row in found.rows:
        if row["stage"] != asked:
            asked = row["stage"]
            lines.append(_STAGES[asked])
        answer = "  yes  " if row["allows"] else "  no   "
        lines += wrap(answer, _clause(row), 7)
    if refusing:
        lines += wrap("do: ", helps, 4)
    lines.append(f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}")
    return CommandAnswer({
        "pgid": pg.pgid, "osd": osd.id, "source": found.source, "is_there": is_there,
        "may_go": found.allows(PLANNER), "may_go_now": found.allows(SENDER),
        "reason_code": code, "reason_text": verdict, "action": helps,
        "checks": list(found.rows), "osdmap_epoch": snapshot.epoch,
        "snapshot_age_seconds": age_seconds}, "\n".join(lines))


def _verdict(found: Pair, refusing: Sequence[Row], pg: Pg, osd: Osd) -> str:
    if osd.id in pg.up:
        return "it is there" if osd.id in pg.holders else "its shard there is on its way"
    for row in refusing[:1]:
        if row["stage"] == PLANNER:
            return f"it may not go there; {_clause(row)}"
    now = "" if found.allows(SENDER) else ", not now"
    gains = "it would gain" if found.allows(GAIN) else "it would gain nothing"
    return f"it may go there in place of osd.{found.source}{now}; {gains}"


def _clause(row: Row) -> str:
    return f"{row['check']}: {row['text']}" if row["text"] else str(row["check"])


def _helps(row: Row, pg: Pg, osd: Osd, context: ExplainContext) -> str:
    """What helps against a check that refuses."""
    code = row["code"]
    if code in _NO_HELP:
        return codes.NOTHING
    if row["check"] == "movable":
        return action_for(pg, context)
    if osd.drained and code == codes.TARGET_UNAVAILABLE:
        return f"'ceph equilibrium drain rm {osd.id}' ends its drain"
    pool, option = context.snapshot.pools[pg.pool].name, codes.REASONS[code].option
    if code == codes.OSD_EXCLUDED:
        option = _scope_option(context)
    return help_for(code, context, pool=pool, osd=osd.id, option=option or None,
                    limit=getattr(context.settings, option, None))


def ask(pg: Pg, osd: Osd, context: ExplainContext, state: ThrottleState) -> Pair:
    """Asks all checks of the planner, and those of the sender where CRUSH and upmap items can place
    the PG so. Raises CommandError where it is not known how even the cluster could be."""
    snapshot, bounds = context.snapshot, context.view.utilization_bounds
    if bounds is None:
        raise CommandError(errno.EAGAIN, "how even the cluster could be is not known; try again")
    # where the PG itself must stay, the other checks are asked as if it might move
    census = RefusalCensus(
        snapshot._replace(pgs={**snapshot.pgs, pg.pgid: pg._replace(immovable=None)}),
        context.options._replace(pool_ids=None, rejected_pgs=frozenset()), bounds, {})
    answers = {one: found for one in pg.up for found in (census.answers(pg, one, osd.id),) if found}
    planned = [one.up_after for one in context.status.wanted if one.pgid == pg.pgid
               and osd.id in one.up_after and osd.id not in pg.up]
    source = max(answers, default=None, key=lambda one: (
        [one not in after for after in planned], -len(answers[one][0]), answers[one][2]))
    sources = [one for one, (why, _, _) in answers.items()
               if codes.FAILURE_DOMAIN not in why and codes.HOLDS_SHARD not in why]
    refused = {*pg_refusals(pg, context.options), context.excluded.codes.get(pg.pgid, "")}
    if source is not None:
        refused.update(answers[source][0])
    elif osd.id in pg.up:
        refused.add(codes.HOLDS_SHARD)
    elif osd.unusable_reason():
        refused.add(codes.TARGET_UNAVAILABLE)
    rows = _of_planner(pg, osd, source, sources, refused, census, context)
    if source not in sources or codes.EXCHANGE in refused:
        return Pair(rows, source, sources)
    made = PlannedChanges(snapshot)
    made.add(pg, tuple([osd.id if one == source else one for one in pg.up]), [(source, osd.id)])
    change, move = made.changes[0], made.moves[0]
    relieves = by_urgency(snapshot, state.traffic, [change])[1].get(pg.pgid)
    rows += _of_sender(state.candidate(pg, change, relieves), state, context.status)
    code = answers[source][1]
    figures = (f"osd.{source} from {format_percent(move.source_before)}% to"
               f" {format_percent(move.source_after)}%, osd.{osd.id} from"
               f" {format_percent(move.target_before)}% to {format_percent(move.target_after)}%")
    rows.append(_row(GAIN, "evenness", figures) if code in _GAINING else _row(
        GAIN, "evenness", f"{codes.REASONS[code].counted}; {figures}", code))
    if planned:
        waits = [f"; {why.reason}" for one, why in context.status.deferred if one.pgid == pg.pgid]
        rows.append(_row(GAIN, "plan", "the plan under way has the move" + "".join(waits[:1])))
    elif context.status.progress is not None:
        rows.append(_row(GAIN, "plan", "the plan under way does without", codes.MIN_GAIN))
    elif context.is_settled:
        why = ", as it gains less than min_gain, or than it costs" if code in _GAINING else ""
        rows.append(_row(GAIN, "plan", f"the last plan did without{why}", codes.MIN_GAIN))
    return Pair(rows, source, sources)


def _row(stage: str, check: str, text: str, code: str = "") -> Row:
    return {"stage": stage, "check": check, "allows": not code, "code": code or None, "text": text}


def _of_planner(pg: Pg, osd: Osd, source: Optional[int], sources: Sequence[int],
                refused: Set[str], census: RefusalCensus, context: ExplainContext) -> List[Row]:
    """The rows of as many checks of _ASKED as can be asked."""
    alone, rejected = context.excluded.codes.get(pg.pgid), context.rejected.get(pg.pgid)
    found = {
        "pool_ids": f"pool {context.snapshot.pools[pg.pool].name}",
        "movable": str(pg.immovable or pg.state), "monitor": rejected.reason if rejected else "",
        "left alone": codes.REASONS[alone].counted if alone else "",
        "other shard": f"{osds_text(pg.up)} hold it"}
    if osd.id not in pg.up:
        if source is not None:
            found["CRUSH rule"] = _rule_text(pg, osd, source, sources, context)
        found["OSD"] = osd.unusable_reason() or f"up, in, reweight {osd.reweight:.4f}"
        if source is not None:
            found.update(_figures(pg, osd, source, refused, census, context))
    return [_row(PLANNER, check, text, next(
        (code for code in _ASKED[check] if code in refused), "")) for check, text in found.items()]


def _figures(pg: Pg, osd: Osd, source: int, refused: Set[str], census: RefusalCensus,
             context: ExplainContext) -> Dict[str, str]:
    """What the checks of room and limits look at; adds the fill limit to `refused` as well where
    the OSD's share is lower and comes first."""
    snapshot, options, placement = context.snapshot, context.options, census.placement
    i = placement.index_of[osd.id]
    scope = weight = ""
    if codes.OSD_EXCLUDED in refused:
        gives = placement.is_source[placement.index_of[source]]
        scope = f"{_scope_option(context)} leaves osd.{osd.id if gives else source} out"
    size, share = placement.size_bytes[i], placement.share_limit_bytes.get(i)
    full = (placement.used_bytes[i] + census.size_there(pg, source, osd.id)) / size
    most = effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio)
    if full > most:
        refused.add(codes.FILL_LIMIT)
    if share is not None:
        weight = _ratio(full, share / size, "its share by its weights")
    pairs = sum(map(len, snapshot.upmap_items.values()))
    left = upmap_pairs_left(options.max_upmap_items, len(snapshot.pgs), pairs)
    return {
        "scope": scope,
        "PGs per OSD": _counted(placement.shard_counts[i] + 1, options.max_pg_shards_per_osd),
        "max_upmap_items": _counted(pairs, None if left is None else pairs + left),
        "upmap items": "",
        "fill_limit": _ratio(full, most, "once all that moves has arrived"),
        "lowered weight": weight}


def _scope_option(context: ExplainContext) -> str:
    options = context.options
    if options.sources is None and options.targets is None:
        return "device_classes"
    return excluding_option(context.settings)


def _rule_text(pg: Pg, osd: Osd, source: int, sources: Sequence[int],
               context: ExplainContext) -> str:
    """Which shards the OSD may take the place of, or what the rule has against it."""
    crush, rule = context.snapshot.crush, context.snapshot.pools[pg.pool].rule
    assert rule is not None
    block = rule.block_at(pg.up.index(source))
    if osd.id not in rule.osds():
        return (f"osd.{osd.id} of class {osd.device_class} is not under"
                f" {crush.name_of(block.take)}")
    if sources:
        return f"in place of {osds_text(sources)}"
    wanted = [osd.id if one == source else one for one in pg.up]
    said = rule.refusal(wanted) or ""
    for domain in block.domains:
        bucket = domain.bucket_of.get(osd.id, 0)
        others = [one for one in pg.up if domain.bucket_of.get(one) == bucket]
        if others:
            name = crush.buckets[bucket].name.split("~")[0]
            said += f"; {domain.type_name} {name} has {osds_text(others)}"
    return said


def _of_sender(candidate: Candidate, state: ThrottleState, status: BalancerStatus) -> List[Row]:
    """The state of the loop, and the checks of the throttle that have an answer for one move."""
    rows = [_row(SENDER, "state", f"{status.state}: {status.reason}", status.reason_code)
            if status.state in (OFF, BLOCKED, WAITING) else _row(SENDER, "state", status.state)]
    for check in binding_checks(candidate):
        if check.__name__ in OF_BATCH:
            continue
        name, verdict = _SENDING[check.__name__], check(state, candidate)
        rows.append(_row(SENDER, name, "") if verdict is None else _row(
            SENDER, name, verdict.reason, verdict.code))
    return rows


def _counted(count: int, most: Optional[int]) -> str:
    return f"{count}, at most {most}" if most else f"{count}, no limit"


def _ratio(value: float, most: float, what: str) -> str:
    limit = f"at most {format_percent(most)}%" if most else "no limit"
    return f"{format_percent(value)}%, {limit} ({what})"
