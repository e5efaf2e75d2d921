"""`explain PGID OSD`: each check that a move of one PG to one OSD has to pass, in the order in
which the planner and the sender ask, with its answer; and whether it would gain.

The answers are those of the checks themselves: of a placement that the planner has just begun, and
of a batch of which nothing is chosen yet. They depend on the OSD that loses a shard: it is the one
whose move comes furthest, and of those the one whose move gains most; or as the plan under way
has it.
"""
from __future__ import annotations

import errno
from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...execution.throttle import Candidate, ThrottleState, binding_checks, by_urgency
from ...observation.cluster_view import BLOCKED, OFF, WAITING
from ...plan.options import effective_fill_limit, osd_id, upmap_pairs_left
from ...planner.planner import PlannedChanges
from ...planner.refusal_census import RefusalCensus
from ...planner.state.placement_state import pg_refusals
from ...runtime.formatting import format_duration, format_percent, plural, wrap
from ...snapshot import reason_codes as codes
from ...snapshot.model import Osd, Pg
from ...snapshot.operator_weights import BY_REWEIGHT, full_weight
from ..answer import CommandAnswer, CommandError, Row
from .advice import ExplainContext, excluding_option, help_for
from .explain import action_for, filled, osds_text, pg_line

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
_ORDER = [code for refusing in _ASKED.values() for code in refusing]
#: These have no answer for one move: they are about the rest of its batch.
OF_BATCH = ("is_reserved_for_relief", "moves_of_round_are_used_up")
#: Against these nothing is to be done for the sake of one move.
_NO_HELP = (codes.FAILURE_DOMAIN, codes.HOLDS_SHARD, codes.EXCHANGE, codes.GRANULARITY,
            codes.BALANCED, codes.MIN_GAIN)

