"""The pools of a snapshot: what the osdmap says of each, its CRUSH rule, the states of its PGs."""
from __future__ import annotations

import re
from math import inf
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import PlacementRule
from ..crush.rule import UnsupportedRule
from ..runtime.time_slice import piecewise
from . import immovable_reasons as reasons, pg_states
from .immovable_reasons import Immovable
from .model import PgStateCounts, Pool, Reading

_ERASURE = 3
#: Codes whose chunks are all alike to a rule. Of others, as of lrc, neighboring chunks may depend
#: on each other.
_ALIKE = frozenset(("jerasure", "isa", "clay", "shec"))
_STEPS = ("pg_num", "pg_num_target", "pg_num_pending", "pg_placement_num",
          "pg_placement_num_target")
_PGS_A_PIECE = 500   # before it gives way again: less than a millisecond


def nonprimary_shards(pool: Mapping[str, Any]) -> FrozenSet[int]:
    """Shards that can never be primary; since Ceph 20 a text such as `{1,2,3}` in the dump."""
    shards = pool.get("nonprimary_shards") or ()
    return frozenset(map(int, re.findall(r"\d+", shards) if isinstance(shards, str) else shards))


class PoolReader:
    """Reads the pools. The rules of one CRUSH map are parsed once."""

    def __init__(self) -> None:
        self._crush: Optional[CrushHierarchy] = None
        self._rules: Dict[Tuple[int, int, bool], PlacementRule] = {}
        self._steps: Dict[Tuple[Any, ...], float] = {}   # a pool's id and _STEPS → since when

    def read(self, reading: Reading, crush: CrushHierarchy) -> Dict[int, Pool]:
        """Pool id → pool of every pool in the map."""
        if crush is not self._crush:
            self._crush, self._rules = crush, {}
        stored = {p["poolid"]: max(0, p.get("stat_sum", {}).get("num_bytes", 0))
                  for p in reading.pool_stats}
        pools: Dict[int, Pool] = {}
        steps: Dict[Tuple[Any, ...], float] = {}
        for dump in reading.osd_map["pools"]:
            erasure = dump["type"] == _ERASURE
            data_shards, reason = _data_shards(dump, reading.osd_map)
            key = (dump["pool"], *map(dump.get, _STEPS))
            steps[key] = min(self._steps.get(key, inf), reading.taken_at)
            positional = erasure and _profile(dump, reading.osd_map).get("plugin") not in _ALIKE
            rule, rule_reason = self._rule(crush, dump["crush_rule"], dump["size"], positional)
            pools[dump["pool"]] = Pool(
                id=dump["pool"], name=dump["pool_name"], size=dump["size"],
                data_shards=data_shards, erasure=erasure, rule_id=dump["crush_rule"],
                pg_num=dump["pg_num"], stored_bytes=stored.get(dump["pool"], 0),
                rule=rule,
                immovable=_in_stretch(reading.osd_map) or reason or rule_reason,
                touched=touched_pgs(dump), stepped_at=steps[key],
                is_optimized=erasure and (
                    "ec_optimizations" in str(dump.get("flags_names", ""))
                    or bool(nonprimary_shards(dump))),
                min_size=int(dump.get("min_size", 1)), positional=positional)
        self._steps = steps
        return pools

    def _rule(self, crush: CrushHierarchy, rule_id: int, size: int,
              positional: bool) -> Tuple[Optional[PlacementRule], Optional[Immovable]]:
        """The rule, or None and why there is none."""
        key = (rule_id, size, positional)
        try:
            if key not in self._rules:
                self._rules[key] = PlacementRule(crush, crush.rules[rule_id], size, positional)
            return self._rules[key], None
        except UnsupportedRule as unsupported:
            return None, reasons.rule_not_supported(str(unsupported))
        except KeyError:
            return None, reasons.NO_RULE


def _profile(dump: Mapping[str, Any], osd_map: Mapping[str, Any]) -> Mapping[str, Any]:
    """The erasure-code profile of a pool; empty where it has none that is known."""
    found: Mapping[str, Any] = osd_map.get("erasure_code_profiles", {}).get(
        dump.get("erasure_code_profile"), {})
    return found


