"""The module's options: their declarations for Ceph, and their typed values.

The values are those of all mgrs, or of this mgr for LOCAL_OPTIONS, without options that `ceph
config rm` has removed. `mgr/equilibrium/x/metrics_port` is set for mgr.x alone. A mgr returns the
value in effect, and not whether it is its own.

A running mgr is not informed of removed options (seen on Ceph 16.2.15 and 20.2.4). The monitor
sends it the options that are set, and it keeps the last values of the others. A standby that
becomes active does so, too. But the mgr calls `config_notify`: then, and at the start, the module
asks the monitor.
"""
from __future__ import annotations

import ipaddress
import math
import re
from functools import lru_cache
from typing import Any, Callable, Dict, FrozenSet, List, NamedTuple, Optional, Sequence, Tuple

from .plan.options import AIMS


OPTIONS: List[Dict[str, Any]] = [
    dict(name="active", type="bool", default=False,
         desc="balance automatically",
         long_desc="Set by `ceph equilibrium on` and `off`. While false, only drains, and plans of "
                   "`ceph equilibrium execute` and `undo`, move data."),
    dict(name="sleep_interval", type="secs", default=60, min=1, max=86400,
         desc="seconds between two rounds",
         long_desc="How often the loop reads a summary of the cluster and may send the next "
                   "batch."),
    dict(name="pool_ids", type="str", default="",
         desc="comma-separated ids of the pools to balance; empty for all",
         long_desc="Edited by `ceph equilibrium pool add` and `pool rm`."),
    dict(name="device_classes", type="str", default="",
         desc="comma-separated device classes to balance; empty for all",
         long_desc="OSDs without a device class are called `none` here."),
    dict(name="from_buckets", type="str", default="",
         desc="comma-separated OSDs and buckets that shards may leave; empty for all",
         long_desc="Names as in `ceph osd tree`: osd.3, a host, a rack. A name that is not in the "
                   "CRUSH hierarchy stands for no OSD."),
    dict(name="to_buckets", type="str", default="",
         desc="comma-separated OSDs and buckets that shards may go to; empty for all",
         long_desc="Names as of from_buckets."),
    dict(name="not_buckets", type="str", default="",
         desc="comma-separated OSDs and buckets that shards neither leave nor go to",
         long_desc="Names as of from_buckets. While a name is not in the CRUSH hierarchy nothing "
                   "is moved: it is not known what is to be spared."),
    dict(name="aim", type="str", default=AIMS[0], enum_allowed=list(AIMS),
         desc="what plans are for: space, even or least-motion",
         long_desc="space: the most free space for the pools that hold data, for few bytes moved. "
                   "even: the lowest and most equal utilization of the OSDs, whatever bytes that "
                   "moves. least-motion: most of the gain for a fraction of the bytes."),
    dict(name="max_misplaced_ratio", type="float", default=0.0, min=0.0, max=1.0,
         desc="largest ratio of misplaced object copies; 0 for target_max_misplaced_ratio",
         long_desc="No batch is sent that would lift the cluster's misplaced ratio above this, "
                   "whoever misplaced the rest. 0 takes the mgr's own target_max_misplaced_ratio, "
                   "and so does anything below 0.000001: Ceph keeps six decimals. While nothing "
                   "is misplaced, one PG may go that is above the limit alone. PGs that wait "
                   "for space on an OSD do not count against moves off the OSDs that need it."),
    dict(name="urgent_misplaced_ratio", type="float", default=0.0, min=0.0, max=1.0,
         desc="the same for moves off OSDs above backfillfull_ratio; 0 for the usual limit",
         long_desc="The larger of both limits holds for as many moves as bring an OSD that is "
                   "above backfillfull_ratio, or full, below nearfull_ratio. max_moves_per_round "
                   "does not hold for these, and max_backfills_per_osd and max_transit_ratio only "
                   "for the OSDs that they go to. Ceph keeps six decimals."),
    dict(name="max_moves_per_round", type="uint", default=100, min=1, max=10000,
         desc="most shard moves sent in one round",
         long_desc="A second brake beside the misplaced ratio. One PG's moves stay together."),
    dict(name="max_backfills_per_osd", type="uint", default=4, min=0, max=1000,
         desc="most shards moving to an OSD, and as many from it; 0 for no limit",
         long_desc="Counted apart for both directions, whoever started the moves. What is above "
                   "the limit already is left to finish; nothing is added meanwhile."),
    dict(name="max_transit_ratio", type="float", default=0.1, min=0.0, max=1.0,
         desc="largest share of an OSD's size on its way to it, or from it; 0 for no limit",
         long_desc="The bytes still to be copied to an OSD, and those from it, are each kept under "
                   "this ratio of its size. A single change that is above it may go where nothing "
                   "else is in transit at its OSDs. Ceph keeps six decimals: less is 0."),
    dict(name="pg_cooldown", type="secs", default=3600, min=0, max=30 * 86400,
         desc="seconds for which a PG that was moved is left where it is",
         long_desc="Counted from the sending of its upmap items. Drained OSDs, and OSDs above "
                   "nearfull_ratio, are relieved all the same; `undo` does not wait for it."),
    dict(name="start_delay", type="secs", default=60, min=0, max=86400,
         desc="seconds after the mgr has become active in which nothing is sent",
         long_desc="After a failover statistics are still coming in, and what the last mgr has "
                   "sent may not show yet. Holds for `ceph equilibrium execute`, too, but not "
                   "for `freeze` and `cancel`."),
    dict(name="max_wait", type="secs", default=3600, min=60, max=30 * 86400,
         desc="seconds after which what holds up a plan is dropped",
         long_desc="Where nothing of a plan could go for so long (its PGs are scrubbed without "
                   "end, a target is down, pools stay degraded, what moves does not get on), the "
                   "changes that are left are dropped with their reasons. Time in which a flag, "
                   "the window or the built-in balancer stops everything does not count. An "
                   "automatic plan that waits for a rebuild alone is made anew instead."),
    dict(name="max_upmap_items", type="float", default=1.0, min=0.0, max=1e9,
         desc="most pairs of upmap items: up to 1 per PG, above 1 in all; 0 for no limit",
         long_desc="Every pair makes the osdmap larger, for the monitors and for each client. 0.5 "
                   "allows one pair for two PGs, 2000 allows 2000. At the limit changes that add "
                   "pairs wait; those that drop or only alter some go. PGs that stay where their "
                   "data is, by freeze or hold_placement, may exceed it."),
    dict(name="relieve_while_degraded", type="bool", default=True,
         desc="empty backfillfull OSDs although PGs are degraded",
         long_desc="Degraded PGs keep everything on their OSDs from being moved, but a backfill "
                   "that stands still because its target is too full (backfill_toofull) ends "
                   "only when somebody makes room. With this, moves off OSDs that are too full "
                   "are allowed meanwhile; nothing else is, and nothing while PGs are inactive "
                   "for another reason than space."),
    dict(name="steer_recovery", type="bool", default=True,
         desc="choose where shards go that Ceph rebuilds after a failure",
         long_desc="Once OSDs are out and the osdmap has been quiet for 30 seconds, shards that "
                   "no OSD holds and whose copies have not begun to arrive go where there is "
                   "room. Shards that move only because their upmap items were dropped stay "
                   "where their data is. Nothing more is copied than without it."),
    dict(name="hold_placement", type="bool", default=True,
         desc="keep shards where they are when CRUSH weights or OSDs change",
         long_desc="Once the osdmap has been quiet for 30 seconds after such a change, shards "
                   "that may stay where their data is do so, by upmap items, and those that have "
                   "to leave go where there is room. Balancing goes on from there, within the "
                   "misplaced limit. Make changes within seconds of each other: each that comes "
                   "later makes a plan of its own."),
    dict(name="min_gain", type="float", default=0.002, min=0.0, max=1.0,
         desc="gain below which an automatic plan is not worth its moves",
         long_desc="An automatic plan is carried out where it lowers the highest utilization of a "
                   "device class by at least this ratio, or gives a pool that holds data room for "
                   "so much more of what it could hold, or relieves an OSD above nearfull_ratio, "
                   "above the share of its lowered weight, or being drained. "
                   "Otherwise the cluster counts as balanced; from then on drift alone is followed "
                   "from 0.008 on, with few bytes. 0 takes every plan."),
    dict(name="balance_load", type="bool", default=False,
         desc="also make OSDs equally busy, where that makes none fuller",
         long_desc="By what clients have read and written in the last days, three at least and "
                   "seven at most. The column LOAD of `ceph equilibrium osds` shows it, whatever "
                   "this option says. Once a day at most, never in an outage, never while an OSD "
                   "is above nearfull_ratio, and not in the first day of a mgr."),
    dict(name="min_load_gain", type="float", default=0.1, min=0.0, max=10.0,
         desc="gain of load below which no move is made for it",
         long_desc="By how much the busiest OSD of a device class has to come closer to the mean "
                   "of its class, as a ratio of that mean. Only with balance_load."),
    dict(name="begin_time", type="str", default="0000",
         desc="when automatic moves may begin each day, HHMM in the mgr's local time",
         long_desc="Automatic moves are sent from begin_time on and until before end_time. Where "
                   "end_time is the earlier one, the window crosses midnight; it then belongs to "
                   "the day on which it begins. Equal times, or 0000 and 2400, are no limit. What "
                   "is moving when the window closes goes on. Drains and `ceph equilibrium "
                   "execute` do not mind the window."),
    dict(name="end_time", type="str", default="2400",
         desc="when automatic moves end each day, HHMM in the mgr's local time",
         long_desc="2400 is the end of the day."),
    dict(name="begin_weekday", type="uint", default=0, min=0, max=7,
         desc="first day of the week on which automatic moves are made; 0 is Sunday",
         long_desc="From begin_weekday on and until before end_weekday; across the end of the "
                   "week where end_weekday is the lower one. Equal days are no limit. Monday to "
                   "Friday is 1 and 6. 7 is Sunday as well. A window that crosses midnight counts "
                   "as the day on which it begins. Ceph's own balancer includes its end_weekday "
                   "in some releases and not in others; this one never does."),
    dict(name="end_weekday", type="uint", default=0, min=0, max=7,
         desc="first day of the week on which no automatic moves are made any more",
         long_desc="Days as of begin_weekday; the day itself is outside the window."),
    dict(name="max_plan_seconds", type="secs", default=300, min=1, max=86400,
         desc="seconds after which planning stops with what it has",
         long_desc="The plan made so far is kept and used; it says that the limit was reached."),
    dict(name="fill_limit", type="float", default=0.0, min=0.0, max=1.0,
         desc="highest utilization of an OSD by our doing; at most backfillfull_ratio less 0.02",
         long_desc="No move is planned or sent that would fill its target above this ratio, nor "
                   "above backfillfull_ratio less 0.02, where backfill stops dead. 0 stands for "
                   "the latter alone."),
    dict(name="respect_weights", type="bool", default=True,
         desc="hold OSDs with a lowered reweight or CRUSH weight to that share of their size",
         long_desc="An OSD whose CRUSH weight divided by its size, times its reweight, is more "
                   "than 10 percent below that of OSDs like it (of its device class, root and "
                   "size, or of its class) gets no more than that share of their bytes. Where "
                   "CRUSH weights have nothing to do with sizes only reweights count. False "
                   "fills OSDs by their sizes alone."),
    dict(name="min_omap_osd_size", type="float", default=50.0, min=0.0, max=1e6,
         desc="GiB of the smallest OSDs whose PGs with omap are moved; 0 for all",
         long_desc="RocksDB's log and the files that it writes as it compacts take up to half a "
                   "GiB of an OSD, whatever it holds, and come and go. Where that is more than 1 "
                   "percent of an OSD, moving omap makes nothing more even that lasts, and may "
                   "fill the fullest OSD further. OSDs above nearfull_ratio are relieved all the "
                   "same."),
    dict(name="metrics_port", type="uint", default=0, min=0, max=65535,
         desc="port at which the active mgr serves metrics by HTTP; 0 for none",
         long_desc="What `ceph equilibrium metrics` prints, at /metrics, for Prometheus. Standby "
                   "mgrs do not listen. A port that is taken is tried again each round."),
    dict(name="metrics_addr", type="str", default="::",
         desc="IP address at which metrics are served; :: for all",
         long_desc="Of use only with metrics_port. `ceph config set mgr "
                   "mgr/equilibrium/NAME/metrics_addr` sets it for mgr.NAME alone, and "
                   "NAME/metrics_port its port."),
]

