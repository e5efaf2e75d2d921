"""The pools of a snapshot: what the osdmap says of each, its CRUSH rule, the states of its PGs."""
from __future__ import annotations

import re
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import PlacementRule
from ..crush.rule import UnsupportedRule
from . import immovable_reasons as reasons
from .immovable_reasons import Immovable
from .model import PgStateCounts, Pool, Reading

_ERASURE = 3


def nonprimary_shards(pool: Mapping[str, Any]) -> FrozenSet[int]:
    """Shards that can never be primary; since Ceph 20 a text such as `{1,2,3}` in the dump."""
    shards = pool.get("nonprimary_shards") or ()
    if isinstance(shards, str):
        return frozenset(int(number) for number in re.findall(r"\d+", shards))
    return frozenset(int(number) for number in shards)


class PoolReader:
    """Reads the pools. The rules of one CRUSH map are parsed once."""

    def __init__(self) -> None:
        self._crush: Optional[CrushHierarchy] = None
        self._rules: Dict[Tuple[int, int, bool], PlacementRule] = {}

    def read(self, reading: Reading, crush: CrushHierarchy) -> Dict[int, Pool]:
        """Pool id → pool of every pool in the map."""
        if crush is not self._crush:
            self._crush, self._rules = crush, {}
        stored = {p["poolid"]: max(0, p.get("stat_sum", {}).get("num_bytes", 0))
                  for p in reading.pool_stats}
        pools: Dict[int, Pool] = {}
        for dump in reading.osd_map["pools"]:
            erasure = dump["type"] == _ERASURE
            data_shards, reason = _data_shards(dump, reading.osd_map)
            rule, rule_reason = self._rule(crush, dump["crush_rule"], dump["size"], erasure)
            pools[dump["pool"]] = Pool(
                id=dump["pool"], name=dump["pool_name"], size=dump["size"],
                data_shards=data_shards, erasure=erasure, rule_id=dump["crush_rule"],
                pg_num=dump["pg_num"], stored_bytes=stored.get(dump["pool"], 0),
                max_avail_bytes=reading.max_avail.get(dump["pool"]), rule=rule,
                immovable=_in_transition(dump, reading.osd_map) or reason or rule_reason,
                is_optimized=erasure and (
                    "ec_optimizations" in str(dump.get("flags_names", ""))
                    or bool(nonprimary_shards(dump))),
                min_size=int(dump.get("min_size", 1)))
        return pools

    def _rule(self, crush: CrushHierarchy, rule_id: int, size: int,
              erasure: bool) -> Tuple[Optional[PlacementRule], Optional[Immovable]]:
        """The rule, or None and why there is none."""
        key = (rule_id, size, erasure)
        try:
            if key not in self._rules:
                self._rules[key] = PlacementRule(crush, crush.rules[rule_id], size, erasure)
            return self._rules[key], None
        except UnsupportedRule as unsupported:
            return None, reasons.rule_not_supported(str(unsupported))
        except KeyError:
            return None, reasons.NO_RULE


def _data_shards(dump: Mapping[str, Any],
                 osd_map: Mapping[str, Any]) -> Tuple[int, Optional[Immovable]]:
    """k of an erasure-coded pool, 1 of a replicated one; 1 and a reason where k is not known."""
    if dump["type"] != _ERASURE:
        return 1, None
    profiles = osd_map.get("erasure_code_profiles", {})
    try:
        return max(1, int(profiles[dump["erasure_code_profile"]]["k"])), None
    except (KeyError, ValueError):
        return 1, reasons.NO_DATA_SHARDS


def _in_transition(dump: Mapping[str, Any], osd_map: Mapping[str, Any]) -> Optional[Immovable]:
    """Returns why no PG of a pool may move (a transition, or the kind of pool), or None."""
    pg_num = dump["pg_num"]
    if any(dump.get(key, pg_num) != pg_num for key in (
            "pg_num_target", "pg_num_pending", "pg_placement_num", "pg_placement_num_target")):
        return reasons.PG_NUM_CHANGING
    if dump.get("tier_of", -1) >= 0:
        return reasons.CACHE_TIER
    stretch = osd_map.get("stretch_mode", {})
    if stretch.get("degraded_stretch_mode") or stretch.get("recovering_stretch_mode"):
        return reasons.DEGRADED_STRETCH
    return None


def corrected_states(pg_status: Mapping[str, Any], lacking: Mapping[int, int],
                     only_moving: Mapping[int, int]) -> Dict[int, PgStateCounts]:
    """Pool id → PG states of `pg_status`. PGs that only move are not degraded, and PGs that lack
    copies by the osdmap are, before `pg_status` shows it; both by pool id."""
    states: Dict[int, PgStateCounts] = {}
    for pool in pg_status.get("pgs_by_pool_state", []):
        inactive = degraded = 0
        for entry in pool.get("pg_state_counts", []):
            names: List[str] = entry["state_name"].split("+")
            if "active" not in names:
                inactive += entry["count"]
            elif "degraded" in names or "undersized" in names:
                degraded += entry["count"]
        states[pool["pool_id"]] = PgStateCounts(inactive, degraded)
    for pool_id in lacking.keys() | only_moving.keys():
        reported = states.get(pool_id, PgStateCounts(0, 0))
        states[pool_id] = reported._replace(degraded=max(
            0, reported.degraded - only_moving.get(pool_id, 0),
            lacking.get(pool_id, 0) - reported.inactive))
    return states
