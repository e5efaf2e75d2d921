"""The verdict: what unequal filling costs now, and what the plan gives for how much."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from ...observation.transfer_rates import ExpectedTime, expected_time
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural
from ...plan.model import Room
from ...snapshot import reason_codes as codes
from ...snapshot.reason_codes import action
from .markup import Html, joined, paragraph
from .facts.plan_standing import PlanStanding
from .facts.sources import PageFacts

#: Utilizations that differ by less are the same to a reader, a ratio.
_SAME = 0.0005

_CLASSES_NAMED = 3

_Row = Dict[str, Any]   # one of class_figures


def verdict_block(facts: PageFacts) -> Html:
    """The verdict's two sentences, and what a reader must know beside them."""
    return joined([paragraph(" ".join(verdict(facts)), class_="verdict")]
                  + [paragraph(warning, class_="warning") for warning in warnings(facts)]
                  + [paragraph(sentence) for sentence in _while_it_runs(facts)]
                  + [paragraph(sentence) for sentence in capacity_sentences(facts)])


def verdict(facts: PageFacts) -> List[str]:
    """Two sentences: of now, and of the plan or of what can be done."""
    worst = _limiting_class(facts)
    if worst is None or facts.room_now is None or facts.room_now.limiting_osd is None:
        return ["There is nothing to balance: no pool holds data, or no OSD has reported its"
                " statistics."]
    return [_sentence_of_now(facts, worst), _sentence_of_plan(facts, facts.standing, worst)
            if facts.standing is not None else _sentence_without_plan(facts, worst)]


def warnings(facts: PageFacts) -> List[str]:
    """Sentences without which the page would be read wrongly; most pages have none."""
    found = [_plan_warning(facts, facts.standing)] if facts.standing is not None else []
    age = facts.sources.identity.now - facts.view.snapshot.taken_at
    if age > facts.sources.settings.sleep_interval:
        found.append(f"What moves and what stays is as it was {format_duration(age)} ago; the"
                     " cluster is being read anew: write this page again in a minute.")
    return [sentence for sentence in found if sentence]


def _plan_warning(facts: PageFacts, standing: PlanStanding) -> str:
    """Says that the plan is outdated, or is being carried out; empty where neither is so."""
    if not standing.is_older:
        return ""
    shards = sum(change.shards for change in standing.plan.changes)
    left = sum(change.shards for change in standing.to_make)
    made = sum(change.shards for change in standing.in_place)
    gone = shards - left - made
    if facts.sources.status.plan_name == standing.name and not gone:
        return (f"The plan is being carried out: {made} of its {plural(shards, 'shard')} are in"
                " place or on their way; what follows is about the others.")
    text = (f"The plan is outdated: it was made at osdmap epoch {standing.plan.epoch}, and the"
            f" newest is {facts.sources.identity.epoch}.")
    if left == shards:
        return f"{text} All its shards can still be moved as planned."
    text += (f" Of its {plural(shards, 'shard')} {left} can still be moved as planned, {made} are"
             f" in place or on their way, and {gone} cannot be moved so any more; what follows is"
             " about the first.")
    return text + (f" 'ceph equilibrium optimize {standing.name} --replace' makes it anew."
                   if gone else "")


def _while_it_runs(facts: PageFacts) -> List[str]:
    """What a plan that is still to be made does to the cluster meanwhile, and what ends it."""
    if facts.standing is None or not facts.standing.moves:
        return []
    shards = facts.sources.settings.max_backfills_per_osd
    limit = f", and up to {plural(shards, 'shard')} to an OSD and {shards} from it at a time"
    ratio = format_percent(facts.view.max_misplaced_ratio)
    return [f"While it runs, moves are sent until {ratio}% of the object copies are misplaced"
            f"{limit if shards else ''}. The old copy of a shard is deleted when the new one is"
            " complete. 'ceph equilibrium off' stops it, but for what moves already; Rollback,"
            " below, takes it back."]


def capacity_sentences(facts: PageFacts) -> List[str]:
    """A sentence for each class that no balancing brings below nearfull."""
    nearfull = facts.view.snapshot.nearfull_ratio
    return [f"Balancing cannot bring class {name} below {format_percent(bound)}%, and nearfull is"
            f" {format_percent(nearfull)}%: {action(codes.BOUND_CAPACITY, {'full_class': name})}."
            for name, bound in sorted(facts.view.bounds.items()) if bound >= nearfull > 0.0]


def _limiting_class(facts: PageFacts) -> Optional[_Row]:
    """The class of the OSD that is full first, else the one that is furthest above its bound."""
    rows = facts.classes
    limiting = facts.room_now.limiting_osd if facts.room_now is not None else None
    osd = facts.view.snapshot.osds.get(-1 if limiting is None else limiting)
    for row in rows:
        if osd is not None and row["device_class"] == osd.device_class:
            return row
    return max(rows, default=None, key=lambda row: float(
        row["max_utilization"] - (row["bound_utilization"] or 0.0)))