#: Options that affect each other, some of Ceph's among them: `see_also` of each.
_TOGETHER = (
    ("active", "begin_time", "end_time", "begin_weekday", "end_weekday"),
    ("pool_ids", "device_classes", "from_buckets", "to_buckets", "not_buckets"),
    ("max_misplaced_ratio", "urgent_misplaced_ratio", "target_max_misplaced_ratio"),
    ("max_moves_per_round", "max_backfills_per_osd", "max_transit_ratio", "sleep_interval"),
    ("max_backfills_per_osd", "osd_max_backfills", "osd_mclock_profile"),
    ("relieve_while_degraded", "urgent_misplaced_ratio"),
    ("steer_recovery", "hold_placement"), ("balance_load", "min_load_gain"),
    ("aim", "min_gain", "max_upmap_items", "max_plan_seconds"),
    ("start_delay", "pg_cooldown", "max_wait"),
    ("fill_limit", "respect_weights", "min_omap_osd_size"), ("metrics_port", "metrics_addr"))
for _option in OPTIONS:
    _option["runtime"] = True   # no option needs a restart
    _option["see_also"] = []
    for _names in _TOGETHER:
        if _option["name"] in _names:
            _option["see_also"] += [name for name in _names if name != _option["name"]]

#: Options that can differ from mgr to mgr.
LOCAL_OPTIONS = ("metrics_port", "metrics_addr")


