"""`explain PGID OSD`: every check that a move of one PG to one OSD has to pass, with its answer,
and whether the move would gain.

The planner's own checks answer, on a placement without moves, and those of the throttle, for a
batch that is still empty. The answers depend on the OSD that loses a shard. That is the OSD from
which the plan under way moves it. Without such a plan it is the OSD whose move the fewest checks
reject, and among several the one whose move gains most.
"""

from __future__ import annotations

import errno
from typing import (
    AbstractSet, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple)

from ...control.status import BalancerStatus
from ...execution.batch import by_urgency
from ...execution.checks import binding_checks
from ...execution.round_state import Candidate, ThrottleState
from ...observation.cluster_view import BLOCKED, OFF, WAITING
from ...plan.model import Move
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

PLANNER = "planner"
SENDER = "sender"
GAIN = "gain"
#: The question of each stage.
_STAGES = {PLANNER: "may a plan move it there?", SENDER: "may it be sent now?",
           GAIN: "would it gain?"}
#: For one move nothing can be done against these.
_NO_HELP = (codes.FAILURE_DOMAIN, codes.HOLDS_SHARD, codes.EXCHANGE, codes.GRANULARITY,
            codes.BALANCED, codes.MIN_GAIN)
#: Codes of moves that would make the cluster more even.
_GAINING = (codes.MIN_GAIN, codes.NEARFULL)


class Pair(NamedTuple):
    """The answers on a PG and an OSD, JSON-ready."""

    rows: Sequence[Row]
    source: Optional[int]    # the OSD that would lose a shard
    sources: Sequence[int]   # the OSDs that could lose one by the CRUSH rule

    def allows(self, stage: str) -> Optional[bool]:
        """Returns True if all checks of a stage let the move pass; None if none was asked."""
        found = [row["allows"] for row in self.rows if row["stage"] == stage]
        return all(found) if found else None


class _Question(NamedTuple):
    """What the planner's checks are asked, and the codes with which they reject it."""

    pg: Pg
    osd: Osd
    source: Optional[int]
    sources: Sequence[int]
    refused: AbstractSet[str]
    census: RefusalCensus
    context: ExplainContext

    @property
    def wanted(self) -> List[int]:
        """Returns the up set with the OSD in place of the source."""
        up = list(self.pg.up)
        if self.source is not None:
            up[up.index(self.source)] = self.osd.id
        return up

    @property
    def target_index(self) -> int:
        """Returns the index of the OSD in the arrays of the placement."""
        return self.census.placement.index_of[self.osd.id]

    @property
    def used_ratio(self) -> float:
        """Returns the OSD's utilization with the shard, once all that moves has arrived."""
        census = self.census
        i = self.target_index
        assert self.source is not None
        size = census.size_there(self.pg, self.source, self.osd.id)
        return (census.placement.used_bytes[i] + size) / census.placement.size_bytes[i]


def explain_pair(pgid: str, name: str, context: ExplainContext, state: ThrottleState,
                 age_seconds: float) -> CommandAnswer:
    """Explains why a PG is not on an OSD. `state`: of a batch that is still empty; `age_seconds`:
    of the view. Raises CommandError for a PG or OSD that does not exist."""
    snapshot = context.snapshot
    pg, osd = _asked_for(pgid, name, context)
    found = ask(pg, osd, context, state)
    is_there = osd.id in pg.up
    refusing = [row for row in found.rows if not row["allows"]]
    if is_there:   # other checks would reject a move that has been made
        refusing = [row for row in refusing if row["code"] == codes.HOLDS_SHARD]
    verdict = _verdict(found, refusing, pg, osd)
    code = None
    helps = codes.NOTHING
    reason = verdict
    if refusing:
        code = refusing[0]["code"]
        helps = _helps(refusing[0], pg, osd, context)
        reason = f"{code}. {verdict}"
    place = f"{filled(osd, context)}: class {osd.device_class}, host {osd.host or 'none'}"
    lines = wrap("", pg_line(pg, context), 0) + wrap("", place, 0) + wrap("reason: ", reason, 8)
    lines += _check_lines(found.rows)
    if refusing:
        lines += wrap("do: ", helps, 4)
    lines.append(f"observed {format_duration(age_seconds)} ago, osdmap e{snapshot.epoch}")
    data = {
        "pgid": pg.pgid,
        "osd": osd.id,
        "source": found.source,
        "is_there": is_there,
        "may_go": found.allows(PLANNER),
        "may_go_now": found.allows(SENDER),
        "reason_code": code,
        "reason_text": verdict,
        "action": helps,
        "checks": list(found.rows),
        "osdmap_epoch": snapshot.epoch,
        "snapshot_age_seconds": age_seconds}
    return CommandAnswer(data, "\n".join(lines))


