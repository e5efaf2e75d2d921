"""`osds`: how full each OSD is, will be and could be, and what moves to and from it."""
from __future__ import annotations

import errno
from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_placement
from ...plan.model import PgChange
from ...plan.weight_shares import share_limits
from ...runtime.formatting import format_bytes, format_duration, format_percent, plural, wrap
from ...snapshot.model import Osd, Snapshot
from ...snapshot.operator_weights import held_sentence
from ..command_answer import CommandAnswer, CommandError
from ..table import Column, Row, SortKeys, limited_rows, render_table, rest_line, sorted_rows


#: Fullest first.
_USUAL_ORDER = "-use"


class OsdSelection(NamedTuple):
    """The arguments of the command; None for one that was not given."""

    sort: Optional[str] = None
    device_class: Optional[str] = None
    host: Optional[str] = None
    limit: Optional[int] = None


def report_osds(view: ClusterView, age_seconds: float, wanted: Optional[Sequence[PgChange]],
                selection: OsdSelection) -> CommandAnswer:
    """`wanted`: the changes of the execution that are not sent; None where nothing is executed.
    Raises CommandError for a selection that is not known."""
    rows = _selected(osd_figures(view, wanted), selection)
    rows = sorted_rows(rows, selection.sort or _USUAL_ORDER, OSD_SORT_KEYS)
    shown = limited_rows(rows, selection.limit)
    lines = [osd_table(shown), rest_line(len(shown), len(rows), "OSD"), *_status_lines(shown),
             f"placement of osdmap e{view.snapshot.epoch}, {format_duration(age_seconds)} old;"
             " IN and OUT: shards moving + waiting"]
    return CommandAnswer({"osdmap_epoch": view.snapshot.epoch,
                          "snapshot_age_seconds": age_seconds, "osds": shown},
                         "\n".join(line for line in lines if line))


def _selected(rows: Sequence[Row], selection: OsdSelection) -> List[Row]:
    found = list(rows)
    for key, value, what in (("device_class", selection.device_class, "has the device class"),
                             ("host", selection.host, "is on the host")):
        if value is None:
            continue
        known = sorted({row[key] for row in rows if row[key]})
        if value not in known:
            raise CommandError(errno.ENOENT, f"no OSD {what} '{value}'; there are:"
                               f" {', '.join(known[:20])}{', ...' if len(known) > 20 else ''}")
        found = [row for row in found if row[key] == value]
    return found


def _status_lines(rows: Sequence[Row]) -> List[str]:
    """The OSDs that are not up, in and of full weight, one line for each status."""
    groups: Dict[str, List[int]] = {}
    for row in rows:
        for status in row["status"]:
            groups.setdefault(status, []).append(row["id"])
    return [line for status, osds in sorted(groups.items()) for line in wrap(
        f"{status}: ", ", ".join(f"osd.{osd}" for osd in sorted(osds)), len(status) + 2)]


_COLUMNS = (Column("ID"), Column("CLASS", is_name=True), Column("HOST", is_name=True)) + tuple(
    Column(title) for title in ("SIZE", "USED", "%USE", "%SOON", "%PLAN", "%BEST", "PGS", "IN",
                                "OUT"))
_KIB = 1 << 10

#: Keys of `--sort`.
OSD_SORT_KEYS: SortKeys = {
    "use": lambda row: row["utilization"], "soon": lambda row: row["soon_utilization"],
    "plan": lambda row: row["planned_utilization"], "id": lambda row: row["id"],
    "host": lambda row: (row["host"], row["id"]), "pgs": lambda row: row["pgs"]}


class _Shards(NamedTuple):
    """OSD id → shards that come or leave."""

    moving_in: Mapping[int, int]
    moving_out: Mapping[int, int]
    waiting_in: Mapping[int, int]
    waiting_out: Mapping[int, int]