#: The value of a begin_time or end_time that cannot be read.
UNREADABLE_TIME = -1


class BadOption(NamedTuple):
    """An option whose value cannot be used."""

    option: str
    value: str     # the given value, or the wrong part of it
    reason: str    # why it is wrong, and the effect instead
    is_all: bool = False   # no part of the option's list is right

    def sentence(self) -> str:
        """Returns a sentence for people."""
        return f"{self.option} is '{self.value}': {self.reason}"


#: Most digits of a pool's id; Python refuses to read thousands of digits.
_MOST_DIGITS = 19


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
    urgent_misplaced_ratio: float         # 0: the same as for all moves
    pg_cooldown: float                    # seconds
    start_delay: float                    # seconds
    max_wait: float                       # seconds
    max_upmap_items: float                # pairs per PG up to 1, else in all; 0: no limit
    relieve_while_degraded: bool
    steer_recovery: bool
    hold_placement: bool
    min_gain: float                       # ratio
    balance_load: bool
    min_load_gain: float                  # ratio of the mean load
    begin_time: int                       # minute of the local day, 0 to 1440, or unreadable
    end_time: int                         # likewise
    begin_weekday: int                    # 0 is Sunday, 7 as well
    end_weekday: int
    respect_weights: bool
    min_omap_osd_size: float              # GiB
    from_buckets: Optional[FrozenSet[str]]    # names of OSDs and buckets; None: all OSDs
    to_buckets: Optional[FrozenSet[str]]      # likewise
    not_buckets: Optional[FrozenSet[str]]     # likewise; None: no OSD
    metrics_port: int                     # 0: no metrics by HTTP
    metrics_addr: str                     # an IP address; empty if it cannot be used
    replaced: Tuple[BadOption, ...] = ()   # values that cannot be used

    @property
    def steers(self) -> bool:
        """Returns True if shards that are copied anyway may get other targets."""
        return self.active and (self.steer_recovery or self.hold_placement)