def _data_shards(dump: Mapping[str, Any],
                 osd_map: Mapping[str, Any]) -> Tuple[int, Optional[Immovable]]:
    """k of an erasure-coded pool, 1 of a replicated one; 1 and a reason where k is not known."""
    if dump["type"] != _ERASURE:
        return 1, None
    try:
        return max(1, int(_profile(dump, osd_map)["k"])), None
    except (KeyError, ValueError):
        return 1, reasons.NO_DATA_SHARDS


def touched_pgs(dump: Mapping[str, Any]) -> Dict[int, Immovable]:
    """Number of a PG → what the mgr's steps of pg_num and pgp_num will do to it; empty where both
    have their values. A pgp_num below pg_num that is to stay so is no change."""
    pg_num = dump["pg_num"]
    target, pending, pgp_num = [dump.get(key, pg_num) for key in (
        "pg_num_target", "pg_num_pending", "pg_placement_num")]
    last, last_pgp = min(target, pending), min(target, dump.get("pg_placement_num_target", pgp_num))
    if pg_num == target == pending and pgp_num == last_pgp:
        return {}
    found: Dict[int, Immovable] = {}
    for ps in piecewise(range(pg_num), _PGS_A_PIECE):
        if ps >= last or _next_child(ps, last) < pg_num:
            found[ps] = reasons.TO_MERGE
        elif _next_child(ps, pg_num) < target:
            found[ps] = reasons.TO_SPLIT
        elif _placed_as(ps, pgp_num) != _placed_as(ps, last_pgp):
            found[ps] = reasons.TO_PLACE
    return found


def merge_target(ps: int) -> int:
    """The number of the PG that one is merged into, and was split from."""
    return ps & ~(1 << ps.bit_length() - 1) if ps else 0


def _next_child(ps: int, least: int) -> int:
    """The lowest number, and no less than `least`, of a PG that is merged into one."""
    bit = 1 << ps.bit_length()
    while ps + bit < least:
        bit <<= 1
    return ps + bit


def _placed_as(ps: int, pgp_num: int) -> int:
    """The number by which CRUSH places a PG."""
    while ps and ps >= pgp_num:
        ps = merge_target(ps)
    return ps


def _in_stretch(osd_map: Mapping[str, Any]) -> Optional[Immovable]:
    """Returns why no PG of any pool may move, or None."""
    stretch = osd_map.get("stretch_mode", {})
    return reasons.DEGRADED_STRETCH if stretch.get("degraded_stretch_mode") or stretch.get(
        "recovering_stretch_mode") else None


def count_states(states: Mapping[str, int]) -> PgStateCounts:
    """Counts the PGs of a pool; `states`: state as Ceph names it → PGs."""
    inactive = degraded = unreported = 0
    for state, count in states.items():
        if pg_states.is_inactive(state):
            inactive += count
            if pg_states.UNKNOWN in state:
                unreported += count
        elif pg_states.has_any(state, pg_states.SHORT):
            degraded += count
    return PgStateCounts(inactive, degraded, unreported)


def corrected_states(pg_status: Mapping[str, Any], lacking: Mapping[int, int],
                     only_moving: Mapping[int, int]) -> Dict[int, PgStateCounts]:
    """Pool id → PG states of `pg_status`. PGs that only move are not degraded, and PGs that lack
    copies by the osdmap are, before `pg_status` shows it; both by pool id."""
    states: Dict[int, PgStateCounts] = {}
    for pool in pg_status.get("pgs_by_pool_state", []):
        states[pool["pool_id"]] = count_states({
            entry["state_name"]: entry["count"] for entry in pool.get("pg_state_counts", [])})
    for pool_id in lacking.keys() | only_moving.keys():
        reported = states.get(pool_id, PgStateCounts(0, 0))
        states[pool_id] = reported._replace(degraded=max(
            0, reported.degraded - only_moving.get(pool_id, 0),
            lacking.get(pool_id, 0) - reported.inactive))
    return states
