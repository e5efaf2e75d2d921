"""The figures of OSDs: of now as `ceph osd df` has them, and of what is to come."""
from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...observation.planned_placement import planned_placement
from ...plan.model import PgChange
from ...runtime.formatting import format_bytes, format_percent
from ...snapshot.model import Osd
from ..table import Column, Row, SortKeys, render_table

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