def read_settings(option: Callable[[str], Any]) -> Settings:
    """Returns typed settings from the mgr's `get_module_option`.

    Pools, classes, buckets and times that cannot be read allow no movement: they name nothing, or
    close the window. Of a list of pools the readable part counts. An unreadable address serves no
    metrics. Any other option has its default.
    """
    return _settings_of(*[_scalar(option(declared["name"])) for declared in OPTIONS])


def _scalar(value: Any) -> Any:
    """Returns an option's value, as a text if it is of no type that options have."""
    return value if isinstance(value, (str, int, float, type(None))) else str(value)


@lru_cache(maxsize=8, typed=True)   # read several times a round, and seldom changed; 1 is not True
def _settings_of(*given: Any) -> Settings:
    """Returns the settings for values of OPTIONS, in their order."""
    values: Dict[str, Any] = {}
    replaced: List[BadOption] = []
    for declared, value in zip(OPTIONS, given):
        name = declared["name"]
        values[name], used = _READERS.get(name, _value)(declared, value)
        if used is not None:
            replaced.append(BadOption(name, str(value), used))
    return Settings(**values, replaced=tuple(replaced))


def default_settings() -> Settings:
    """Returns the settings if no option is set."""
    return read_settings(lambda name: None)


def changed_options(option: Callable[[str], Any]) -> List[Dict[str, str]]:
    """Returns name, value and default of each option that is not at its default.

    They are JSON-ready and sorted by name, without `active`.
    """
    found: List[Dict[str, str]] = []
    for declared in OPTIONS:
        name = declared["name"]
        default = declared["default"]
        given = option(declared["name"])
        if name != "active" and given is not None and given != default:
            found.append({"name": name, "value": str(given), "default": str(default)})
    return sorted(found, key=lambda one: one["name"])


