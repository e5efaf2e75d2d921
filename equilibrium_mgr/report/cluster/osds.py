"""`osds`: how full each OSD is, will be and could be, and what moves to and from it."""
from __future__ import annotations

import errno
from typing import Dict, List, NamedTuple, Optional, Sequence

from ...observation.cluster_view import ClusterView
from ...plan.model import PgChange
from ...runtime.formatting import format_duration, wrap
from ..command_answer import CommandAnswer, CommandError
from ..table import Row, limited_rows, rest_line, sorted_rows
from .osd_figures import OSD_SORT_KEYS, osd_figures, osd_table

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
