"""Utilization: a strip for each device class, and OSDs or hosts sorted by fill."""
from __future__ import annotations

from typing import List, Sequence

from ...runtime.formatting import format_bytes, format_percent, plural
from ...runtime.time_slice import give_way
from .drawings.axis import Drawing
from .facts.fill import Fill, host_fills
from .markup import LEFT, RIGHT, Html, element, folded, joined, paragraph, section, table
from .drawings.profile import fill_profile
from .facts.sources import PageFacts
from .drawings.strip import LATER_COLOR, NOW_COLOR, Row, utilization_strip

#: More OSDs than this are shown by host.
MOST_OSDS = 500
#: Rows of OSDs or hosts that are seen without opening the list of all.
_SHOWN = 25
#: Rows of that list: more than a page of 500 kB may have are counted only.
_MOST_ROWS = 500


def utilization_section(facts: PageFacts) -> Html:
    """Figures, strip and profile of each device class."""
    if not facts.osds:
        return section("Utilization", paragraph("No OSD is in and has reported statistics."))
    return section("Utilization by device class", _class_table(facts), _key(facts), *[
        _class_drawings(facts, name, osds) for name, osds in facts.by_class().items()])


def fill_section(facts: PageFacts) -> Html:
    """OSDs, or hosts where there are too many OSDs, the fullest first."""
    by_host = len(facts.osds) > MOST_OSDS
    rows = host_fills(facts.osds) if by_host else facts.osds
    title = "Hosts by their fullest OSD" if by_host else "OSDs by fill"
    parts: List[Html] = [_fill_table(facts, title, rows[:_SHOWN], by_host)] if rows else []
    rest = rows[_SHOWN:_MOST_ROWS]
    if rest:
        parts.append(folded(f"The other {len(rows) - _SHOWN}",
                            _fill_table(facts, title, rest, by_host)))
    if len(rows) > _MOST_ROWS:
        parts.append(paragraph(f"{len(rows) - _MOST_ROWS} more are left out; 'ceph equilibrium osds"
                               "' has all of them.", class_="note"))
    return section(title, _key(facts), *parts)


def class_strip(facts: PageFacts, name: str, osds: Sequence[Fill]) -> Drawing:
    """The strip of a device class."""
    rows = [Row("now", NOW_COLOR, [osd.now for osd in osds])]
    if facts.later.label:
        rows.append(Row(facts.later.label, LATER_COLOR,
                        [osd.later for osd in osds if osd.later is not None]))
    return utilization_strip(class_title(name, osds), rows, facts.levels(name))


def class_title(name: str, osds: Sequence[Fill]) -> str:
    """The heading of a device class."""
    size = format_bytes(sum(osd.size_bytes for osd in osds))
    return f"Class {name}: {plural(len(osds), 'OSD')}, {size}"


def _class_drawings(facts: PageFacts, name: str, osds: Sequence[Fill]) -> Html:
    title = class_title(name, osds)
    strip = class_strip(facts, name, osds)
    give_way()
    profile = fill_profile(title, osds, facts.later.label, facts.levels(name))
    give_way()
    return joined([
        element("h3", title),
        element("figure", strip.svg(), element(
            "figcaption", "One mark for each OSD, or a bar where there are too many; the height of"
            " each row has its own scale.", class_="note")),
        element("figure", profile.svg(), element(
            "figcaption", "Every OSD, the fullest now on the left.", class_="note"))])


def _class_table(facts: PageFacts) -> Html:
    header = ["CLASS", "OSDS", "SIZE", "%USE", "%MAX", "FULLEST", "%MIN", "STDDEV", "%SOON",
              "%PLAN", "%BOUND"]
    rows = [[row["device_class"], str(row["osds"]), format_bytes(row["size_bytes"]),
             format_percent(row["utilization"]), format_percent(row["max_utilization"]),
             f"osd.{row['fullest_osd']}", format_percent(row["min_utilization"]),
             format_percent(row["stddev"]), format_percent(row["soon_max_utilization"]),
             format_percent(row["planned_max_utilization"]),
             format_percent(row["bound_utilization"])]
            for row in facts.classes]
    return joined([
        table("Utilization by device class", header, [LEFT] + [RIGHT] * (len(header) - 1), rows),
        paragraph("%USE, %MAX, %MIN and STDDEV are of now, as OSDs report them; %SOON is the"
                  " fullest OSD when what moves has arrived, %PLAN with the plan; %BOUND is the"
                  " lowest that the CRUSH rules allow.", class_="note")])


def _fill_table(facts: PageFacts, label: str, fills: Sequence[Fill], by_host: bool) -> Html:
    later = [facts.later.column] if facts.later.column else []
    header = (["HOST", "CLASS", "OSDS", "SIZE", "%MAX"] if by_host
              else ["OSD", "CLASS", "HOST", "SIZE", "%USE"])
    kinds = [LEFT, LEFT, RIGHT if by_host else LEFT, RIGHT, RIGHT]
    rows = ([fill.name, fill.device_class, str(fill.osds) if by_host else fill.host,
             format_bytes(fill.size_bytes), format_percent(fill.max_now)]
            + [format_percent(fill.max_later)] * len(later) + [_bars(fill)] for fill in fills)
    header, kinds = [*header, *later, "0% TO 100%"], [*kinds, *[RIGHT] * len(later), "bar"]
    return table(label, header, kinds, rows)


def _bars(fill: Fill) -> Html:
    bars = element("i", style=f"width:{_width(fill.max_now)}")
    if fill.max_later is not None:
        bars = joined([bars, element("b", style=f"width:{_width(fill.max_later)}")])
    return bars


def _width(ratio: float) -> str:
    return f"{100.0 * min(max(ratio, 0.0), 1.0):.1f}%"


def _key(facts: PageFacts) -> Html:
    """What the two colors mean."""
    later = [element("b"), facts.later.label] if facts.later.label else []
    return element("p", element("i"), "now", *later, class_="key")
