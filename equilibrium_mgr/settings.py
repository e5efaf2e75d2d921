"""The module's options as Ceph sees them and as typed values."""
from __future__ import annotations

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
    dict(name="max_plan_seconds", type="secs", default=300, min=1, max=86400, runtime=True,
         desc="seconds after which planning stops with what it has",
         long_desc="The plan made so far is kept and used; it says that the limit was reached."),
    dict(name="fill_limit", type="float", default=0.0, min=0.0, max=1.0, runtime=True,
         desc="highest utilisation of an OSD by our doing; 0 for backfillfull_ratio less 0.02",
         long_desc="No move is planned or sent that would fill its target above this ratio."),
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


def read_settings(option: Callable[[str], Any]) -> Settings:
    """Typed settings from the mgr's `get_module_option`. What cannot be read has its default."""
    values = {o["name"]: o["default"] for o in OPTIONS}
    for name in values:
        value = option(name)
        if value is not None:
            values[name] = value
    pools = frozenset(int(p) for p in _items(values["pool_ids"]) if p.isascii() and p.isdigit())
    limited = bool(_items(values["pool_ids"]))  # to what is readable; to nothing, if nothing is
    classes = frozenset(_items(values["device_classes"]))
    return Settings(
        active=bool(values["active"]), sleep_interval=max(1.0, float(values["sleep_interval"])),
        pool_ids=pools if limited else None, device_classes=classes or None,
        max_misplaced_ratio=float(values["max_misplaced_ratio"]),
        max_moves_per_round=max(1, int(values["max_moves_per_round"])),
        max_plan_seconds=float(values["max_plan_seconds"]),
        fill_limit=float(values["fill_limit"]),
        aim=values["aim"] if values["aim"] in AIMS else AIMS[0])


def _items(text: str) -> List[str]:
    return [part.strip() for part in str(text).split(",") if part.strip()]
