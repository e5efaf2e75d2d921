"""The module's options as Ceph sees them and as typed values."""
from __future__ import annotations

import math
import re
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional

from .planner.options import AIMS

OPTIONS: List[Dict[str, Any]] = [
    dict(name="active", type="bool", default=False, runtime=True,
         desc="balance automatically",
         long_desc="Set by `ceph equilibrium on` and `off`. While false, only plans handed over "
                   "with `ceph equilibrium execute` move data."),
    dict(name="sleep_interval", type="secs", default=60, min=1, max=86400, runtime=True,
         desc="seconds between two rounds",
         long_desc="How often the cluster is looked at again and the next batch is sent."),
    dict(name="pool_ids", type="str", default="", runtime=True,
         desc="comma-separated ids of the pools to balance; empty for all",
         long_desc="Edited by `ceph equilibrium pool add` and `pool rm`."),
    dict(name="device_classes", type="str", default="", runtime=True,
         desc="comma-separated device classes to balance; empty for all",
         long_desc="OSDs without a device class are called `none` here."),
    dict(name="aim", type="str", default=AIMS[0], enum_allowed=list(AIMS), runtime=True,
         desc="what plans are for: space, even or least-motion",
         long_desc="space: the most free space for the pools that hold data, for few bytes moved. "
                   "even: the lowest and most equal utilisation of the OSDs, whatever bytes that "
                   "moves. least-motion: most of the gain for a fraction of the bytes. "
                   "`ceph equilibrium eval <plan>` compares the three."),
    dict(name="max_misplaced_ratio", type="float", default=0.0, min=0.0, max=1.0, runtime=True,
         desc="largest ratio of misplaced object copies; 0 for target_max_misplaced_ratio",
         long_desc="No batch is sent that would lift the cluster's misplaced ratio above this, "
                   "whoever misplaced the rest. 0 takes the mgr's own target_max_misplaced_ratio."),
    dict(name="max_moves_per_round", type="uint", default=100, min=1, max=10000, runtime=True,
         desc="most shard moves sent in one round",
         long_desc="A second brake beside the misplaced ratio. One PG's moves stay together."),
    dict(name="max_backfills_per_osd", type="uint", default=4, min=0, max=1000, runtime=True,
         desc="most shards moving to an OSD, and as many from it; 0 for no limit",
         long_desc="Counted apart for both directions, whoever started the moves. What is above "
                   "the limit already is left to finish; nothing is added meanwhile."),
    dict(name="max_transit_ratio", type="float", default=0.1, min=0.0, max=1.0, runtime=True,
         desc="largest share of an OSD's size on its way to it, or from it; 0 for no limit",
         long_desc="The bytes still to be copied to an OSD, and those from it, are each kept under "
                   "this ratio of its size. A single change that is above it may go where nothing "
                   "else is in transit at its OSDs."),
    dict(name="pg_cooldown", type="secs", default=3600, min=0, max=30 * 86400, runtime=True,
         desc="seconds for which a PG that was moved is left where it is",
         long_desc="Counted from the sending of its upmap items. OSDs above nearfull_ratio are "
                   "relieved all the same."),
    dict(name="start_delay", type="secs", default=60, min=0, max=86400, runtime=True,
         desc="seconds after the mgr has become active in which nothing is sent",
         long_desc="After a failover statistics are still coming in, and what the last mgr has "
                   "sent may not show yet. Holds for `ceph equilibrium execute`, too."),
    dict(name="relieve_while_degraded", type="bool", default=True, runtime=True,
         desc="empty backfillfull OSDs although PGs are degraded",
         long_desc="Degraded PGs keep everything on their OSDs from being moved, but a backfill "
                   "that stands still because its target is too full (backfill_toofull) ends "
                   "only when somebody makes room. With this, moves off OSDs that are too full "
                   "are allowed meanwhile; nothing else is, and nothing while PGs are inactive."),
    dict(name="min_gain", type="float", default=0.002, min=0.0, max=1.0, runtime=True,
         desc="gain below which an automatic plan is not worth its moves",
         long_desc="An automatic plan is carried out where it lowers the highest utilisation of a "
                   "device class by at least this ratio, or gives a pool that holds data room for "
                   "so much more of what it could hold, or relieves an OSD above nearfull_ratio. "
                   "Otherwise the cluster counts as balanced. 0 takes every plan."),
    dict(name="begin_time", type="str", default="0000", runtime=True,
         desc="when automatic moves may begin each day, HHMM in the mgr's local time",
         long_desc="Automatic moves are sent from begin_time on and until before end_time. Where "
                   "end_time is the earlier one, the window crosses midnight; it then belongs to "
                   "the day on which it begins. Equal times, or 0000 and 2400, are no limit. What "
                   "is moving when the window closes goes on. `ceph equilibrium execute` does not "
                   "mind the window."),
    dict(name="end_time", type="str", default="2400", runtime=True,
         desc="when automatic moves end each day, HHMM in the mgr's local time",
         long_desc="See begin_time. 2400 is the end of the day."),
    dict(name="begin_weekday", type="uint", default=0, min=0, max=7, runtime=True,
         desc="first day of the week on which automatic moves are made; 0 is Sunday",
         long_desc="From begin_weekday on and until before end_weekday; across the end of the "
                   "week where end_weekday is the lower one. Equal days are no limit. Monday to "
                   "Friday is 1 and 6. 7 is Sunday as well. A window that crosses midnight counts "
                   "as the day on which it begins. Ceph's own balancer includes its end_weekday "
                   "in some releases and not in others; this one never does."),
    dict(name="end_weekday", type="uint", default=0, min=0, max=7, runtime=True,
         desc="first day of the week on which no automatic moves are made any more",
         long_desc="See begin_weekday."),
    dict(name="max_plan_seconds", type="secs", default=300, min=1, max=86400, runtime=True,
         desc="seconds after which planning stops with what it has",
         long_desc="The plan made so far is kept and used; it says that the limit was reached."),
    dict(name="fill_limit", type="float", default=0.0, min=0.0, max=1.0, runtime=True,
         desc="highest utilization of an OSD by our doing; at most backfillfull_ratio less 0.02",
         long_desc="No move is planned or sent that would fill its target above this ratio, nor "
                   "above backfillfull_ratio less 0.02, where backfill stops dead."),
]


