"""What the page says. Its figures are those of `eval`, `status` and `osds`, taken from their JSON:
a reader who compares the page with a command finds the same."""
from __future__ import annotations

from contextlib import suppress
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from ...observation.states import OFF
from ...plan.kinds import BALANCE, is_same_placement
from ...plan.model import Move, PgChange, Plan
from ...planner.planner import CONVERGED, skipped
from ...runtime.formatting import (
    format_bytes, format_duration, format_percent, format_time, plural)
from ...snapshot import reason_codes as codes
from ...snapshot.model import Snapshot
from ...snapshot.upmap_items import items_for
from ...version import VERSION
from ..cluster.osds import held_sentences
from ..cluster.pools import format_known, format_osd
from ..command_answer import CommandAnswer
from ..status_screen import window_text
from .picture import picture
from .template import (
    SHORT_BYTES, Markup, definitions, folded, page, paragraph, section, table)

#: Bytes of a table that may be long: with both of them the page stays below 500 kB.
_POOLS_BYTES, _MOVES_BYTES = 100_000, 250_000
_CLASSES_NAMED = 3


class PageSources(NamedTuple):
    """What the command has at hand."""

    evaluation: Mapping[str, Any]       # JSON of `eval`, of the plan where there is one
    status: Mapping[str, Any]           # JSON of `status`
    osds: Sequence[Mapping[str, Any]]   # of `osds`, with the plan
    snapshot: Snapshot                  # that these rest on
    plan: Optional[Plan]
    fsid: str
    ceph_version: str
    epoch: int                          # of the newest osdmap
    now: float                          # seconds since the epoch


class _Facts(NamedTuple):
    """The sources, and what several parts of the page need of them."""

    sources: PageSources
    to_make: List[PgChange]    # changes of the plan that can be made as planned
    in_place: List[PgChange]   # those that are where the plan wants them, or on their way there
    shards: int                # that the first move, and their bytes
    bytes: int
    prefix: str                # of the keys of figures of later, and when that is; both empty
    when: str                  # where nothing is to change
    room_later: Optional[Mapping[str, Any]]
    rollback: List[str]        # commands that take the plan back

    @property
    def name(self) -> str:
        """Of the plan; empty without one."""
        return str(self.sources.evaluation.get("plan", ""))


def report_page(sources: PageSources) -> CommandAnswer:
    """The page; in JSON it stands beside its verdict, the picture and all commands that take the
    plan back."""
    facts = _facts(sources)
    evaluation, snapshot, plan = sources.evaluation, sources.snapshot, sources.plan
    said, warned = _verdict(facts), _warnings(facts)
    drawn = picture(evaluation["classes"], sources.osds,
                    (snapshot.nearfull_ratio, snapshot.backfillfull_ratio), facts.prefix,
                    facts.when)
    title = f"Equilibrium: plan {facts.name}" if plan is not None else (
        "Equilibrium: the cluster's state")
    parts = [_identity(facts), paragraph(said, "verdict"),
             *[paragraph(text, "warning") for text in warned],
             section("Before and after", *_before_and_after(facts), drawn,
                     paragraph("OSDs of each device class by utilization: the higher a column, the"
                               " more OSDs. Each row has its own scale.", "note")),
             section("Free space of pools", *_pools(facts)),
             section("What it costs", _costs(facts)),
             section("How to stop, and to go back", _ways_back(facts)),
             section("Options that differ from their defaults", _options(sources.status)),
             section("What is left out, and why", _left_out(facts)), *_moves(facts)]
    text = page(title, parts)
    return CommandAnswer({
        "plan": facts.name or None, "plan_osdmap_epoch": plan.epoch if plan is not None else None,
        "outdated": evaluation.get("is_outdated"), "osdmap_epoch": sources.epoch,
        "fsid": sources.fsid, "ceph_version": sources.ceph_version, "version": VERSION,
        "created_at": sources.now, "verdict": [said], "warnings": warned,
        "rollback": facts.rollback, "picture": drawn, "html": text}, text)