def _asked_for(pgid: str, name: str, context: ExplainContext) -> Tuple[Pg, Osd]:
    """Returns the PG and the OSD that the operator has named."""
    snapshot = context.snapshot
    number = osd_id(name)
    pg = snapshot.pgs.get(pgid.lower())
    if pg is None:
        error = errno.ENOENT if pgid[:1].isdigit() else errno.EINVAL
        raise CommandError(
            error, f"'{pgid}' is no PG: only a PG can be explained with OSD '{name}'")
    if number not in snapshot.osds:
        error = errno.EINVAL if number is None else errno.ENOENT
        raise CommandError(error, f"'{name}' is no OSD that pg {pgid} could go to")
    return pg, snapshot.osds[number]


def _check_lines(rows: Sequence[Row]) -> List[str]:
    lines: List[str] = []
    stage = ""
    for row in rows:
        if row["stage"] != stage:
            stage = row["stage"]
            lines.append(_STAGES[stage])
        answer = "  yes  " if row["allows"] else "  no   "
        lines += wrap(answer, _clause(row), 7)
    return lines


def _verdict(found: Pair, refusing: Sequence[Row], pg: Pg, osd: Osd) -> str:
    if osd.id in pg.up:
        return "it is there" if osd.id in pg.holders else "its shard there is on its way"
    if refusing and refusing[0]["stage"] == PLANNER:
        return f"it may not go there; {_clause(refusing[0])}"
    now = "" if found.allows(SENDER) else ", not now"
    gains = "it would gain" if found.allows(GAIN) else "it would gain nothing"
    return f"it may go there in place of osd.{found.source}{now}; {gains}"


def _clause(row: Row) -> str:
    return f"{row['check']}: {row['text']}" if row["text"] else str(row["check"])


def _helps(row: Row, pg: Pg, osd: Osd, context: ExplainContext) -> str:
    """Returns the action that lets the move pass the check of a row, which rejects it."""
    code = row["code"]
    if code in _NO_HELP:
        return codes.NOTHING
    if row["check"] == "movable":
        return action_for(pg, context)
    if osd.drained and code == codes.TARGET_UNAVAILABLE:
        return f"'ceph equilibrium drain rm {osd.id}' ends its drain"
    option = codes.REASONS[code].option
    if code == codes.OSD_EXCLUDED:
        option = _scope_option(context)
    return help_for(
        code, context,
        pool=context.snapshot.pools[pg.pool].name,
        osd=osd.id,
        option=option or None,
        limit=getattr(context.settings, option, None))


def ask(pg: Pg, osd: Osd, context: ExplainContext, state: ThrottleState) -> Pair:
    """Asks all checks of the planner, and those of the throttle if CRUSH and upmap items can place
    the PG so. Raises CommandError if the lower bounds are unknown."""
    snapshot = context.snapshot
    bounds = context.view.utilization_bounds
    if bounds is None:
        raise CommandError(errno.EAGAIN, "how even the cluster could be is not known; try again")
    # the other checks are asked as if a PG that must stay might move
    movable = {**snapshot.pgs, pg.pgid: pg._replace(immovable=None)}
    options = context.options._replace(pool_ids=None, rejected_pgs=frozenset())
    census = RefusalCensus(snapshot._replace(pgs=movable), options, bounds, {})
    answers: Dict[int, Tuple[List[str], str, float]] = {}   # source → as census.answers
    for one in pg.up:
        answer = census.answers(pg, one, osd.id)
        if answer is not None:
            answers[one] = answer
    sources = [one for one in answers if _CRUSH_REFUSES.isdisjoint(answers[one][0])]
    planned = _planned_up(pg, osd, context)
    source = _source(answers, planned)
    refused = {*pg_refusals(pg, context.options), context.excluded.codes.get(pg.pgid, "")}
    if source is not None:
        refused.update(answers[source][0])
    elif osd.id in pg.up:
        refused.add(codes.HOLDS_SHARD)
    elif osd.unusable_reason():
        refused.add(codes.TARGET_UNAVAILABLE)
    question = _Question(pg, osd, source, sources, refused, census, context)
    if source is not None and question.used_ratio > _fill_limit(question):
        refused.add(codes.FILL_LIMIT)   # the planner names a lower share instead
    rows = _of_planner(question)
    if source is None or source not in sources or codes.EXCHANGE in refused:
        return Pair(rows, source, sources)
    made = PlannedChanges(snapshot)
    made.add(pg, tuple(question.wanted), [(source, osd.id)])
    relieves = by_urgency(snapshot, state.traffic, made.changes)[1].get(pg.pgid)
    candidate = state.candidate(pg, made.changes[0], relieves)
    rows += _of_sender(candidate, state, context.status)
    code = answers[source][1]
    rows.append(_of_evenness(code, made.moves[0]))
    rows += _of_plan(pg, code, bool(planned), context)
    return Pair(rows, source, sources)