#: (value, a sentence if the given value cannot be used)
_Read = Tuple[Any, Optional[str]]


def _value(option: Dict[str, Any], given: Any) -> _Read:
    """Reads a value of the option's type and range; the default if it has another."""
    default = _typed(option["default"], option["type"])
    kind = option["type"]
    if given is None:
        return default, None
    instead = default, f"the default, {option['default']}, is used"
    try:
        found = _typed(given, kind)
    except (KeyError, TypeError, ValueError, OverflowError):
        return instead
    if found not in option.get("enum_allowed", (found,)):
        return instead
    if "min" in option and not option["min"] <= found <= option["max"]:
        return instead
    return found, None


def _text(option: Dict[str, Any], given: Any) -> str:
    """Returns the text of an option."""
    return str(option["default"] if given is None else given).strip()


def _pools(option: Dict[str, Any], given: Any) -> _Read:
    """Reads pool ids."""
    text = _text(option, given)
    if not text:
        return None, None
    parts = _items(text)
    numbers = [part for part in parts if part.isascii() and part.isdigit()]
    found = frozenset([int(part) for part in numbers if len(part) <= _MOST_DIGITS])
    if parts and len(found) == len(set(parts)):
        return found, None
    effect = "no pool is balanced"
    if found:
        effect = f"only {','.join(map(str, sorted(found)))} is balanced"
    return found, f"pools are named by ids with commas between; {effect}"


def _classes(option: Dict[str, Any], given: Any) -> _Read:
    """Reads device classes."""
    text = _text(option, given)
    if not text:
        return None, None
    found = frozenset(_items(text))
    return found, None if found else "it names no device class; nothing is balanced"


def _buckets(option: Dict[str, Any], given: Any) -> _Read:
    """Reads names of buckets. A text without names counts as a name that no bucket has."""
    text = _text(option, given)
    if not text:
        return None, None
    return frozenset(_items(text) or [text]), None


def _time(option: Dict[str, Any], given: Any) -> _Read:
    """Reads a time of the day."""
    minute = _minute(_text(option, given))
    if minute is None:
        return UNREADABLE_TIME, "it is not of the form HHMM; no automatic move is sent"
    return minute, None