def _facts(sources: PageSources) -> _Facts:
    evaluation, status = sources.evaluation, sources.status
    pgs, plan = sources.snapshot.pgs, sources.plan
    changes = [(change, pgs[change.pgid]) for change in plan.changes
               if change.pgid in pgs] if plan is not None else []
    to_make = [change for change, pg in changes if pg.up == change.up_before]
    in_place = [change for change, pg in changes
                if pg.up == change.up_after != change.up_before]
    wanted = {change.pgid for change in to_make}
    moves = [move for move in plan.moves if move.pgid in wanted] if plan is not None else []
    prefix, when, room = "", "", None
    if plan is not None:
        prefix, when, room = "planned_", f"with {evaluation['plan']}", evaluation["planned_room"]
    elif status["execution"] is not None:
        prefix, when = "planned_", "when the plan under way is done"
    elif status["moving"]["shards"] or status["moving"]["other_shards"]:
        prefix, when, room = "soon_", "when what moves has arrived", evaluation["soon_room"]
    return _Facts(sources, to_make, in_place, len(moves), sum(move.bytes for move in moves), prefix,
                  when, room, _rollback(sources, wanted, {change.pgid for change in in_place}))


def _rollback(sources: PageSources, to_make: Set[str], made: Set[str]) -> List[str]:
    """The last change first. A PG that the plan has not touched gets the items that it has now; one
    that has moved already those that place it where the plan found it."""
    snapshot, commands = sources.snapshot, []
    for change in reversed(sources.plan.changes if sources.plan is not None else ()):
        if change.pgid in to_make:
            items = snapshot.upmap_items.get(change.pgid, ())
            commands.append(change._replace(items=items).command())
        elif change.pgid in made:
            pg = snapshot.pgs[change.pgid]
            if is_same_placement(pg.raw, change.raw, snapshot.pools[pg.pool].erasure):
                with suppress(ValueError):   # upmap items cannot express where it was
                    items = items_for(change.raw, change.up_before)
                    commands.append(change._replace(items=items).command())
    return commands


def _identity(facts: _Facts) -> Markup:
    sources, status, plan = facts.sources, facts.sources.status, facts.sources.plan
    look = sources.evaluation.get("now", sources.evaluation)
    rows = {"cluster": f"fsid {sources.fsid or 'unknown'}, {sources.ceph_version or 'Ceph'}",
            "page": f"made at {format_time(sources.now)} UTC, osdmap epoch {sources.epoch}, by"
            f" equilibrium {VERSION}; the cluster was read"
            f" {format_duration(look['snapshot_age_seconds'])} before, at epoch"
            f" {look['osdmap_epoch']}",
            "automatic balancing": ("on" if status["active"] else "off") + (
                f"; {status['state']}: {status['reason']}" if status["state"] != OFF else "")}
    if plan is not None:
        aim = f"aim {plan.aim}" if plan.kind == BALANCE else plan.kind
        rows["plan"] = f"{facts.name}, {aim}, made at osdmap epoch {plan.epoch}"
    return definitions(rows)


# -- the verdict -----------------------------------------------------------------------------------