_CRUSH_REFUSES = frozenset((codes.FAILURE_DOMAIN, codes.HOLDS_SHARD))


def _planned_up(pg: Pg, osd: Osd, context: ExplainContext) -> Sequence[int]:
    """Returns the up set by the plan under way if that brings the PG to the OSD, else nothing."""
    if osd.id not in pg.up:
        for change in context.status.wanted:
            if change.pgid == pg.pgid and osd.id in change.up_after:
                return change.up_after
    return ()


def _source(answers: Mapping[int, Tuple[List[str], str, float]],
            planned: Sequence[int]) -> Optional[int]:
    """Returns the OSD that would lose a shard, or None. `planned`: the up set of the plan under
    way."""
    best: Optional[int] = None
    best_key: Tuple[bool, int, float] = (False, 0, 0.0)
    for one, (refused, _, gain) in answers.items():
        key = bool(planned) and one not in planned, -len(refused), gain
        if best is None or key > best_key:
            best = one
            best_key = key
    return best


def _row(stage: str, check: str, text: str, code: str = "") -> Row:
    return {"stage": stage, "check": check, "allows": not code, "code": code or None, "text": text}


def _of_evenness(code: str, move: Move) -> Row:
    """Returns a row that says whether the move would make the cluster more even. `code`: of the
    move, in the census."""
    figures = (f"{_change_of(move.source, move.source_before, move.source_after)},"
               f" {_change_of(move.target, move.target_before, move.target_after)}")
    if code in _GAINING:
        return _row(GAIN, "evenness", figures)
    return _row(GAIN, "evenness", f"{codes.REASONS[code].counted}; {figures}", code)


def _change_of(osd: int, before: float, after: float) -> str:
    return f"osd.{osd} from {format_percent(before)}% to {format_percent(after)}%"


def _of_plan(pg: Pg, code: str, is_planned: bool, context: ExplainContext) -> List[Row]:
    """Returns a row that says whether the plan under way, or the last one, has the move; none if
    that is not known."""
    if is_planned:
        planned = "the plan under way has the move"
        for change, verdict in context.status.deferred:
            if change.pgid == pg.pgid:
                planned = f"{planned}; {verdict.reason}"
        return [_row(GAIN, "plan", planned)]
    if context.status.progress is not None:
        return [_row(GAIN, "plan", "the plan under way does without", codes.MIN_GAIN)]
    if not context.is_idle:
        return []
    why = ", as it gains less than min_gain, or than it costs" if code in _GAINING else ""
    return [_row(GAIN, "plan", f"the last plan did without{why}", codes.MIN_GAIN)]


def _of_sender(candidate: Candidate, state: ThrottleState, status: BalancerStatus) -> List[Row]:
    """Returns the state of the loop, and the answers of the throttle's checks for one move."""
    rows = [_row(SENDER, "state", status.state)]
    if status.state in (OFF, BLOCKED, WAITING):
        rows = [_row(SENDER, "state", f"{status.state}: {status.reason}", status.reason_code)]
    for check in binding_checks(candidate):
        if check.of_batch:
            continue
        verdict = check.ask(state, candidate)
        if verdict is None:
            rows.append(_row(SENDER, check.name, ""))
        else:
            rows.append(_row(SENDER, check.name, verdict.reason, verdict.code))
    return rows


def _of_planner(question: _Question) -> List[Row]:
    """Returns the answers of the planner's checks, as far as they can be asked."""
    rows: List[Row] = []
    for check in _PLANNER_CHECKS:
        needs_target = check.needs in (_TARGET, _SOURCE)
        if needs_target and question.osd.id in question.pg.up:
            continue
        if check.needs == _SOURCE and question.source is None:
            continue
        code = ""
        for one in check.codes:
            if one in question.refused:
                code = one
                break
        rows.append(_row(PLANNER, check.name, check.figures(question), code))
    return rows


def _pool_text(question: _Question) -> str:
    return f"pool {question.context.snapshot.pools[question.pg.pool].name}"


def _movable_text(question: _Question) -> str:
    return str(question.pg.immovable or question.pg.state)


def _monitor_text(question: _Question) -> str:
    rejected = question.context.rejected.get(question.pg.pgid)
    return rejected.reason if rejected else ""


def _alone_text(question: _Question) -> str:
    alone = question.context.excluded.codes.get(question.pg.pgid)
    return codes.REASONS[alone].counted if alone else ""


