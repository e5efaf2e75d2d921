"""The simulated monitor: queues commands, makes epochs, cleans upmap entries as Ceph does."""

from __future__ import annotations

import errno
import json
import random
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Set, Tuple

from ..cluster.cluster import Cluster
from ..cluster.pg import pg_order
from ..crush.hashes import NONE
from ..errors import Answer, StubError, invalid
from ..osdmap import upmap
from ..osdmap.osd_map import RELEASE_NAMES, MapChange, is_merging, pg_nums
from ..osdmap.upmap import Items
from . import group_flags, pg_upmap
from .mon_store import LoggedCommand, MonFaults

#: Flags of `osd set` and `osd unset`.
FLAGS = ("full", "pause", "noup", "nodown", "noout", "noin", "nobackfill", "norebalance",
         "norecover", "noscrub", "nodeep-scrub", "notieragent", "nosnaptrim")


def flags_of(name: str) -> FrozenSet[str]:
    """Returns the flags of the map that a flag of `osd set` stands for."""
    if name == "pause":
        return frozenset(("pauserd", "pausewr"))
    return frozenset((name,))


#: Sender of the mgr's commands in the log.
MGR = "mgr.x"

#: Largest number of PGs of a pool.
_MAX_PG_NUM = 65536

#: Keys of a pool that a variable of `osd pool set` changes; the last variable is set by the PGs.
_POOL_VARIABLES: Dict[str, Tuple[str, ...]] = {
    "pg_num": ("pg_num_target", "pg_placement_num_target"),
    "pgp_num": ("pg_placement_num_target",),
    "pg_num_actual": ("pg_num", "pg_num_pending"),
    "pgp_num_actual": ("pg_placement_num",),
    "pg_num_merged": ("pg_num", "pg_num_pending"),
}


@dataclass
class _Queued:
    entry: LoggedCommand
    done: Callable[[int, str, str], None]
    #: Earliest moment of its epoch.
    due: float

    @property
    def from_mgr(self) -> bool:
        return self.entry.sender.startswith(MGR)