def _verdict(facts: _Facts) -> str:
    """One sentence: what the plan costs and gives, or how the cluster is."""
    evaluation, plan, room = facts.sources.evaluation, facts.sources.plan, facts.room_later
    now = evaluation["room"]
    if now is None or now["limiting_osd"] is None or not evaluation["classes"]:
        return ("There is nothing to balance: no pool holds data, or no OSD has reported its"
                " statistics.")
    if plan is None:
        return (f"The pools have room for {format_bytes(now['bytes'])} more data if they grow"
                f" alike, until osd.{now['limiting_osd']} is full; {_maxima(facts)}; automatic"
                f" balancing is {'on' if facts.sources.status['active'] else 'off'}.")
    if not facts.to_make:
        what = (f"Nothing of plan {facts.name} is left to be moved" if plan.changes
                else f"Plan {facts.name} moves nothing")
        return f"{what}: {_maxima(facts)}."
    if not facts.shards:
        return (f"Plan {facts.name} changes {plural(len(facts.to_make), 'PG')} and moves no data:"
                f" {_maxima(facts)}.")
    assert room is not None   # there is one with each plan
    time = f", in {_expected(facts)}" if evaluation["expected_seconds"] is not None else ""
    return (f"Plan {facts.name} moves {plural(facts.shards, 'shard')}, {format_bytes(facts.bytes)}"
            f"{time}: then the pools have room for {format_bytes(room['bytes'])} more data instead"
            f" of {format_bytes(now['bytes'])}, and {_maxima(facts)}.")


def _expected(facts: _Facts) -> str:
    evaluation = facts.sources.evaluation
    return (f"about {format_duration(evaluation['expected_seconds'])}"
            f" ({evaluation['expected_from']})")


def _maxima(facts: _Facts) -> str:
    """The classes whose fullest OSD is furthest above the bound: now, later, and the bound."""
    rows = sorted(facts.sources.evaluation["classes"], reverse=True, key=lambda row: float(
        row["max_utilization"] - (row["bound_utilization"] or 0.0)))[:_CLASSES_NAMED]
    said: List[str] = []
    for row in rows:
        now, bound = (format_percent(row[key]) for key in ("max_utilization", "bound_utilization"))
        later = format_percent(row.get(f"{facts.prefix}max_utilization")) or now
        said.append(f"of class {row['device_class']} "
                    + (f"is at {now}%" if later == now else f"goes from {now}% to {later}%")
                    + (f" (the rules allow {bound}%)" if bound else ""))
    return "the fullest OSD " + ", that ".join(said)


def _warnings(facts: _Facts) -> List[str]:
    """Sentences without which the page would be read wrongly; most pages have none."""
    sources, plan, found = facts.sources, facts.sources.plan, []
    left = len(facts.to_make)
    if plan is not None:
        gone = len(plan.changes) - left - len(facts.in_place)
        of_all = (f"of its {plural(len(plan.changes), 'PG')} {len(facts.in_place)} are in place or"
                  f" on their way, {left} are still to be moved, and {gone} are elsewhere by now;"
                  " what follows is about those to be moved.")
        if (sources.status["execution"] or {}).get("plan") == facts.name:
            found.append(f"The plan is being carried out: {of_all}")
        elif sources.evaluation["is_outdated"]:
            found.append(f"The plan is outdated: it was made at osdmap epoch {plan.epoch}, and the"
                         f" newest is {sources.epoch}; {of_all}")
        if plan.stop_reason != CONVERGED:
            found.append(f"The plan was cut short: {plan.stop_reason}.")
    if sources.evaluation.get("now", sources.evaluation)["look_started"]:
        found.append("The figures are old, and the cluster is being read anew: write this page"
                     " again in a minute.")
    nearfull = sources.snapshot.nearfull_ratio
    full = [row for row in sources.evaluation["classes"]
            if (row["bound_utilization"] or 0.0) >= nearfull > 0.0]
    return found + [
        f"Balancing cannot bring class {row['device_class']} below"
        f" {format_percent(row['bound_utilization'])}%, and nearfull is"
        f" {format_percent(nearfull)}%:"
        f" {codes.action(codes.BOUND_CAPACITY, {'full_class': row['device_class']})}."
        for row in full[:_CLASSES_NAMED]]


# -- figures ---------------------------------------------------------------------------------------