def _holders_text(question: _Question) -> str:
    return f"{osds_text(question.pg.up)} hold it"


def _target_text(question: _Question) -> str:
    osd = question.osd
    return osd.unusable_reason() or f"up, in, reweight {osd.reweight:.4f}"


def _rule_text(question: _Question) -> str:
    """Returns the OSDs whose shard this OSD may take by the rule, or why the rule rejects it."""
    pg = question.pg
    osd = question.osd
    source = question.source
    rule = question.context.snapshot.pools[pg.pool].rule
    assert rule is not None and source is not None
    if osd.id not in rule.osds():
        take = question.context.snapshot.crush.name_of(rule.block_at(pg.up.index(source)).take)
        return f"osd.{osd.id} of class {osd.device_class} is not under {take}"
    if question.sources:
        return f"in place of {osds_text(question.sources)}"
    return rule.refusal(question.wanted) or ""


def _scope_text(question: _Question) -> str:
    if codes.OSD_EXCLUDED not in question.refused:
        return ""
    placement = question.census.placement
    source = question.source
    assert source is not None
    is_source = placement.is_source[placement.index_of[source]]
    left_out = question.osd.id if is_source else source
    return f"{_scope_option(question.context)} leaves osd.{left_out} out"


def _scope_option(context: ExplainContext) -> str:
    options = context.options
    if options.sources is None and options.targets is None:
        return "device_classes"
    return excluding_option(context.settings)


def _pgs_text(question: _Question) -> str:
    count = question.census.placement.shard_counts[question.target_index]
    return _counted(count + 1, question.context.options.max_pg_shards_per_osd)


def _items_text(question: _Question) -> str:
    snapshot = question.context.snapshot
    pairs = sum(map(len, snapshot.upmap_items.values()))
    left = upmap_pairs_left(question.context.options.max_upmap_items, len(snapshot.pgs), pairs)
    most = None if left is None else pairs + left
    return _counted(pairs, most)


def _counted(count: int, most: Optional[int]) -> str:
    return f"{count}, at most {most}" if most else f"{count}, no limit"


def _fill_limit(question: _Question) -> float:
    return effective_fill_limit(question.context.options.fill_limit,
                                question.context.snapshot.backfillfull_ratio)


def _fill_text(question: _Question) -> str:
    return _ratio(question.used_ratio, _fill_limit(question), "once all that moves has arrived")


def _share_text(question: _Question) -> str:
    placement = question.census.placement
    i = question.target_index
    share = placement.share_limit_bytes.get(i)
    if share is None:
        return ""
    return _ratio(question.used_ratio, share / placement.size_bytes[i], "its share by its weights")


def _ratio(value: float, most: float, what: str) -> str:
    limit = f"at most {format_percent(most)}%" if most else "no limit"
    return f"{format_percent(value)}%, {limit} ({what})"


def _no_text(_question: _Question) -> str:
    return ""


#: A check needs a PG, an OSD that has no shard of it, or also an OSD that could lose a shard.
_PG, _TARGET, _SOURCE = range(3)


class _PlannerCheck(NamedTuple):
    """One check of the planner, with its figures."""

    name: str
    codes: Tuple[str, ...]   # with which it rejects a move
    figures: Callable[[_Question], str]
    needs: int = _SOURCE


#: In their order.
_PLANNER_CHECKS = (
    _PlannerCheck("pool_ids", (codes.POOL_EXCLUDED,), _pool_text, _PG),
    _PlannerCheck("movable", (codes.IMMOVABLE, codes.PG_NUM_CHANGING), _movable_text, _PG),
    _PlannerCheck("monitor", (codes.REJECTED,), _monitor_text, _PG),
    _PlannerCheck(
        "left alone", (codes.COOLDOWN, codes.GIVEN_UP, codes.MISPREDICTED), _alone_text, _PG),
    _PlannerCheck("other shard", (codes.HOLDS_SHARD,), _holders_text, _PG),
    _PlannerCheck("CRUSH rule", (codes.FAILURE_DOMAIN,), _rule_text),
    _PlannerCheck("OSD", (codes.TARGET_UNAVAILABLE,), _target_text, _TARGET),
    _PlannerCheck("scope", (codes.OSD_EXCLUDED,), _scope_text),
    _PlannerCheck("PGs per OSD", (codes.PG_COUNT,), _pgs_text),
    _PlannerCheck("max_upmap_items", (codes.UPMAP_ITEMS,), _items_text),
    _PlannerCheck("upmap items", (codes.EXCHANGE,), _no_text),
    _PlannerCheck("fill_limit", (codes.FILL_LIMIT,), _fill_text),
    _PlannerCheck("lowered weight", (codes.REWEIGHT,), _share_text))
