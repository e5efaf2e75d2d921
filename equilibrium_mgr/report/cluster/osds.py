"""`osds`: how full each OSD is, will be and could be, and which shards move to and from it."""
from __future__ import annotations

from errno import ENOENT
from collections import Counter
from operator import itemgetter
from typing import Any, Collection, Dict, List, Mapping, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...plan.load import load_ratio, loads_of_sets
from ...plan.model import PgChange
from ...plan.options import osds_named
from ...runtime.formatting import format_bytes, format_percent, wrap
from ...runtime.time_slice import grouped
from ...snapshot.model import Osd, Snapshot
from ..answer import (
    CommandAnswer, CommandError, Row, SortKeys, limited_rows, render_table, rest_line, sorted_rows)
from .cluster_tables import Columns, age_json, age_line, cells_of, format_figure, text_of
from .evaluation import Look

#: Keys of `--sort`.
SORT_KEYS: SortKeys = {
    "use": itemgetter("utilization"),
    "soon": itemgetter("soon_utilization"),
    "plan": itemgetter("planned_utilization"),
    "id": itemgetter("id"),
    "host": itemgetter("host", "id"),
    "pgs": itemgetter("pgs"),
    "load": itemgetter("load")}
_KIB = 1 << 10


def _whole_kib(count: int) -> str:
    """Formats bytes as `ceph osd df` does, which counts whole KiB."""
    return format_bytes(count // _KIB * _KIB)


_HEAD = "ID|CLASS<|HOST<|SIZE|USED|%USE|%SOON|%PLAN|%BEST|PGS"
_COLUMNS: Columns = {
    "id": str,
    "device_class": str,
    "host": str,
    "size_bytes": _whole_kib,
    "used_bytes": _whole_kib,
    "utilization": format_percent,
    "soon_utilization": format_percent,
    "planned_utilization": format_percent,
    "best_utilization": format_percent,
    "pgs": str}


def report_osds(look: Look, names: Optional[Sequence[str]], sort: Optional[str],
                limit: Optional[int]) -> CommandAnswer:
    """Shows all OSDs, or those of `names`: OSDs, hosts, other buckets and device classes. Raises
    CommandError for a name that does not exist and for a wrong sort key or limit."""
    view = look.view
    age = look.age_seconds
    rows = _rows(view, look.wanted)
    if names:
        found = frozenset().union(*[_osds_of(name, view.snapshot) for name in names])
        rows = [row for row in rows if row["id"] in found]
    shown = limited_rows(sorted_rows(rows, sort or "-use", SORT_KEYS), limit)
    cells = cells_of(shown, _COLUMNS)
    head = _HEAD
    if view.loads:
        head += "|LOAD"
    for row, line in zip(shown, cells):
        if view.loads:
            line.append(format_figure(row["load"], 2))
        line.append(f"{row['moving_in']}+{row['waiting_in']}")
        line.append(f"{row['moving_out']}+{row['waiting_out']}")
    lines = [render_table(f"{head}|IN|OUT", cells)]
    lines.append(rest_line(len(shown), len(rows), "OSD"))
    lines += _status_lines(shown)
    lines.append(f"{age_line(view, age)}; IN and OUT: shards moving + waiting")
    return CommandAnswer({**age_json(view, age), "osds": shown}, text_of(lines))


def _rows(view: ClusterView, wanted: Optional[Collection[PgChange]]) -> List[Row]:
    """Returns one row for each OSD, ordered by id.

    Utilizations are ratios. `pgs`, `size_bytes`, `used_bytes` and `utilization` are current; the
    last three are None for an OSD without statistics. `soon_`: after everything in flight has
    arrived. `planned_`: after the `wanted` changes as well; None without `wanted`. `best_`: in the
    most even placement that the rules allow. `load`: as a ratio of the mean of its OSD set, None if
    it is not known. `moving_`: shards in flight. `waiting_`: shards of the wanted changes.
    """
    planned: Mapping[int, int] = {}
    best: Mapping[int, float] = {}
    if wanted is not None:
        planned = view.planned(wanted).used
    if view.utilization_bounds is not None:
        best = view.utilization_bounds.utilizations
    counts = _shard_counts(view, wanted or ())
    sets = loads_of_sets(view.snapshot, view.loads)
    rows: List[Row] = []
    for number, osd in sorted(view.snapshot.osds.items()):
        row = _row(view, osd)
        row["load"] = load_ratio(view.snapshot, view.loads, sets, number)
        row["planned_utilization"] = _utilization(osd, planned.get(number))
        row["best_utilization"] = best.get(number)
        row.update({key: count[number] for key, count in counts.items()})
        rows.append(row)
    return rows


def _shard_counts(view: ClusterView, wanted: Collection[PgChange]) -> Dict[str, Counter[Any]]:
    """Returns, for each field of a row that counts shards, OSD id → shards."""
    moving_in = Counter([move.target for move in view.movements])
    moving_out = Counter([move.source for move in view.movements])
    waiting_in: Counter[int] = Counter()
    waiting_out: Counter[int] = Counter()
    for change in wanted:
        waiting_in.update(change.gained_by)
        waiting_out.update(change.lost_by)
    return {
        "moving_in": moving_in,
        "moving_out": moving_out,
        "waiting_in": waiting_in,
        "waiting_out": waiting_out}


def _row(view: ClusterView, osd: Osd) -> Row:
    """Returns the fields that depend on the view alone."""
    size = used = None
    number = osd.id
    used_bytes = view.used_now[number]
    if osd.has_statistics:
        size = osd.device_size
        used = view.device_used_now.get(number, used_bytes)
    return {
        "id": number,
        "device_class": osd.device_class,
        "host": osd.host,
        "size_bytes": size,
        "used_bytes": used,
        "utilization": _utilization(osd, used_bytes),
        "soon_utilization": _utilization(osd, view.used_soon[number]),
        "pgs": view.counts.acting.get(number, 0),
        "status": _status(osd, view.snapshot)}


def _utilization(osd: Osd, used_bytes: Optional[int]) -> Optional[float]:
    """Returns the used bytes as a ratio of the size; None if one of them is unknown."""
    if used_bytes is None or osd.size_bytes <= 0 or not osd.has_statistics:
        return None
    return used_bytes / osd.size_bytes


def _status(osd: Osd, snapshot: Snapshot) -> List[str]:
    """Returns the unusual states of an OSD, in Ceph's words."""
    words = []
    if not osd.up:
        words.append("destroyed" if osd.destroyed else "down")
    is_out = not osd.is_in or osd.reweight <= 0.0
    if is_out:
        words.append("out")
    elif osd.reweight < 1.0:
        words.append(f"reweight {osd.reweight:.4f}")
    if osd.id in snapshot.stale_osds:
        words.append("no new statistics")
    if not is_out and not osd.has_statistics:
        words.append("no statistics")
    return words


def _osds_of(name: str, snapshot: Snapshot) -> Collection[int]:
    """Returns the OSDs that a name stands for. Raises CommandError if there are none."""
    of_class = frozenset([osd.id for osd in snapshot.osds.values() if osd.device_class == name])
    found = osds_named(name, snapshot.crush) or of_class
    if not found:
        raise CommandError(ENOENT, f"'{name}' is no OSD, no host and no device class")
    return found


def _status_lines(rows: Sequence[Row]) -> List[str]:
    """Returns a line for each status of the shown OSDs, with these OSDs."""
    osds = grouped((status, row["id"]) for row in rows for status in row["status"])
    lines: List[str] = []
    for status, numbers in sorted(osds.items()):
        names = ", ".join([f"osd.{osd}" for osd in sorted(numbers)])
        lines += wrap(f"{status}: ", names, len(status) + 2)
    return lines