class Monitor:
    """Commands wait in a queue; `prepare` turns those of one epoch into a MapChange.

    An upmap command for a PG that the same epoch already changes waits for the next epoch.
    As in Ceph a return code of 0 for an upmap does not mean that the entry is kept.
    """

    def __init__(self, cluster: Cluster, rng: Optional[random.Random] = None) -> None:
        self.cluster = cluster
        self.faults = MonFaults(rng or random.Random(0))
        #: Every command, in the order of sending.
        self.log: List[LoggedCommand] = []
        #: Called with every command when it is sent.
        self.observers: List[Callable[[LoggedCommand], None]] = []
        self._queue: List[_Queued] = []
        self._clean_all = True
        self._handlers: Dict[str, Callable[[Dict[str, Any], MapChange], str]] = {
            "osd pg-upmap-items": self._set_items,
            "osd rm-pg-upmap-items": self._remove_items,
            "osd pg-upmap": self._set_mapping,
            "osd rm-pg-upmap": self._remove_mapping,
            "osd pg-upmap-primary": self._set_primary,
            "osd rm-pg-upmap-primary": self._remove_primary,
            "osd set-require-min-compat-client": self._set_min_compat_client,
            "osd set": self._set_flag,
            "osd unset": self._unset_flag,
            "osd set-group": partial(group_flags.change_groups, cluster, is_set=True),
            "osd unset-group": partial(group_flags.change_groups, cluster, is_set=False),
            "osd pool rm": self._remove_pool,
            "osd pool set": self._set_pool,
        }

    def submit(self, command_json: str, done: Callable[[int, str, str], None]) -> None:
        """Queues a mgr's command; `done` gets the answer (return code, stdout, stderr) when its
        epoch is made."""
        self.submit_from(MGR, command_json, done)

    def submit_from(self, sender: str, command_json: str,
                    done: Callable[[int, str, str], None]) -> None:
        """Does the same as `submit`, for another sender."""
        try:
            command = json.loads(command_json)
            if not isinstance(command, dict):
                raise ValueError("not an object")
        except ValueError:
            command = {"prefix": ""}
        now = self.cluster.clock.now
        entry = LoggedCommand(now, sender, command)
        self.log.append(entry)
        for observer in self.observers:
            observer(entry)
        item = _Queued(entry, done, now)
        if item.from_mgr:
            item.due += self.faults.delay
        self._queue.append(item)

    @property
    def busy(self) -> bool:
        """Returns True if a command waits for its epoch."""
        return bool(self._queue)

    @property
    def ready(self) -> bool:
        """Returns True if a waiting command can have its epoch now."""
        return any(map(self._is_due, self._queue))

    def next_moment(self) -> Optional[float]:
        """Returns the moment at which the next delayed command is due."""
        return min((item.due for item in self._queue if self._reachable(item)), default=None)

    def _reachable(self, item: _Queued) -> bool:
        return self.faults.connected or not item.from_mgr

    def _is_due(self, item: _Queued) -> bool:
        return item.due <= self.cluster.clock.now and self._reachable(item)

    # -- one epoch ----------------------------------------------------------------------------

    def prepare(self, change: MapChange) -> List[Callable[[], None]]:
        """Puts the due commands into the change; returns functions that send their answers."""
        answers: List[Callable[[], None]] = []
        touched: Set[str] = set()
        later: List[_Queued] = []
        for item in self._queue:
            pgid = str(item.entry.command.get("pgid", ""))
            if (pgid and pgid in touched) or not self._is_due(item):
                later.append(item)
                continue
            rejection = None
            if item.from_mgr:
                rejection = self.faults.rejection()
            answer = rejection or self._run(item.entry.command, change)
            if item.from_mgr and pgid in change.upmap_items and self.faults.drops(pgid):
                change.upmap_items[pgid] = None
            if pgid and answer[0] == 0:
                touched.add(pgid)
            answers.append(self._answer(item, answer))
        self._queue = later
        return answers

    def _answer(self, item: _Queued, answer: Answer) -> Callable[[], None]:
        """Returns a function that answers the sender, unless the answer is lost; called after the
        epoch.
        """
        given: Optional[Answer] = answer
        if item.from_mgr and self.faults.loses():
            given = self.faults.lost_answer()

        def tell() -> None:
            entry = item.entry
            entry.done_at = self.cluster.clock.now
            entry.epoch = self.cluster.map.epoch
            entry.returncode, entry.message = answer[0], answer[2]
            entry.answer = given
            entry.kept = self._keeps(entry.command)
            if given is not None:
                item.done(*given)
        return tell

    def _keeps(self, command: Dict[str, Any]) -> bool:
        """Returns True if the map has the upmap items that a command has set."""
        if command.get("prefix") != "osd pg-upmap-items":
            return True
        numbers = list(map(int, command.get("id", [])))
        pairs = tuple(zip(numbers[::2], numbers[1::2]))
        return self.cluster.map.upmap_items.get(str(command.get("pgid", "")), ()) == pairs

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

        Entries that have not changed, on a map that has not changed, are not checked again.
        """
        entries: Dict[str, Optional[Items]] = dict(change.upmap_items)
        if change.rest or change.removed_pools or change.moves_data:
            pg_upmap.clean(self.cluster, change)
        if self._clean_all or change.removed_pools or change.moves_data:
            entries = {**self.cluster.map.upmap_items, **entries}
        self._clean_all = False
        cancelled: Set[str] = set()
        for pgid, items in entries.items():
            if not items:
                continue
            kept = self._cleaned(pgid, items, change)
            if kept != items:
                change.upmap_items[pgid] = kept or None
            if not kept:
                cancelled.add(pgid)
        if cancelled and self.cluster.release >= 20:   # seen on 18.2.7 and 20.2.4
            pg_upmap.drop_primaries(self.cluster, change, cancelled)

    def _cleaned(self, pgid: str, items: Items, change: MapChange) -> Items:
        cluster = self.cluster
        pool_id, position = pg_order(pgid)
        pool = cluster.map.pools.get(pool_id)
        pg = cluster.pgs.get(pgid)
        if pool is None or pool_id in change.removed_pools or pg is None:
            return ()
        if is_merging(pool, position):
            return ()
        if pg.raw is None:
            # without a raw mapping entries cannot be checked: old ones stay, new ones do not
            return cluster.map.upmap_items.get(pgid, ())
        return upmap.clean(cluster.crush, int(pool["crush_rule"]), int(pool["size"]), pg.raw,
                           items, self._reweight, cluster.upmap_base(pg))

    def _reweight(self, osd: int) -> float:
        return self.cluster.map.reweight(osd)

    # -- commands -----------------------------------------------------------------------------

    def _checked_pg(self, command: Dict[str, Any], needed: str = "luminous",
                    feature: str = "pg-upmap") -> str:
        osdmap = self.cluster.map
        release = osdmap.min_compat_client
        order = RELEASE_NAMES.index
        if release in RELEASE_NAMES and order(release) < order(needed):
            raise StubError(errno.EPERM, (
                f"min_compat_client {release} < {needed}, which is required for {feature}. Try "
                f"'ceph osd set-require-min-compat-client {needed}' before using the new"
                " interface"))
        pgid = str(command.get("pgid", ""))
        try:
            pool_id, position = pg_order(pgid)
        except ValueError:
            raise invalid(f"invalid pgid '{pgid}'") from None
        pool = osdmap.pools.get(pool_id)
        if pool is None or not 0 <= position < int(pool["pg_num"]):
            quoted = f"pg {pgid}"
            if self.cluster.release >= 18:
                quoted = f"pgid '{pgid}'"
            raise StubError(errno.ENOENT, f"{quoted} does not exist")
        return f"{pool_id}.{position:x}"

    def _led_pg(self, command: Dict[str, Any]) -> str:
        """Returns the PG of a command about primaries."""
        if self.cluster.release < 18:
            raise invalid("command not known")
        pgid = self._checked_pg(command, "reef", "pg-upmap-primary")
        if self.cluster.pgs[pgid].erasure:
            raise invalid("pg-upmap-primary is only supported for replicated pools")
        return pgid

    def _set_items(self, command: Dict[str, Any], change: MapChange) -> str:
        pgid = self._checked_pg(command)
        numbers = list(map(int, command.get("id", [])))
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
        change.force_epoch = True
        return f"clear {pgid} pg_upmap_items mapping"

    def _set_mapping(self, command: Dict[str, Any], change: MapChange) -> str:
        return pg_upmap.set_mapping(
            self.cluster, self._checked_pg(command), _osds(command), change)

    def _remove_mapping(self, command: Dict[str, Any], change: MapChange) -> str:
        return pg_upmap.remove_mapping(self.cluster, self._checked_pg(command), change)

    def _set_primary(self, command: Dict[str, Any], change: MapChange) -> str:
        return pg_upmap.set_primary(
            self.cluster, self._led_pg(command), _osds(command)[0], change)

    def _remove_primary(self, command: Dict[str, Any], change: MapChange) -> str:
        return pg_upmap.remove_primary(self.cluster, self._led_pg(command), change)

    def _set_min_compat_client(self, command: Dict[str, Any], change: MapChange) -> str:
        version = str(command.get("version", ""))
        if version not in RELEASE_NAMES:
            raise invalid(f"version {version} is not recognized")
        change.min_compat_client = version
        return f"set require_min_compat_client to {version}"

    def _flags(self, change: MapChange) -> FrozenSet[str]:
        if change.flags is None:
            return self.cluster.map.flags
        return change.flags

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
        return flags_of(key)

    def _remove_pool(self, command: Dict[str, Any], change: MapChange) -> str:
        name = str(command.get("pool", ""))
        pool_id = self.cluster.map.pool_named(name)
        if pool_id is None:
            raise StubError(errno.ENOENT, f"pool '{name}' does not exist")
        change.removed_pools.add(pool_id)
        return f"pool '{name}' removed"

    def _set_pool(self, command: Dict[str, Any], change: MapChange) -> str:
        """Sets a variable of operators (pg_num, pgp_num) or of the mgr (*_actual)."""
        name = str(command.get("pool", ""))
        variable = str(command.get("var", ""))
        pool_id = self.cluster.map.pool_named(name)
        if pool_id is None or pool_id in change.removed_pools:
            raise StubError(errno.ENOENT, f"unrecognized pool '{name}'")
        text = str(command.get("val", ""))
        if not text.isdigit() or not 0 < int(text) <= _MAX_PG_NUM:
            raise invalid(f"'{text}' must be >= 1 and <= {_MAX_PG_NUM}")
        keys = _POOL_VARIABLES.get(variable)
        if keys is None:
            raise invalid(f"invalid variable '{variable}'")
        pool = change.pools.get(pool_id, self.cluster.map.pools[pool_id])
        pool = {**pool, **pg_nums(pool)}
        if variable == "pg_num_actual" and int(text) < pool["pg_num"]:
            keys = ("pg_num_pending",)  # the PGs get ready to merge first
        if variable == "pg_num" and pool["pg_placement_num_target"] != pool["pg_num_target"]:
            keys = ("pg_num_target",)   # a pgp_num that was set for good stays
        change.pools[pool_id] = {**pool, **dict.fromkeys(keys, int(text))}
        return f"set pool {pool_id} {variable} to {text}"


def _osds(command: Dict[str, Any]) -> List[int]:
    """Returns the OSDs of a command; a single one may come without a list."""
    named = command.get("id", [])
    if not isinstance(named, list):
        named = [named]
    osds = list(map(int, named))
    if not osds:
        raise invalid("it names no OSD")
    return osds
