"""`df`: the bytes that clients can still write into each pool, and into all of them."""
from __future__ import annotations

from operator import itemgetter
from typing import Optional

from ..answer import CommandAnswer, SortKeys, limited_rows, render_table, rest_line, sorted_rows
from .cluster_tables import (
    age_json, age_line, pool_rows, pool_table, room_json, room_lines)
from .evaluation import Look, joined

#: Keys of `--sort`.
SORT_KEYS: SortKeys = {
    "used": itemgetter("percent_used"),
    "stored": itemgetter("stored"),
    "free": itemgetter("free_bytes"),
    "planned": itemgetter("planned_free_bytes"),
    "pgs": itemgetter("pg_num"),
    "ops": itemgetter("operations_per_second"),
    "id": itemgetter("id"),
    "name": itemgetter("name")}


def report_df(look: Look, plan: Optional[str], sort: Optional[str],
              limit: Optional[int]) -> CommandAnswer:
    """Shows the free space now, and after the wanted changes of the look. `plan`: the name of the
    kept plan that has these changes, if any. Raises CommandError for a wrong sort key or limit."""
    view = look.view
    age = look.age_seconds
    planned = later = None
    now = view.usage_now()
    room = room_json(now.room)
    if look.wanted is not None:
        planned = view.planned(look.wanted).usage()
        later = room_json(planned.room)
    rows = pool_rows(view, look.space, now, planned)
    if sort is not None:
        rows = sorted_rows(rows, sort, SORT_KEYS)
    shown = limited_rows(rows, limit)
    data = {
        **age_json(view, age),
        "plan": plan,
        "room": room,
        "planned_room": later,
        "pools": shown}
    when = "with the plan" if plan is None else f"with plan {plan}"
    head = [age_line(view, age), *room_lines(room, later, when)]
    table = [render_table(*pool_table(shown)), rest_line(len(shown), len(rows), "pool")]
    return CommandAnswer(data, joined([head, table]))