def _before_and_after(facts: _Facts) -> List[Markup]:
    """What changes comes first: a narrow screen shows it without scrolling."""
    evaluation, prefix = facts.sources.evaluation, facts.prefix
    head = ["CLASS", "%MAX", "THEN %MAX", "%BOUND", "%MEAN", "STDDEV", "THEN STDDEV", "OSDS",
            "SIZE", "FULLEST", "THEN FULLEST"]
    rows = [[row["device_class"], format_percent(row["max_utilization"]),
             format_percent(row.get(f"{prefix}max_utilization")),
             format_percent(row["bound_utilization"]), format_percent(row["utilization"]),
             format_percent(row["stddev"]), format_percent(row.get(f"{prefix}stddev")),
             str(row["osds"]), format_bytes(row["size_bytes"]), format_osd(row["fullest_osd"]),
             format_osd(row.get(f"{prefix}fullest_osd"))] for row in evaluation["classes"]]
    room = [f"{format_bytes(one['bytes'])} {when} ({format_osd(one['limiting_osd'])} is full first)"
            for one, when in ((evaluation["room"], "now"), (facts.room_later, facts.when))
            if one is not None and one["limiting_osd"] is not None]
    then = f" THEN: {facts.when}." if prefix else ""
    return [_compared(head, rows, bool(prefix), "ceph equilibrium status"),
            paragraph(f"Room if all pools grow alike: {', '.join(room) or 'unknown'}."),
            paragraph(f"%BOUND: the lowest maximum that the CRUSH rules allow.{then}", "note")]


def _pools(facts: _Facts) -> List[Markup]:
    head = ["POOL", "FREE", "THEN FREE", "STORED", "%USED", "LIMITED BY", "THEN LIMITED BY", "ID",
            "PGS"]
    rows = [[row["name"], format_known(row["free_bytes"]),
             format_known(row.get("planned_free_bytes")), format_known(row["stored"]),
             format_percent(row["percent_used"]), format_osd(row["limiting_osd"]),
             format_osd(row.get("planned_limiting_osd")), str(row["id"]), str(row["pg_num"])]
            for row in facts.sources.evaluation["pools"]]
    return [_compared(head, rows, facts.sources.plan is not None,
                      f"ceph equilibrium df {facts.name}".strip(), _POOLS_BYTES),
            paragraph("FREE: what fits into this pool alone until its first OSD is full. Pools"
                      " share their OSDs, so it cannot be had for all of them at once; a pool of"
                      " little data may have less then.", "note")]


def _compared(head: Sequence[str], rows: Sequence[Sequence[str]], has_later: bool, elsewhere: str,
              most_bytes: int = SHORT_BYTES) -> Markup:
    """The table, without the columns of later figures where there are none."""
    kept = [place for place, title in enumerate(head) if has_later or not title.startswith("THEN")]
    return table([head[place] for place in kept], [[row[place] for place in kept] for row in rows],
                 1, elsewhere, most_bytes)


def _costs(facts: _Facts) -> Markup:
    status, moving = facts.sources.status, facts.sources.status["moving"]
    limits, progress = status["limits"], status["progress"]
    rows: Dict[str, str] = {}
    if facts.to_make:
        rows["still to be moved"] = (
            f"{plural(facts.shards, 'shard')} of {plural(len(facts.to_make), 'PG')},"
            f" {format_bytes(facts.bytes)}")
        if facts.sources.evaluation["expected_seconds"] is not None:
            rows["expected time"] = _expected(facts)
    rows["moving now"] = " and ".join([
        f"{plural(moving[f'{whose}shards'], 'shard')}, {format_bytes(moving[f'{whose}bytes'])},"
        f" {by}"
        for whose, by in (("", "by equilibrium"), ("other_", "for other reasons"))
        if moving[f"{whose}shards"]]) or "nothing"
    if progress is not None and progress["eta_seconds"] is not None:
        rows["time left of what is under way"] = " to ".join([
            format_duration(progress[key]) for key in ("eta_least_seconds", "eta_most_seconds")])
    rows["misplaced object copies"] = (
        f"{format_percent(status['misplaced_ratio'])}% now; no move is sent that makes it more than"
        f" {format_percent(limits['max_misplaced_ratio'])}%")
    if limits["urgent_osds"]:
        rows["misplaced object copies"] += (
            f", or {format_percent(limits['urgent_misplaced_ratio'])}% where it leaves an OSD above"
            " backfillfull")
    most = limits["max_backfills_per_osd"]
    rows["at a time"] = (f"up to {plural(most, 'shard')} to an OSD, and as many from it" if most
                         else "any number of shards to an OSD and from it")
    rows["time window"] = (window_text(status["window"]) or "at any time") + "; 'execute' does not mind it"
    rows["space meanwhile"] = "the old copy of a shard is deleted when the new one is complete"
    return definitions(rows)