#: What a check looks at: a sentence, and where it has them the figure and the limit.
Figure = Tuple[str, Optional[float], Optional[float]]
_NOTHING: Figure = ("", None, None)


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
    pg, osd = snapshot.pgs.get(pgid.lower()), snapshot.osds.get(-1 if number is None else number)
    if pg is None:
        raise CommandError(errno.ENOENT if pgid[:1].isdigit() else errno.EINVAL,
                           f"'{pgid}' is no PG, which alone can be explained with OSD '{name}'")
    if osd is None:
        raise CommandError(errno.EINVAL if number is None else errno.ENOENT,
                           f"'{name}' is no OSD that pg {pgid} could go to")
    found = ask(pg, osd, context, state)
    refused = next((row for row in found.rows if not row["allows"] and (
        osd.id not in pg.up or row["code"] == codes.HOLDS_SHARD)), None)
    code, source = refused and refused["code"], found.source
    verdict = ("its shard there is on its way" if osd.id in pg.up and osd.id not in pg.holders
               else "it is there" if osd.id in pg.up
               else f"it may not go there; {refused['check']}: {refused['text']}" if refused and (
                   refused["stage"] == PLANNER) else f"it may go there in place of osd.{source}"
               + ("" if found.allows(SENDER) else ", not now")
               + ("; it would gain" if found.allows(GAIN) else "; it would gain nothing"))
    helps = (codes.NOTHING if refused is None or code in _NO_HELP else
             action_for(pg, context) if refused["check"] == "movable" else
             f"'ceph equilibrium drain rm {osd.id}' ends its drain"
             if osd.drained and code == codes.TARGET_UNAVAILABLE else help_for(
                 refused["code"], context, pool=snapshot.pools[pg.pool].name,
                 option=refused["option"], limit=refused["limit"], **(
                     {"held_osd": osd.id, "weight": full_weight(osd)}
                     if code == codes.REWEIGHT and osd.held_by != BY_REWEIGHT
                     else {"osd": osd.id})))
    lines = wrap("", pg_line(pg, context), 0) + wrap(
        "", f"{filled(osd, context)}: class {osd.device_class}, host {osd.host or 'none'}", 0)
    lines += wrap("reason: ", f"{code}. {verdict}" if code else verdict, 8)
    for stage, question in _STAGES.items():
        shown = [line for row in found.rows if row["stage"] == stage for line in wrap(
            "  yes  " if row["allows"] else "  no   ", f"{row['check']}: {row['text']}", 7)]
        lines += [question, *shown] if shown else []
    lines += wrap("do: ", helps, 4) if refused is not None else []
    lines.append(f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}")
    return CommandAnswer({
        "pgid": pg.pgid, "osd": osd.id, "source": source, "sources": list(found.sources),
        "is_there": osd.id in pg.up, "may_go": found.allows(PLANNER),
        "may_go_now": found.allows(SENDER), "gains": found.allows(GAIN), "reason_code": code,
        "reason_text": verdict, "action": helps, "checks": list(found.rows),
        "osdmap_epoch": snapshot.epoch, "snapshot_age_seconds": age_seconds}, "\n".join(lines))


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
    status = context.status
    planned = [one.up_after for one in status.wanted if one.pgid == pg.pgid
               and osd.id in one.up_after and osd.id not in pg.up]
    source = max(answers, key=lambda one: (
        [one not in after for after in planned],
        min(map(_ORDER.index, answers[one][0]), default=len(_ORDER)), answers[one][2]),
        default=None)
    sources = [one for one, (why, _, _) in answers.items()
               if codes.FAILURE_DOMAIN not in why and codes.HOLDS_SHARD not in why]
    figures = _planner_figures(pg, osd, source, sources, census, context)
    refused = {*pg_refusals(pg, context.options), context.excluded.codes.get(pg.pgid, ""),
               *(answers[source][0] if source is not None else
                 (codes.HOLDS_SHARD,) if osd.id in pg.up else
                 (codes.TARGET_UNAVAILABLE,) if osd.unusable_reason() else ()),
               # as well, where the OSD's share is lower
               *(codes.FILL_LIMIT for _, full, most in (figures.get("fill_limit", _NOTHING),)
                 if full is not None and most is not None and full > most)}
    rows = [_row(PLANNER, check, figure, next((
        code for code in _ASKED[check] if code in refused), ""), "",
        figure[0].split()[0] if check == "scope" else "") for check, figure in figures.items()]
    if source not in sources or codes.EXCHANGE in refused:
        return Pair(rows, source, sources)
    made = PlannedChanges(snapshot)
    made.add(pg, tuple([osd.id if one == source else one for one in pg.up]), [(source, osd.id)])
    change, move = made.changes[0], made.moves[0]
    candidate = state.candidate(
        pg, change, by_urgency(snapshot, state.traffic, [change])[1].get(pg.pgid))
    rows.append(_row(SENDER, "state", (status.state, None, None)) if status.state not in (
        OFF, BLOCKED, WAITING) else _row(
            SENDER, "state", (f"{status.state}: {status.reason}", None, None), status.reason_code))
    shown = _sender_figures(candidate, state)
    rows += [_row(SENDER, name, figure) if verdict is None else _row(
        SENDER, name, figure, verdict.code, verdict.reason, verdict.option)
        for check in binding_checks(candidate) if check.__name__ not in OF_BATCH
        for (name, figure), verdict in ((shown[check.__name__], check(state, candidate)),)]
    code = answers[source][1]
    rows.append(_row(GAIN, "evenness", (
        f"osd.{source} from {format_percent(move.source_before)}% to"
        f" {format_percent(move.source_after)}%, osd.{osd.id} from"
        f" {format_percent(move.target_before)}% to {format_percent(move.target_after)}%"
        + ", which is fuller then" * (move.target_after > move.source_after),
        move.target_after, move.source_after), "" if code in _GAINING else code,
        "" if code in _GAINING else codes.REASONS[code].counted))
    if status.progress is not None or context.is_settled:
        waits = [why.reason for one, why in status.deferred if one.pgid == pg.pgid]
        rows.append(_row(GAIN, "plan", (
            "; ".join(["the plan under way has the move", *waits[:1]]) if planned
            else "the plan under way does without" if status.progress is not None
            else "the last plan did without" + (
                ", as it gains less than min_gain, or than it costs" * (code in _GAINING)),
            None, None), "" if planned else codes.MIN_GAIN))
    return Pair(rows, source, sources)


