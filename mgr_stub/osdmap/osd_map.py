"""One epoch of the simulated osdmap.

Entries of `osds` in the osdmap dump, changed for an OSD that goes out, in, down or up.

PG numbers of a pool, from its entry in the osdmap dump.

The changes of one osdmap epoch, as in Ceph's OSDMap::Incremental.
"""
from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Dict, FrozenSet, List, Mapping as MappingType, Optional, Set

from ..crush.hashes import NONE, WEIGHT_ONE
from .crush_map import CrushMap
from .upmap import Items, Mapping, as_kept, has_affinities, primary_place, with_holes

#: Type of an erasure-coded pool in the osdmap; a replicated one has 1.
ERASURE = 3

#: Release names by number, as `require_min_compat_client` and `require_osd_release` use them.
RELEASE_NAMES = ("argonaut", "bobtail", "cuttlefish", "dumpling", "emperor", "firefly", "giant",
            "hammer", "infernalis", "jewel", "kraken", "luminous", "mimic", "nautilus", "octopus",
            "pacific", "quincy", "reef", "squid", "tentacle")

_READ_BALANCE = {"score_acting": 0.0, "score_stable": 0.0, "optimal_score": 0.0,
                 "raw_score_acting": 0.0, "raw_score_stable": 0.0,
                 "primary_affinity_weighted": 0.0, "average_primary_affinity": 0.0,
                 "average_primary_affinity_weighted": 0.0}


def is_erasure(pool: MappingType[str, Any]) -> bool:
    """Returns True if a pool of the osdmap dump is erasure-coded: the order of its PGs' OSDs
    matters.
    """
    return int(pool["type"]) == ERASURE