def osd_figures(view: ClusterView, wanted: Optional[Sequence[PgChange]] = None) -> List[Row]:
    """One row for each OSD, by id.

    Utilizations are ratios. `size_bytes`, `used_bytes`, `utilization` and `pgs` are of now; None
    for an OSD without statistics. `soon_`: when everything in flight has arrived. `planned_`: when
    the `wanted` changes have been made too; None without `wanted`. `best_`: in the most even
    placement that the rules allow. `moving_`: shards in flight, `waiting_`: of wanted changes.
    """
    planned = planned_placement(view, wanted).used if wanted is not None else {}
    best = view.utilization_bounds.utilizations if view.utilization_bounds is not None else {}
    shards = _shards(view, wanted or ())
    return [_row(view, osd, shards, planned, best) for _, osd in sorted(view.snapshot.osds.items())]


def osd_table(rows: Sequence[Dict[str, Any]]) -> str:
    """One line for each row of `osd_figures`; sizes in whole KiB, as `ceph osd df` has them."""
    return render_table(_COLUMNS, [[
        str(row["id"]), row["device_class"], row["host"], _kib(row["size_bytes"]),
        _kib(row["used_bytes"]), format_percent(row["utilization"]),
        format_percent(row["soon_utilization"]), format_percent(row["planned_utilization"]),
        format_percent(row["best_utilization"]), str(row["pgs"]),
        f"{row['moving_in']}+{row['waiting_in']}", f"{row['moving_out']}+{row['waiting_out']}"]
        for row in rows])


def _row(view: ClusterView, osd: Osd, shards: _Shards, planned: Mapping[int, int],
         best: Mapping[int, float]) -> Row:
    known = osd.has_statistics
    used = view.used_now.get(osd.id, osd.used_bytes)
    return {
        "id": osd.id, "device_class": osd.device_class, "host": osd.host,
        "size_bytes": osd.device_size if known else None,
        "used_bytes": view.device_used_now.get(osd.id, used) if known else None,
        "utilization": _ratio(osd, used),
        "soon_utilization": _ratio(osd, view.used_soon.get(osd.id)),
        "planned_utilization": _ratio(osd, planned.get(osd.id)),
        "best_utilization": best.get(osd.id), "pgs": view.pgs_now.get(osd.id, 0),
        "moving_in": shards.moving_in.get(osd.id, 0),
        "waiting_in": shards.waiting_in.get(osd.id, 0),
        "moving_out": shards.moving_out.get(osd.id, 0),
        "waiting_out": shards.waiting_out.get(osd.id, 0),
        "up": osd.up, "in": osd.is_in, "reweight": osd.reweight,
        "status": _status(osd, osd.id in view.snapshot.stale_osds)}


def _shards(view: ClusterView, wanted: Iterable[PgChange]) -> _Shards:
    waiting_in: Dict[int, int] = Counter()
    waiting_out: Dict[int, int] = Counter()
    for change in wanted:
        before, after = set(change.up_before), set(change.up_after)
        for osd in after - before:
            waiting_in[osd] += 1
        for osd in before - after:
            waiting_out[osd] += 1
    return _Shards(
        Counter(move.target for move in view.movements if move.target is not None),
        Counter(move.source for move in view.movements if move.source is not None),
        waiting_in, waiting_out)


def _status(osd: Osd, is_silent: bool) -> List[str]:
    """What is not usual about the OSD, in Ceph's words; empty for one that is up and in."""
    found = [] if osd.up else ["destroyed" if osd.destroyed else "down"]
    if not osd.is_in or osd.reweight <= 0.0:
        found.append("out")
    elif osd.reweight < 1.0:
        found.append(f"reweight {osd.reweight:.4f}")
    if is_silent:
        found.append("no new statistics")
    return found


def _ratio(osd: Osd, used: Optional[int]) -> Optional[float]:
    if not osd.has_statistics or osd.size_bytes <= 0 or used is None:
        return None
    return used / osd.size_bytes


def _kib(count: Optional[int]) -> str:
    return "" if count is None else format_bytes(count // _KIB * _KIB)


_SHOWN = 10


def held_sentences(snapshot: Snapshot) -> List[str]:
    """A sentence for each of the first OSDs, and one that counts the rest."""
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    sentences = [held_sentence(osd) for osd in held[:_SHOWN]]
    if len(held) > _SHOWN:
        more = len(held) - _SHOWN
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