#: Codes of moves that would make the cluster more even.
_GAINING = (codes.MIN_GAIN, codes.NEARFULL)


def _row(stage: str, check: str, figure: Figure, code: str = "", said: str = "",
         option: str = "") -> Row:
    return {"stage": stage, "check": check, "allows": not code, "code": code or None,
            "text": "; ".join(part for part in (said, figure[0]) if part), "value": figure[1],
            "limit": figure[2], "option": option or code and codes.REASONS[code].option or None}


def _planner_figures(pg: Pg, osd: Osd, source: Optional[int], sources: Sequence[int],
                     census: RefusalCensus, context: ExplainContext) -> Dict[str, Figure]:
    """Check of _ASKED → what it looks at; as many as can be asked."""
    snapshot, options, placement = context.snapshot, context.options, census.placement
    alone, rejected = context.excluded.codes.get(pg.pgid), context.rejected.get(pg.pgid)
    i, pool = placement.index_of.get(osd.id), snapshot.pools[pg.pool]
    texts = {
        "pool_ids": f"pool {pool.name}", "movable": str(pg.immovable or pg.state),
        "monitor": rejected.reason if rejected else "it has dropped no upmap items of the PG",
        "left alone": codes.REASONS[alone].counted if alone else "not by pg_cooldown or max_wait",
        "other shard": f"{osds_text(pg.up)} hold it"}
    if osd.id not in pg.up:
        if source is not None:
            texts["CRUSH rule"] = _rule_text(pg, osd, source, sources, context)
        texts["OSD"] = osd.unusable_reason() or f"up, in, reweight {osd.reweight:.4f}"
    found: Dict[str, Figure] = {check: (text, None, None) for check, text in texts.items()}
    if source is None or i is None or osd.id in pg.up:
        return found
    pairs = sum(map(len, snapshot.upmap_items.values()))
    left = upmap_pairs_left(options.max_upmap_items, len(snapshot.pgs), pairs)
    left_out = [f"osd.{number}" for number, takes_part in (
        (source, placement.is_source[placement.index_of[source]]),
        (osd.id, placement.is_target[i] or not placement.is_usable[i])) if not takes_part]
    option = ("device_classes" if options.sources is None and options.targets is None
              else excluding_option(context.settings))
    size, share = placement.size_bytes[i], placement.share_limit_bytes.get(i)
    full = (placement.used_bytes[i] + census.size_there(pg, source, osd.id)) / size
    found.update({
        "scope": (f"{option} leaves {' and '.join(left_out)} out" if left_out
                  else f"osd.{source} may give, osd.{osd.id} may get", None, None),
        "PGs per OSD": _counted(placement.shard_counts[i] + 1, options.max_pg_shards_per_osd),
        "max_upmap_items": _counted(pairs, left and pairs + left),
        "upmap items": (f"osd.{source} to osd.{osd.id}, if no other shard has left that", None,
                        None),
        "fill_limit": _ratio(
            full, effective_fill_limit(options.fill_limit, snapshot.backfillfull_ratio),
            "once all that moves has arrived"),
        "lowered weight": ("it has its whole size", None, None) if share is None else _ratio(
            full, share / size, "its share by its weights")})
    return found