def _ways_back(facts: _Facts) -> Markup:
    of_plan = f" {facts.name}" if facts.name else ""
    rows = {
        "ceph equilibrium off": "nothing more is sent; what moves already goes on",
        f"ceph equilibrium cancel{of_plan}": f"stops {'the plan' if of_plan else 'all plans'}, and"
        " takes back what was sent and has not begun to be copied; no data moves for it",
        f"ceph equilibrium undo{of_plan}": "moves back what has moved, within the same limits; with"
        " --dry-run it tells what that would cost"}
    if facts.rollback:
        rows[f"ceph equilibrium report{of_plan} --format json | jq -r '.rollback[]'"] = (
            f"{plural(len(facts.rollback), 'command')} that do so without equilibrium, to be kept"
            " before the plan is carried out: 'ceph equilibrium off' first; nothing throttles them,"
            " so run some dozens at a time")
    return definitions(rows)


def _options(status: Mapping[str, Any]) -> Markup:
    if not status["options"]:
        return paragraph("None: all of them have their defaults.")
    return table(["OPTION", "VALUE", "DEFAULT"], [
        [one["name"], one["value"] + (f" ({one['bad']})" if one["bad"] else ""), one["default"]]
        for one in status["options"]], 3)


def _left_out(facts: _Facts) -> Markup:
    """Counted reasons, and sentences on what is not counted."""
    sources, status = facts.sources, facts.sources.status
    counts = skipped(sources.snapshot) if sources.plan is None else (
        sources.plan.skipped)
    rows = [[reason, str(count)] for reason, count in sorted(
        counts.items(), key=lambda item: (-item[1], item[0]))]
    rows += [[f"PG: the monitor did not keep its upmap items: {group['reason']}",
              str(len(group["pgids"]))] for group in status["rejected"]]
    rows += [[sentence, ""] for sentence in (
        *status["left_out"], *[entry["reason"] for entry in status["mispredicted"]],
        *held_sentences(sources.snapshot))]
    if not rows:
        return paragraph("Nothing: every PG may be moved, and every OSD may take shards.")
    return table(["WHY", "COUNT"], rows, elsewhere="ceph equilibrium explain")


def _moves(facts: _Facts) -> List[Markup]:
    """The changes of the plan that are still to be made, folded; none without a plan."""
    plan = facts.sources.plan
    if plan is None or not facts.to_make:
        return []
    moves: Dict[str, List[Move]] = {}
    for move in plan.moves:
        moves.setdefault(move.pgid, []).append(move)
    rows = [[change.pgid, ", ".join([f"osd.{move.source} to osd.{move.target}"
                                     for move in moves.get(change.pgid, ())]), change.command(),
             format_bytes(sum(move.bytes for move in moves.get(change.pgid, ())))]
            for change in facts.to_make]
    return [section("Moves", folded(
        f"{plural(facts.shards, 'shard')} of {plural(len(rows), 'PG')},"
        f" {format_bytes(facts.bytes)}",
        table(["PG", "SHARDS", "COMMAND", "SIZE"], rows, 3,
              f"ceph equilibrium show {facts.name}", _MOVES_BYTES)))]
