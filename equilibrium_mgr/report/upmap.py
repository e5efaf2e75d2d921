"""What upmap items there are, and which of their pairs PGs could do without."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..plan.model import Plan
from ..runtime.formatting import format_duration, plural, wrap
from ..upmap_cleanup.needless_pairs import UpmapFindings
from .command_answer import CommandAnswer
from .table import Column, render_table, rest_line

#: Rows of plain text.
_MOST_ROWS = 50
_COLUMNS = (Column("PG"), Column("FROM"), Column("TO"), Column("WHY", is_name=True))

NotCleaned = Sequence[Tuple[str, str]]   # (pgid, reason)


def report_upmaps(found: UpmapFindings, not_cleaned: NotCleaned, epoch: int,
                  age_seconds: float) -> CommandAnswer:
    """The answer of `upmap ls`."""
    lines = [f"{plural(found.pairs, 'pair')} of upmap items on {plural(found.pgs, 'PG')};"
             f" {plural(found.needless_pairs, 'pair')} could be spared"]
    if found.needless:
        lines += ["'ceph equilibrium upmap cleanup' removes them; no data moves", _table(found)]
    lines += _reasons("not looked into or not removed", not_cleaned)
    lines.append(f"upmap items of osdmap e{epoch}, {format_duration(age_seconds)} old")
    return CommandAnswer({
        "osdmap_epoch": epoch, "age_seconds": round(age_seconds, 3), "pgs": found.pgs,
        "pairs": found.pairs, "needless_pairs": found.needless_pairs,
        **_json(found, not_cleaned)}, "\n".join(lines))


def report_cleanup(name: Optional[str], dry_run: bool, plan: Plan, not_cleaned: NotCleaned,
                   found: UpmapFindings) -> CommandAnswer:
    """The answer of `upmap cleanup`. `name`: of the plan that does it; None where none is
    executed."""
    changed = {change.pgid for change in plan.changes}
    removed = sum(len(needless.items) - len(needless.keeps) for needless in found.needless
                  if needless.pgid in changed)
    what = f"removes {plural(removed, 'pair')} of upmap items on {plural(len(plan.changes), 'PG')}"
    begin = f"{name}: " if name else "would do this: "
    lines = wrap("", f"{begin}{what}; no data moves" if plan.changes else
                 "no pair of upmap items can be removed without moving data", 0)
    if plan.changes and dry_run:
        lines.append(_table(found))
    lines += _reasons("not removed", not_cleaned)
    state = "dry-run" if dry_run else "executing" if name else "completed"
    return CommandAnswer({
        "plan": name, "state": state, "pgs": len(plan.changes), "removed_pairs": removed,
        **_json(found, not_cleaned)}, "\n".join(lines))


def _table(found: UpmapFindings) -> str:
    rows = [[needless.pgid, f"osd.{source}", f"osd.{target}", why]
            for needless in found.needless
            for (source, target), why in zip(needless.pairs, needless.reasons)]
    rest = rest_line(_MOST_ROWS, len(rows), "pair")
    return render_table(_COLUMNS, rows[:_MOST_ROWS]) + (f"\n{rest}" if rest else "")


def _reasons(title: str, not_cleaned: NotCleaned) -> List[str]:
    return [line for reason, count in Counter(reason for _, reason in not_cleaned).most_common()
            for line in wrap("", f"{title}: {plural(count, 'PG')}: {reason}", 0)]


def _json(found: UpmapFindings, not_cleaned: NotCleaned) -> Dict[str, Any]:
    return {"needless": [{
        "pgid": needless.pgid, "items": [list(pair) for pair in needless.items],
        "keeps": [list(pair) for pair in needless.keeps],
        "needless": [{"from": source, "to": target, "reason": why}
                     for (source, target), why in zip(needless.pairs, needless.reasons)]}
        for needless in found.needless],
        "not_cleaned": [{"pgid": pgid, "reason": reason} for pgid, reason in not_cleaned]}