def _rule_text(pg: Pg, osd: Osd, source: int, sources: Sequence[int],
               context: ExplainContext) -> str:
    """Which shards the OSD may take the place of, and which are in its failure domains."""
    buckets, rule = context.snapshot.crush.buckets, context.snapshot.pools[pg.pool].rule
    assert rule is not None
    block = rule.block_at(pg.up.index(source))
    if osd.id not in rule.osds():
        return (f"osd.{osd.id} of class {osd.device_class} is not under"
                f" {buckets[block.take].name if block.take < 0 else f'osd.{block.take}'}")
    taken = [f"{domain.type_name} {buckets[bucket].name.split('~')[0]} has {osds_text(others)}"
             for domain in block.domains for bucket in (domain.bucket_of.get(osd.id, 0),)
             for others in ([one for one in pg.up if domain.bucket_of.get(one) == bucket],)
             if others]
    wanted = [osd.id if one == source else one for one in pg.up]
    return "; ".join([f"in place of {osds_text(sources)}" if sources else
                      rule.violation(wanted) or rule.upmap_rejection(wanted) or "", *taken])


def _sender_figures(candidate: Candidate, state: ThrottleState) -> Dict[str, Tuple[str, Figure]]:
    """Name of a check of the throttle → (what it is called, what it looks at)."""
    snapshot, settings, pg = state.snapshot, state.settings, candidate.pg
    target, source = (snapshot.osds[osds[0]] for osds in (candidate.gains, candidate.losses))
    into, out = (state.traffic.of(osd.id) for osd in (target, source))
    peak = state.peak_bytes(target, candidate) / max(1, target.size_bytes)
    copies, pairs = max(1, snapshot.object_copies), state.upmap_pairs
    left = upmap_pairs_left(settings.max_upmap_items, len(snapshot.pgs), pairs)
    texts = {
        "pool_is_blocked": ("health", "no PG of its pool, or on the same OSDs, is degraded"),
        "pg_is_immovable": ("movable", pg.state), "pg_is_busy": ("scrub", pg.state),
        "pg_is_in_flight": ("in flight", "no move of the PG is under way"),
        "target_cannot_take": ("OSD", "up and in"),
        "osd_is_silent": ("statistics", "both OSDs report"),
        "pg_is_cooling": ("pg_cooldown", "it was not moved lately"),
        "osd_is_needed_by_steps": (
            "pg_num", f"{plural(len(state.needed_by_steps), 'OSD')} needed for its steps")}
    return {**{check: (name, (text, None, None)) for check, (name, text) in texts.items()},
            "target_is_full": ("fill_limit", _ratio(
                peak, state.fill_limit, "before anything leaves")),
            "misplaced_budget_is_used_up": ("max_misplaced_ratio", _ratio(
                (state.misplaced_copies + candidate.copies) / copies,
                state.allowed_copies_for(candidate) / copies, "of all object copies")),
            "backfills_of_osd_are_used_up": ("max_backfills_per_osd", _counted(
                max(into.shards_in, out.shards_out) + 1, settings.max_backfills_per_osd)),
            "traffic_of_osd_is_used_up": ("max_transit_ratio", _ratio(
                max((load + state.shard_bytes(candidate, osd.id)) / max(1, osd.size_bytes)
                    for osd, load in ((target, into.bytes_in), (source, out.bytes_out))),
                settings.max_transit_ratio, "of the OSD in transit")),
            "target_would_be_fullest": ("fullest meanwhile", _ratio(
                peak, state.max_utilization[target.device_class], "while a shard leaves it")
                if into.shards_out else (f"no shard leaves osd.{target.id}", None, None)),
            "upmap_items_are_used_up": ("max_upmap_items", _counted(
                pairs + state.added_pairs(candidate.change), left and pairs + left)),
            "target_has_too_many_pgs": ("PGs per OSD", _counted(
                state.pg_shards(target.id) + 1, state.limits.withheld_at.get(
                    target.id, state.limits.max_pg_shards)))}


def _counted(count: int, most: Optional[int]) -> Figure:
    return f"{count}, {f'at most {most}' if most else 'no limit'}", count, most or None


def _ratio(value: float, most: float, what: str) -> Figure:
    limit = f"at most {format_percent(most)}%" if most else "no limit"
    return f"{format_percent(value)}%, {limit} ({what})", value, most or None