def _sentence_of_now(facts: PageFacts, worst: _Row) -> str:
    room, name = facts.room_now, worst["device_class"]
    assert room is not None and room.limiting_osd is not None
    osd = facts.view.snapshot.osds[room.limiting_osd]
    used = facts.view.used_now.get(osd.id, osd.used_bytes) / max(1, osd.size_bytes)
    loss = facts.room_later.bytes - room.bytes if facts.room_later is not None else 0
    begin = (f"Unequal filling costs this cluster {format_bytes(loss)}: growing alike, its pools"
             if loss > 0 else "Growing alike, the pools")
    return (f"{begin} have room for {format_bytes(room.bytes)} more data until osd.{osd.id} is"
            f" full; it is at {format_percent(used)}%, and class {name} as a whole at"
            f" {format_percent(worst['utilization'])}%.")


def _sentence_of_plan(facts: PageFacts, standing: PlanStanding, worst: _Row) -> str:
    room = facts.room_later
    if not standing.moves or room is None:
        return (f"Plan {standing.name} moves nothing: {_at_bound(worst)}"
                if not standing.plan.changes
                else f"Nothing of plan {standing.name} is left to be moved: {_at_bound(worst)}")
    expected = _expected_time(facts, standing)
    time = ("" if expected is None
            else f", in about {format_duration(expected.seconds)} ({expected.basis})")
    return (f"Plan {standing.name} moves {plural(len(standing.moves), 'shard')},"
            f" {format_bytes(standing.bytes)}{time}: {_gain(facts, room)}.")


def _expected_time(facts: PageFacts, standing: PlanStanding) -> Optional[ExpectedTime]:
    to_come: Dict[int, int] = {}
    for move in standing.moves:
        to_come[move.target] = to_come.get(move.target, 0) + move.bytes
    return expected_time(facts.view.rates, facts.view.movements, to_come)


def _gain(facts: PageFacts, room: Room) -> str:
    return (f"then there is room for {format_bytes(room.bytes)}, and the fullest OSD"
            f" {_maxima(facts.classes)}")


def _maxima(rows: List[_Row]) -> str:
    """The classes whose maximum falls most: 'of class hdd goes from 87.00% to 77.79% (…)'."""
    known = [row for row in rows if row["planned_max_utilization"] is not None]
    changed = sorted(known, key=lambda row: float(
        row["planned_max_utilization"] - row["max_utilization"]))[:_CLASSES_NAMED]
    return ", that ".join([
        f"of class {row['device_class']} goes from {format_percent(row['max_utilization'])}% to"
        f" {format_percent(row['planned_max_utilization'])}%"
        + (f" (bound {format_percent(row['bound_utilization'])}%)"
           if row["bound_utilization"] is not None else "") for row in changed])


def _sentence_without_plan(facts: PageFacts, worst: _Row) -> str:
    status = facts.sources.status
    active = "on" if facts.sources.settings.active else "off"
    if facts.wanted is not None and facts.room_later is not None:
        left = sum(change.shards for change in facts.wanted)
        return (f"What is under way moves {plural(facts.view.in_flight_moves, 'shard')} now and"
                f" {left} after them: {_gain(facts, facts.room_later)}.")
    if facts.room_later is not None:
        return (f"When what moves has arrived, the fullest OSD of class {worst['device_class']} is"
                f" at {format_percent(worst['soon_max_utilization'])}%{_bound(worst)}, and there"
                f" is room for {format_bytes(facts.room_later.bytes)}.")
    if worst["bound_utilization"] is not None and (
            worst["max_utilization"] - worst["bound_utilization"] > _SAME) and (
            status.state in ("off", "waiting", "blocked")):
        return (f"The CRUSH rules allow a maximum of"
                f" {format_percent(worst['bound_utilization'])}% there; automatic balancing is"
                f" {active}, and 'ceph equilibrium optimize NAME' makes a plan.")
    return f"Automatic balancing is {active}: {status.state}, {status.reason}."


def _at_bound(worst: _Row) -> str:
    highest, bound = format_percent(worst["max_utilization"]), worst["bound_utilization"]
    text = f"the fullest OSD of class {worst['device_class']} is at {highest}%"
    return text + ("." if bound is None
                   else f", and the CRUSH rules allow no less than {format_percent(bound)}%.")


def _bound(worst: _Row) -> str:
    bound = worst["bound_utilization"]
    return f" (the CRUSH rules allow no less than {format_percent(bound)}%)" if (
        bound is not None) else ""