class Settings(NamedTuple):
    """The options at one moment."""

    active: bool
    sleep_interval: float                 # seconds
    pool_ids: Optional[FrozenSet[int]]    # None: all pools
    device_classes: Optional[FrozenSet[str]]  # None: all classes
    max_misplaced_ratio: float            # 0: the mgr's own target
    max_moves_per_round: int
    max_plan_seconds: float
    fill_limit: float                     # 0: derived from backfillfull_ratio
    aim: str                              # one of AIMS
    max_backfills_per_osd: int            # 0: no limit
    max_transit_ratio: float              # of an OSD's size; 0: no limit
    pg_cooldown: float                    # seconds
    start_delay: float                    # seconds
    relieve_while_degraded: bool
    min_gain: float                       # ratio
    begin_time: int                       # minute of the local day, 0 to 1440
    end_time: int                         # minute of the local day, 0 to 1440
    begin_weekday: int                    # 0 is Sunday, 7 as well
    end_weekday: int


def read_settings(option: Callable[[str], Any]) -> Settings:
    """Typed settings from the mgr's `get_module_option`. What cannot be read has its default."""
    values = {o["name"]: _value(o, option(o["name"])) for o in OPTIONS}
    pools = frozenset(int(p) for p in _items(values["pool_ids"]) if p.isascii() and p.isdigit())
    limited = bool(_items(values["pool_ids"]))  # to what is readable; to nothing, if nothing is
    values["pool_ids"] = pools if limited else None
    values["device_classes"] = frozenset(_items(values["device_classes"])) or None
    for name in ("begin_time", "end_time"):
        values[name] = _minute(values[name])
    return Settings(**values)


def _value(option: Dict[str, Any], value: Any) -> Any:
    """The value in its type and range, or the default."""
    default, kind = option["default"], option["type"]
    if value is None:
        return _typed(default, kind)
    try:
        found = _typed(value, kind)
    except (TypeError, ValueError, OverflowError):
        return _typed(default, kind)
    if "enum_allowed" in option and found not in option["enum_allowed"]:
        return default
    if option["name"] in ("begin_time", "end_time") and _minute(found) is None:
        return default
    if kind in ("uint", "secs", "float"):
        return min(max(found, _typed(option["min"], kind)), _typed(option["max"], kind))
    return found


def _typed(value: Any, kind: str) -> Any:
    if kind == "bool":
        return bool(value)
    if kind == "str":
        return str(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError("not a number")
    return int(number) if kind == "uint" else number


def _minute(text: str) -> Optional[int]:
    """The minute of the day that HHMM names, or None."""
    match = re.fullmatch(r"([0-9]{2})([0-5][0-9])", text.strip(), re.ASCII)
    minute = 60 * int(match.group(1)) + int(match.group(2)) if match else None
    return minute if minute is not None and minute <= 24 * 60 else None


def _items(text: str) -> List[str]:
    return [part.strip() for part in str(text).split(",") if part.strip()]
