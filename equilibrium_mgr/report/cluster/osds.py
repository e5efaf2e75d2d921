"""`osds`: how full each OSD is, will be and could be, and what moves to and from it."""
from __future__ import annotations

import errno
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_placement
from ...plan.model import PgChange
from ...plan.weight_shares import share_limits
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ...snapshot.model import Snapshot
from ...snapshot.operator_weights import held_sentence
from ..command_answer import CommandAnswer, CommandError
from ..table import Column, Row, SortKeys, limited_rows, render_table, rest_line, sorted_rows

_USUAL_ORDER = "-use"   # fullest first
_COLUMNS = (Column("ID"), Column("CLASS", is_name=True), Column("HOST", is_name=True)) + tuple(
    Column(title) for title in ("SIZE", "USED", "%USE", "%SOON", "%PLAN", "%BEST", "PGS", "IN",
                                "OUT"))
_KIB = 1 << 10
#: OSDs that are held to a share, each of which has a sentence.
_HELD_SHOWN = 10

#: Keys of `--sort`.
OSD_SORT_KEYS: SortKeys = {
    "use": lambda row: row["utilization"], "soon": lambda row: row["soon_utilization"],
    "plan": lambda row: row["planned_utilization"], "id": lambda row: row["id"],
    "host": lambda row: (row["host"], row["id"]), "pgs": lambda row: row["pgs"]}


def report_osds(view: ClusterView, age_seconds: float, wanted: Optional[Sequence[PgChange]],
                sort: Optional[str], device_class: Optional[str], host: Optional[str],
                limit: Optional[int]) -> CommandAnswer:
    """`wanted`: the changes of the execution that are not sent; None where nothing is executed.
    Raises CommandError for a selection that is not known."""
    rows = everything = osd_figures(view, wanted)
    for key, value, what in (("device_class", device_class, "has the device class"),
                             ("host", host, "is on the host")):
        known = sorted({row[key] for row in everything if row[key]})
        if value is not None and value not in known:
            raise CommandError(errno.ENOENT, f"no OSD {what} '{value}'; there are:"
                               f" {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}")
        rows = [row for row in rows if value is None or row[key] == value]
    rows = sorted_rows(rows, sort or _USUAL_ORDER, OSD_SORT_KEYS)
    shown = limited_rows(rows, limit)
    lines = [render_table(_COLUMNS, [[   # sizes in whole KiB, as `ceph osd df` has them
        str(row["id"]), row["device_class"], row["host"],
        *["" if row[key] is None else format_bytes(row[key] // _KIB * _KIB)
          for key in ("size_bytes", "used_bytes")],
        *[format_percent(row[key]) for key in (
            "utilization", "soon_utilization", "planned_utilization", "best_utilization")],
        str(row["pgs"]), f"{row['moving_in']}+{row['waiting_in']}",
        f"{row['moving_out']}+{row['waiting_out']}"] for row in shown]),
        rest_line(len(shown), len(rows), "OSD")]
    unusual: Dict[str, List[str]] = {}   # status of those not up, in and of full weight → OSDs
    for row in sorted(shown, key=lambda row: int(row["id"])):
        for status in row["status"]:
            unusual.setdefault(status, []).append(f"osd.{row['id']}")
    for status, osds in sorted(unusual.items()):
        lines += wrap(f"{status}: ", ", ".join(osds), len(status) + 2)
    lines.append(f"placement of osdmap e{view.snapshot.epoch}, {format_duration(age_seconds)} old;"
                 " IN and OUT: shards moving + waiting")
    return CommandAnswer({"osdmap_epoch": view.snapshot.epoch,
                          "snapshot_age_seconds": age_seconds, "osds": shown},
                         "\n".join(line for line in lines if line))


def osd_figures(view: ClusterView, wanted: Optional[Sequence[PgChange]] = None) -> List[Row]:
    """One row for each OSD, by id.

    Utilizations are ratios. `size_bytes`, `used_bytes`, `utilization` and `pgs` are of now; None
    for an OSD without statistics. `soon_`: when everything in flight has arrived. `planned_`: when
    the `wanted` changes have been made too; None without `wanted`. `best_`: in the most even
    placement that the rules allow. `moving_`: shards in flight, `waiting_`: of wanted changes.
    """
    planned = planned_placement(view, wanted).used if wanted is not None else {}
    best = view.utilization_bounds.utilizations if view.utilization_bounds is not None else {}
    moving_in = Counter(move.target for move in view.movements)
    moving_out = Counter(move.source for move in view.movements)
    waiting_in: Counter[int] = Counter()
    waiting_out: Counter[int] = Counter()
    for change in wanted or ():
        before, after = set(change.up_before), set(change.up_after)
        waiting_in.update(after - before)
        waiting_out.update(before - after)
    rows: List[Row] = []
    for _, osd in sorted(view.snapshot.osds.items()):
        known, number = osd.has_statistics, osd.id
        used = view.used_now.get(number, osd.used_bytes)
        now, soon, later = (
            None if count is None or not known or osd.size_bytes <= 0 else count / osd.size_bytes
            for count in (used, view.used_soon.get(number), planned.get(number)))
        status = [] if osd.up else ["destroyed" if osd.destroyed else "down"]   # in Ceph's words
        if not osd.is_in or osd.reweight <= 0.0:
            status.append("out")
        elif osd.reweight < 1.0:
            status.append(f"reweight {osd.reweight:.4f}")
        if number in view.snapshot.stale_osds:
            status.append("no new statistics")
        rows.append({
            "id": number, "device_class": osd.device_class, "host": osd.host,
            "size_bytes": osd.device_size if known else None,
            "used_bytes": view.device_used_now.get(number, used) if known else None,
            "utilization": now, "soon_utilization": soon, "planned_utilization": later,
            "best_utilization": best.get(number), "pgs": view.counts.acting.get(number, 0),
            "moving_in": moving_in[number], "waiting_in": waiting_in[number],
            "moving_out": moving_out[number], "waiting_out": waiting_out[number],
            "up": osd.up, "in": osd.is_in, "reweight": osd.reweight, "status": status})
    return rows


def held_sentences(snapshot: Snapshot) -> List[str]:
    """A sentence for each of the first OSDs, and one that counts the rest."""
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    sentences = [held_sentence(osd) for osd in held[:_HELD_SHOWN]]
    if len(held) > _HELD_SHOWN:
        more = len(held) - _HELD_SHOWN
        verb = "is" if more == 1 else "are"
        sentences.append(f"{plural(more, 'more OSD')} {verb} held to a share of the size")
    return sentences


def held_json(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """All of them, JSON-ready.

    `share` is a ratio of the size; `most_bytes` is what moves may fill the OSD to, None where no
    pool uses it.
    """
    limits = share_limits(snapshot)
    return [{"osd": osd.id, "share": osd.share, "held_by": osd.held_by,
             "most_bytes": osd.device_bytes(limits[osd.id]) if osd.id in limits else None}
            for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