@dataclass(frozen=True)
class OsdMap:
    """One epoch, immutable; the next one shares all unchanged tables with it.

    `up` holds the up set of every PG without down OSDs, `pg_temp` the acting sets that differ.
    """

    epoch: int
    pools: Dict[int, Dict[str, Any]]
    osds: Dict[int, Dict[str, Any]]
    flags: FrozenSet[str]
    upmap_items: Dict[str, Items]
    pg_temp: Dict[str, Mapping]
    up: Dict[str, Mapping]
    min_compat_client: str
    modified: str
    #: All other keys of the dump, as in the state file.
    rest: Dict[str, Any]

    def next(self, **changes: Any) -> OsdMap:
        """Returns the following epoch with some fields replaced."""
        return replace(self, epoch=self.epoch + 1, **changes)

    @cached_property
    def full_upmaps(self) -> Dict[str, Mapping]:
        """Returns {pgid: OSDs} of the pg_upmap entries."""
        return {entry["pgid"]: tuple(entry["osds"]) for entry in self.rest.get("pg_upmap", [])}

    @cached_property
    def chosen_primaries(self) -> Dict[str, int]:
        """Returns {pgid: OSD} of the pg_upmap_primaries entries (since Ceph 18)."""
        return {entry["pgid"]: entry["primary_osd"]
                for entry in self.rest.get("pg_upmap_primaries", [])}

    def exists(self, osd: int) -> bool:
        return osd in self.osds

    def is_up(self, osd: int) -> bool:
        return osd in self.osds and bool(self.osds[osd]["up"])

    def reweight(self, osd: int) -> float:
        """Returns the reweight 0..1 (0 = out); an OSD that does not exist has none."""
        if osd not in self.osds:
            return 0.0
        return float(self.osds[osd]["weight"])

    def acting(self, pgid: str) -> Mapping:
        """Returns the acting set of the PG: its pg_temp without down OSDs, else its up set."""
        temp = self.pg_temp.get(pgid)
        if temp is None:
            return self.up.get(pgid, ())
        osds = self.osds
        for osd in temp:
            if osd not in osds or not osds[osd]["up"]:
                break
        else:
            return temp
        erasure = is_erasure(self.pools[int(pgid.partition(".")[0])])
        present = up_from_mapping(temp, erasure, self)
        if any(osd != NONE for osd in present):
            return present
        return self.up.get(pgid, ())

    def _pool_of(self, pgid: str) -> Dict[str, Any]:
        return self.pools[int(pgid.partition(".")[0])]

    @cached_property
    def has_affinities(self) -> bool:
        """Returns True if any OSD has a primary affinity other than 1."""
        return has_affinities(self.osds)

    def up_primary(self, pgid: str) -> int:
        """Returns the primary of the up set; -1 if it is empty."""
        up = self.up.get(pgid, ())
        if not self.has_affinities:
            return primary_of(up)
        pool = self._pool_of(pgid)
        if not is_erasure(pool):
            return primary_of(up)
        place = primary_place(up, self.osds, pool, int(pgid.partition(".")[2], 16))
        if place < 0:
            return -1
        return up[place]

    def acting_primary(self, pgid: str) -> int:
        """Returns the primary of the acting set."""
        acting = self.acting(pgid)
        if pgid not in self.pg_temp or acting == ():
            return self.up_primary(pgid)
        return primary_of(as_kept(acting, self._pool_of(pgid)))

    def pool_named(self, name: str) -> Optional[int]:
        for pool_id, pool in self.pools.items():
            if pool["pool_name"] == name:
                return pool_id
        return None

    def data_chunks(self, pool_id: int) -> int:
        """Returns k of an erasure-coded pool, 1 of a replicated one."""
        pool = self.pools[pool_id]
        if not is_erasure(pool):
            return 1
        profile = self.rest["erasure_code_profiles"][pool["erasure_code_profile"]]
        return int(profile["k"])

    def ratio(self, name: str) -> float:
        """Returns `full_ratio`, `backfillfull_ratio` or `nearfull_ratio`."""
        usual = {"full_ratio": 0.95, "backfillfull_ratio": 0.9, "nearfull_ratio": 0.85}
        return float(self.rest.get(name, usual[name]))

    def dump(self, release: int) -> Dict[str, Any]:
        """Returns the map in the form of `ceph osd dump` of a release; new objects."""
        flags = sorted(self.flags)
        shown = {
            **self.rest,
            "epoch": self.epoch,
            "modified": self.modified,
            "flags": ",".join(flags),
            "flags_set": flags,
            "require_min_compat_client": self.min_compat_client,
            "pools": [_pool_of_release(pool, release) for pool in self.pools.values()],
            "osds": list(map(_entry, self.osds.values())),
            "osd_xinfo": _xinfo(self.rest.get("osd_xinfo", []), self.osds),
            "pg_upmap_items": [_dump_items(pgid, items)
                               for pgid, items in self.upmap_items.items()],
            "pg_temp": [{"pgid": pgid, "osds": list(as_kept(osds, self._pool_of(pgid)))}
                        for pgid, osds in self.pg_temp.items()],
        }
        if release >= 18:
            shown.setdefault("pg_upmap_primaries", [])
        else:
            shown.pop("pg_upmap_primaries", None)
        return shown


def _pool_of_release(pool: Dict[str, Any], release: int) -> Dict[str, Any]:
    """Returns a pool's entry; Ceph 18 and later add the read balance of replicated pools, 20 its
    type.
    """
    shaped = dict(pool)
    if release >= 20:
        shaped = {"is_stretch_pool": False, "nonprimary_shards": "{}", **shaped}
    if release < 18 or is_erasure(pool):
        shaped.pop("read_balance", None)
        return shaped
    score = {**_READ_BALANCE, **pool.get("read_balance", {})}
    if release >= 20:
        score.setdefault("score_type", "Fair distribution")
    shaped["read_balance"] = score
    return shaped


def _entry(osd: Dict[str, Any]) -> Dict[str, Any]:
    """Returns an osds[] record, without the reweight before `out`: that is in osd_xinfo[]."""
    shown = {**osd, "state": list(osd["state"])}
    shown.pop("old_weight", None)
    return shown


