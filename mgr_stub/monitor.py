"""The simulated monitor: takes commands, makes epochs, cleans upmap entries as Ceph's does."""

from __future__ import annotations

import errno
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from . import upmap
from .cluster import Cluster, MapChange
from .errors import StubError, invalid
from .osd_map import RELEASES
from .pg import pg_order
from .upmap import NONE, Items

Answer = Tuple[int, str, str]

#: Flags that `osd set` and `osd unset` know.
FLAGS = ("full", "pause", "noup", "nodown", "noout", "noin", "nobackfill", "norebalance",
         "norecover", "noscrub", "nodeep-scrub", "notieragent", "nosnaptrim")


@dataclass
class _Queued:
    command: Dict[str, Any]
    done: Callable[[int, str, str], None]


class Monitor:
    """Commands wait in a queue; `prepare` turns those of one epoch into a MapChange.

    An upmap command for a PG that the same epoch already changes waits for the next epoch.
    A return code of 0 for an upmap says nothing about the entry being kept.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._queue: List[_Queued] = []
        self._clean_everything = True
        self._handlers: Dict[str, Callable[[Dict[str, Any], MapChange], str]] = {
            "osd pg-upmap-items": self._set_items,
            "osd rm-pg-upmap-items": self._remove_items,
            "osd set-require-min-compat-client": self._set_min_compat_client,
            "osd set": self._set_flag,
            "osd unset": self._unset_flag,
            "osd pool rm": self._remove_pool,
        }

    def submit(self, command_json: str, done: Callable[[int, str, str], None]) -> None:
        """Queues a command; `done` gets return code, stdout and stderr when its epoch is made."""
        try:
            command = json.loads(command_json)
            if not isinstance(command, dict):
                raise ValueError("not an object")
        except ValueError:
            command = {"prefix": ""}
        self._queue.append(_Queued(command, done))

    @property
    def busy(self) -> bool:
        return bool(self._queue)

    # -- one epoch ----------------------------------------------------------------------------

    def prepare(self, change: MapChange) -> List[Callable[[], None]]:
        """Puts the queued commands into the change; returns their answers, to be sent after it."""
        answers: List[Callable[[], None]] = []
        touched: Set[str] = set()
        later: List[_Queued] = []
        for item in self._queue:
            pgid = str(item.command.get("pgid", ""))
            if pgid and pgid in touched:
                later.append(item)
                continue
            rc, out, err = self._run(item.command, change)
            if pgid and rc == 0:
                touched.add(pgid)
            answers.append(_answer(item.done, rc, out, err))
        self._queue = later
        return answers

    def _run(self, command: Dict[str, Any], change: MapChange) -> Answer:
        handler = self._handlers.get(str(command.get("prefix", "")))
        if handler is None:
            return -errno.EINVAL, "", "command not known"
        try:
            return 0, "", handler(command, change)
        except StubError as error:
            return error.code, "", error.message

    def clean(self, change: MapChange) -> None:
        """Cancels and rewrites upmap entries, as OSDMap::check_pg_upmaps does in every epoch.

        Entries that neither they nor the map under them have changed since need no second look.
        """
        entries: Dict[str, Optional[Items]] = dict(change.upmap_items)
        if self._clean_everything or change.removed_pools:
            entries = {**self.cluster.map.upmap_items, **entries}
        self._clean_everything = False
        for pgid, items in entries.items():
            if not items:
                continue
            kept = self._cleaned(pgid, items, change)
            if kept != items:
                change.upmap_items[pgid] = kept or None

    def _cleaned(self, pgid: str, items: Items, change: MapChange) -> Items:
        cluster = self.cluster
        pool_id, position = pg_order(pgid)
        pool = cluster.map.pools.get(pool_id)
        pg = cluster.pgs.get(pgid)
        if pool is None or pool_id in change.removed_pools or pg is None:
            return ()
        if position >= int(pool.get("pg_num_pending", pool["pg_num"])):
            return ()
        if pg.raw is None:
            # without a raw mapping nothing can be judged: old entries stay, new ones do not
            return cluster.map.upmap_items.get(pgid, ())
        return upmap.clean(cluster.crush, int(pool["crush_rule"]), int(pool["size"]), pg.raw,
                           items, self._reweight)

    def _reweight(self, osd: int) -> float:
        return self.cluster.map.reweight(osd)

    # -- commands -----------------------------------------------------------------------------

    def _checked_pg(self, command: Dict[str, Any]) -> str:
        osdmap = self.cluster.map
        release = osdmap.min_compat_client
        if release in RELEASES and RELEASES.index(release) < RELEASES.index("luminous"):
            raise StubError(errno.EPERM, (
                f"min_compat_client {release} < luminous, which is required for pg-upmap. Try "
                "'ceph osd set-require-min-compat-client luminous' before using the new interface"))
        pgid = str(command.get("pgid", ""))
        try:
            pool_id, position = pg_order(pgid)
        except ValueError:
            raise invalid(f"invalid pgid '{pgid}'") from None
        pool = osdmap.pools.get(pool_id)
        if pool is None or not 0 <= position < int(pool["pg_num"]):
            quoted = f"pgid '{pgid}'" if self.cluster.release >= 18 else f"pg {pgid}"
            raise StubError(errno.ENOENT, f"{quoted} does not exist")
        return f"{pool_id}.{position:x}"

    def _set_items(self, command: Dict[str, Any], change: MapChange) -> str:
        pgid = self._checked_pg(command)
        numbers = [int(number) for number in command.get("id", [])]
        if not numbers or len(numbers) % 2:
            raise invalid("you must specify pairs of osd ids to be remapped")
        size = int(self.cluster.map.pools[pg_order(pgid)[0]]["size"])
        if len(numbers) // 2 > size:
            raise invalid(f"num of osd pairs ({len(numbers) // 2}) > pool size ({size})")
        pairs: List[Tuple[int, int]] = []
        notes: List[str] = []
        for pair in zip(numbers[::2], numbers[1::2]):
            note = self._check_pair(pair, pairs)
            if note:
                notes.append(note)
            else:
                pairs.append(pair)
        if not pairs:
            raise invalid(", ".join(notes + ["no valid upmap items(pairs) is specified"]))
        change.upmap_items[pgid] = tuple(pairs)
        shown = ",".join(f"{source}->{target}" for source, target in pairs)
        return ", ".join(notes + [f"set {pgid} pg_upmap_items mapping to [{shown}]"])

    def _check_pair(self, pair: Tuple[int, int], pairs: List[Tuple[int, int]]) -> str:
        source, target = pair
        if source == target:
            return f"from osd.{source} == to osd.{target}"
        for osd in pair:
            if not self.cluster.map.exists(osd) and not (osd == target == NONE):
                raise StubError(errno.ENOENT, f"osd.{osd} does not exist")
        if pair in pairs:
            return f"osd.{source} -> osd.{target} already exists"
        return ""

    def _remove_items(self, command: Dict[str, Any], change: MapChange) -> str:
        pgid = self._checked_pg(command)
        change.upmap_items[pgid] = None
        change.bump = True
        return f"clear {pgid} pg_upmap_items mapping"

    def _set_min_compat_client(self, command: Dict[str, Any], change: MapChange) -> str:
        version = str(command.get("version", ""))
        if version not in RELEASES:
            raise invalid(f"version {version} is not recognized")
        change.min_compat_client = version
        return f"set require_min_compat_client to {version}"

    def _flags(self, change: MapChange) -> FrozenSet[str]:
        return self.cluster.map.flags if change.flags is None else change.flags

    def _set_flag(self, command: Dict[str, Any], change: MapChange) -> str:
        names = self._flag_names(command)
        change.flags = self._flags(change) | names
        return f"{','.join(sorted(names))} is set"

    def _unset_flag(self, command: Dict[str, Any], change: MapChange) -> str:
        names = self._flag_names(command)
        change.flags = self._flags(change) - names
        return f"{','.join(sorted(names))} is unset"

    def _flag_names(self, command: Dict[str, Any]) -> FrozenSet[str]:
        key = str(command.get("key", ""))
        if key not in FLAGS:
            raise invalid(f"'{key}' is not a flag that can be set or unset")
        return frozenset({"pauserd", "pausewr"} if key == "pause" else {key})

    def _remove_pool(self, command: Dict[str, Any], change: MapChange) -> str:
        name = str(command.get("pool", ""))
        pool_id = self.cluster.map.pool_named(name)
        if pool_id is None:
            raise StubError(errno.ENOENT, f"pool '{name}' does not exist")
        change.removed_pools.add(pool_id)
        return f"pool '{name}' removed"


def _answer(done: Callable[[int, str, str], None], rc: int, out: str,
            err: str) -> Callable[[], None]:
    return lambda: done(rc, out, err)