def _address(option: Dict[str, Any], given: Any) -> _Read:
    """Reads an IP address."""
    text = _text(option, given)
    try:
        return str(ipaddress.ip_address(text)), None
    except ValueError:
        return "", "it is not an IP address; no metrics are served"


_READERS: Dict[str, Callable[[Dict[str, Any], Any], _Read]] = {
    "pool_ids": _pools, "device_classes": _classes, "from_buckets": _buckets,
    "to_buckets": _buckets, "not_buckets": _buckets, "begin_time": _time, "end_time": _time,
    "metrics_addr": _address}


def _typed(value: Any, kind: str) -> Any:
    """Returns a value as one of an option's type. Raises ValueError and the like if that fails."""
    if kind == "bool" and isinstance(value, str):
        return {"true": True, "false": False}[value.lower()]
    if kind == "bool":
        return bool(value)
    if kind == "str":
        return str(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError("not a number")
    return int(number) if kind == "uint" else number


def _minute(text: str) -> Optional[int]:
    """Returns the minute of the day for HHMM, 0 to 1440; None for another text."""
    match = re.fullmatch(r"([0-9]{2})([0-5][0-9])", text, re.ASCII)
    if match is None:
        return None
    minute = 60 * int(match[1]) + int(match[2])
    return minute if minute <= 24 * 60 else None


def _items(text: str) -> List[str]:
    """Returns the parts of a text between commas, without empty ones."""
    return list(filter(None, map(str.strip, text.split(","))))


class OptionValues:
    """The values of options without those that `ceph config rm` has removed.

    `common_value` and `effective_value` are the mgr's `get_module_option` and
    `get_localized_module_option`. `options_set` returns the names of the options that are set, or
    None without an answer. Any thread may read; only the serve thread checks.
    """

    def __init__(self, common_value: Callable[[str], Any], effective_value: Callable[[str], Any],
                 mgr_id: str, options_set: Callable[[], Optional[FrozenSet[str]]],
                 options: Sequence[Dict[str, Any]] = OPTIONS) -> None:
        self._common_value = common_value
        self._effective_value = effective_value
        self._options_set = options_set
        self._defaults = {option["name"]: option["default"] for option in options}
        self._own_names = {name: f"{mgr_id}/{name}" for name in LOCAL_OPTIONS
                           if name in self._defaults}
        self._removed: Dict[str, Any] = {}   # name → its last value; replaced, never edited
        #: the next `check_if_due` asks the monitor which options were removed; a standby keeps the
        #: values of options that were removed earlier, too
        self.is_check_due = True

    def value(self, name: str) -> Any:
        """Returns the value of an option: None if it was removed; None or its default if it was
        never set."""
        if name in self._own_names:
            own = self._unremoved(self._own_names[name], self._own_value(name))
            if own is not None:
                return own
        return self._unremoved(name, self._common_value(name))

    def check_if_due(self) -> None:
        """Asks the monitor which options were removed, if `is_check_due`."""
        if not self.is_check_due:
            return
        self.is_check_due = False
        # read before the monitor is asked: an option that is set in between was not removed
        last: Dict[str, Any] = {}
        for name, default in self._defaults.items():
            values = {name: self._common_value(name)}
            if name in self._own_names:
                values[self._own_names[name]] = self._own_value(name)
            last.update({
                key: value for key, value in values.items() if value not in (None, default)})
        names = self._options_set() if last else frozenset()
        if names is None:
            self.is_check_due = True
        else:
            self._removed = {name: value for name, value in last.items() if name not in names}

    def _own_value(self, name: str) -> Any:
        """Returns the value of this mgr; None if it is that of all mgrs."""
        value = self._effective_value(name)
        return None if value == self._common_value(name) else value

    def _unremoved(self, name: str, value: Any) -> Any:
        """Returns a value; None if it is that of a removed option."""
        removed = self._removed
        # compared as text: nan is not equal to itself
        if name in removed and str(removed[name]) == str(value):
            return None
        return value