def _xinfo(records: List[Dict[str, Any]], osds: Dict[int, Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Returns osd_xinfo[] with the 16.16 reweights of OSDs before they were out, 0 for those in."""
    known = {int(record["osd"]): record for record in records}
    for osd, entry in osds.items():
        old = int(entry.get("old_weight", 0.0) * WEIGHT_ONE)
        record = known.get(osd, {"osd": osd})
        if old != record.get("old_weight", 0):
            known[osd] = {**record, "old_weight": old}
    return list(known.values())


def _dump_items(pgid: str, items: Items) -> Dict[str, Any]:
    return {"pgid": pgid, "mappings": [{"from": a, "to": b} for a, b in items]}


def up_from_mapping(mapping: Mapping, erasure: bool, osdmap: OsdMap) -> Mapping:
    """Returns the up set of a mapping: down OSDs become holes (erasure) or are left out
    (replicated).
    """
    down = {osd for osd in mapping if not osdmap.is_up(osd)}
    if not down:
        return mapping
    if erasure:
        return with_holes(mapping, down)
    return tuple(osd for osd in mapping if osd not in down)


def primary_of(osds: Mapping) -> int:
    """Returns the first present member, -1 if there is none."""
    for osd in osds:
        if osd != NONE:
            return osd
    return -1


def pgids_of(pool_id: int, pool: MappingType[str, Any]) -> List[str]:
    """Returns all PG ids of a pool."""
    return [f"{pool_id}.{position:x}" for position in range(int(pool["pg_num"]))]


def status_of(entry: MappingType[str, Any]) -> str:
    """Returns the word for an OSD that is up, or for one that is not."""
    if entry["up"]:
        return "up"
    return "down"


#: State of an OSD that the monitor has marked out automatically.
AUTO_OUT = "autoout"


def marked_out(entry: Dict[str, Any], automatically: bool = False) -> Dict[str, Any]:
    """Returns the entry of an OSD marked out; its reweight is kept for its return.

    `automatically` means by the monitor: the OSD is marked in again once it is up.
    """
    if float(entry["weight"]) <= 0:
        return entry
    state = entry["state"]
    if automatically:
        state = sorted({*state, AUTO_OUT})
    return {**entry, "in": 0, "weight": 0.0, "old_weight": float(entry["weight"]), "state": state}


def marked_in(entry: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the entry of an OSD marked in, with its previous reweight."""
    if float(entry["weight"]) > 0:
        return entry
    return reweighted(entry, entry.get("old_weight", 0.0) or 1.0)


def reweighted(entry: Dict[str, Any], weight: float) -> Dict[str, Any]:
    """Returns the entry of an OSD with a reweight 0..1; above 0 the previous one is dropped."""
    if weight <= 0:
        return {**entry, "in": 0, "weight": 0.0}
    return {**entry, "in": 1, "weight": float(weight), "old_weight": 0.0,
            "state": [word for word in entry["state"] if word != AUTO_OUT]}


def marked_down(entry: Dict[str, Any]) -> Dict[str, Any]:
    """Returns the entry of an OSD marked down."""
    return {**entry, "up": 0, "state": [word for word in entry["state"] if word != "up"]}


def marked_up(entry: Dict[str, Any], comes_in: bool, epoch: int) -> Dict[str, Any]:
    """Returns the entry of an OSD marked up; with `comes_in` it is marked in if the monitor marked
    it out.

    `epoch` is the first one with the OSD up; it becomes `up_from` of an OSD that was down.
    """
    if entry["up"]:
        started = entry
    else:
        down = marked_down(entry)
        started = {**down, "up": 1, "up_from": epoch, "state": down["state"] + ["up"]}
    if comes_in and AUTO_OUT in entry["state"]:
        return marked_in(started)
    return started


#: Flags of single OSDs, CRUSH buckets and device classes (`osd set-group`), and the keys of the
#: osdmap dump for those of buckets and classes.
GROUP_FLAGS = ("noup", "nodown", "noin", "noout")
NODE_FLAGS = "crush_node_flags"
CLASS_FLAGS = "device_class_flags"


def has_flag(osdmap: OsdMap, crush: CrushMap, osd: int, flag: str) -> bool:
    """Returns True if an OSD has a flag: the map's, its own, or that of a bucket or class of it.
    """
    if flag in osdmap.flags or flag in osdmap.osds[osd]["state"]:
        return True
    if flag in osdmap.rest.get(CLASS_FLAGS, {}).get(crush.classes.get(osd, ""), ()):
        return True
    names = {name for name, flags in osdmap.rest.get(NODE_FLAGS, {}).items() if flag in flags}
    return any(osd in crush.weights_below(item) for item, bucket in crush.buckets.items()
               if bucket["name"] in names)


def pg_nums(pool: Dict[str, Any]) -> Dict[str, int]:
    """Returns pg_num, pgp_num and their targets; those missing in old state files are filled in."""
    pg_num = int(pool["pg_num"])
    target = int(pool.get("pg_num_target") or pg_num)
    placement = int(pool.get("pg_placement_num") or pg_num)
    return {"pg_num": pg_num, "pg_num_target": target, "pg_placement_num": placement,
            "pg_num_pending": int(pool.get("pg_num_pending") or pg_num),
            "pg_placement_num_target": int(pool.get("pg_placement_num_target") or placement)}


def in_transition(pool: Dict[str, Any]) -> bool:
    """Returns True if pg_num or pgp_num has not reached its target; a pgp_num may be lower for
    good.
    """
    now = pg_nums(pool)
    if not now["pg_num"] == now["pg_num_target"] == now["pg_num_pending"]:
        return True
    return now["pg_placement_num"] != min(now["pg_num"], now["pg_placement_num_target"])


def share_of(position: int, pg_num: int) -> int:
    """Returns the relative share of a pool's objects that a PG has: 2 for a PG still to be split,
    else 1.
    """
    half = (1 << (pg_num - 1).bit_length()) >> 1
    if position < half and position + half >= pg_num:
        return 2
    return 1


def parent_of(position: int) -> int:
    """Returns the position of the PG that a PG is split from and merged into."""
    if position == 0:
        return 0
    return position & ~(1 << (position.bit_length() - 1))


def is_merging(pool: Dict[str, Any], position: int) -> bool:
    """Returns True for a PG that is about to be merged into another, or to take one in."""
    counts = pg_nums(pool)
    sources = range(counts["pg_num_pending"], counts["pg_num"])
    if position in sources:
        return True
    return any(parent_of(source) == position for source in sources)


@dataclass
class MapChange:
    """The changes of one epoch; a value of None removes the entry."""

    upmap_items: Dict[str, Optional[Items]] = field(default_factory=dict)
    pg_temp: Dict[str, Optional[Mapping]] = field(default_factory=dict)
    removed_pools: Set[int] = field(default_factory=set)
    #: New or changed entries of the osdmap's `osds` and `pools`, whole.
    osds: Dict[int, Dict[str, Any]] = field(default_factory=dict)
    pools: Dict[int, Dict[str, Any]] = field(default_factory=dict)
    #: A whole CRUSH dump.
    crush: Optional[Dict[str, Any]] = None
    #: Other keys of the dump: full ratios, erasure-code profiles.
    rest: Dict[str, Any] = field(default_factory=dict)
    #: PGs whose pg_upmap or chosen primary changes in `rest`.
    remapped: Set[str] = field(default_factory=set)
    flags: Optional[FrozenSet[str]] = None
    min_compat_client: Optional[str] = None
    #: Makes an epoch even if nothing else changes.
    force_epoch: bool = False

    def __bool__(self) -> bool:
        return bool(self.pg_temp or self.force_epoch or not self.is_pg_temp_only)

    @property
    def is_pg_temp_only(self) -> bool:
        """Returns True if nothing changes but pg_temp, the OSDs that serve PGs while data moves."""
        if self.flags is not None or self.min_compat_client is not None:
            return False
        if self.upmap_items or self.removed_pools:
            return False
        return not self.rest and not self.moves_data

    @property
    def moves_data(self) -> bool:
        """Returns True if raw mappings or up sets may change, other than by upmap items."""
        return bool(self.osds or self.pools or self.crush is not None)
