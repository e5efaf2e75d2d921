"""Reads the pools of a snapshot from the osdmap, with their CRUSH rules and the states of PGs."""
from __future__ import annotations

import re
from collections import Counter
from math import inf
from typing import Any, Dict, FrozenSet, Mapping, Optional, Tuple

from ..crush.hierarchy import CrushHierarchy
from ..crush.placement import PlacementRule
from ..crush.rule import UnsupportedRule
from ..runtime.time_slice import piecewise
from . import immovable_reasons as reasons, pg_states
from .immovable_reasons import Immovable
from .model import PgStateCounts, Pool, Reading

_ERASURE = 3
#: Codes whose chunks are all alike to a rule. In other codes, such as lrc, neighboring chunks can
#: depend on each other.
_ALIKE = frozenset(("jerasure", "isa", "clay", "shec"))
_STEPS = ("pg_num", "pg_num_target", "pg_num_pending", "pg_placement_num",
          "pg_placement_num_target")
_PGS_A_PIECE = 500   # between two calls of `give_way`: less than a millisecond


def nonprimary_shards(pool: Mapping[str, Any]) -> FrozenSet[int]:
    """Returns the shards that can never be primary. Since Ceph 20 the dump has them as a text such
    as `{1,2,3}`."""
    return frozenset(map(int, re.findall(r"\d+", str(pool.get("nonprimary_shards")))))


class PoolReader:
    """Reads the pools. Parses the rules of one CRUSH map once."""

    def __init__(self) -> None:
        self._crush: Optional[CrushHierarchy] = None
        self._rules: Dict[Tuple[int, int, bool], PlacementRule] = {}
        #: (a pool's id, its _STEPS) → when a reading first had these, seconds since the epoch
        self._steps: Dict[Tuple[Any, ...], float] = {}

    def read(self, reading: Reading, crush: CrushHierarchy) -> Dict[int, Pool]:
        """Returns pool id → pool for every pool of the osdmap."""
        if crush is not self._crush:
            self._crush = crush
            self._rules = {}
        osd_map = reading.osd_map
        stretched = _in_stretch(osd_map)
        stored = {p["poolid"]: p.get("stat_sum", {}).get("num_bytes", 0)
                  for p in reading.pool_stats}
        pools: Dict[int, Pool] = {}
        steps: Dict[Tuple[Any, ...], float] = {}
        for dump in osd_map["pools"]:
            number = dump["pool"]
            size = dump["size"]
            rule_id = dump["crush_rule"]
            erasure = dump["type"] == _ERASURE
            profile = _profile(dump, osd_map)
            data_shards = 1
            reason = None
            if erasure:
                data_shards, reason = _data_shards(profile)
            key = (number, *map(dump.get, _STEPS))
            steps[key] = min(self._steps.get(key, inf), reading.taken_at)
            is_grouped = erasure and profile.get("plugin") not in _ALIKE
            rule, rule_reason = self._rule(crush, rule_id, size, is_grouped)
            has_flag = "ec_optimizations" in str(dump.get("flags_names", ""))
            pools[number] = Pool(
                id=number,
                name=dump["pool_name"],
                size=size,
                data_shards=data_shards,
                erasure=erasure,
                rule_id=rule_id,
                pg_num=dump["pg_num"],
                stored_bytes=max(0, stored.get(number, 0)),
                rule=rule,
                immovable=stretched or reason or rule_reason,
                touched=touched_pgs(dump),
                stepped_at=steps[key],
                is_optimized=erasure and (has_flag or bool(nonprimary_shards(dump))),
                min_size=int(dump.get("min_size", 1)),
                is_grouped=is_grouped)
        self._steps = steps
        return pools

    def _rule(self, crush: CrushHierarchy, rule_id: int, size: int,
              is_grouped: bool) -> Tuple[Optional[PlacementRule], Optional[Immovable]]:
        """Returns (the rule of a pool, why there is none); one of them is None."""
        key = (rule_id, size, is_grouped)
        try:
            if key not in self._rules:
                self._rules[key] = PlacementRule(crush, crush.rules[rule_id], size, is_grouped)
            return self._rules[key], None
        except UnsupportedRule as unsupported:
            return None, reasons.rule_not_supported(str(unsupported))
        except KeyError:
            return None, reasons.NO_RULE


def _profile(dump: Mapping[str, Any], osd_map: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the erasure-code profile of a pool; empty if it has none, or an unknown one."""
    found: Mapping[str, Any] = osd_map.get("erasure_code_profiles", {}).get(
        dump.get("erasure_code_profile"), {})
    return found


def _data_shards(profile: Mapping[str, Any]) -> Tuple[int, Optional[Immovable]]:
    """Returns (k of an erasure-code profile, None); 1 and a reason if k is not known."""
    try:
        return max(1, int(profile["k"])), None
    except (KeyError, ValueError):
        return 1, reasons.NO_DATA_SHARDS


def touched_pgs(dump: Mapping[str, Any]) -> Dict[int, Immovable]:
    """Returns number of a PG → why the mgr's steps of pg_num and pgp_num will change it.

    Empty if both have their final values; a pgp_num below pg_num can be final.
    """
    pg_num = dump["pg_num"]
    target, pending, pgp_num = [dump.get(key, pg_num) for key in (
        "pg_num_target", "pg_num_pending", "pg_placement_num")]
    last = min(target, pending)
    last_pgp = min(target, dump.get("pg_placement_num_target", pgp_num))
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
    """Returns the number of the PG that another is merged into, or was split from."""
    if not ps:
        return 0
    return ps & ~(1 << ps.bit_length() - 1)


def _next_child(ps: int, least: int) -> int:
    """Returns the lowest number, of those from `least` on, of a PG that is merged into this one."""
    bit = 1 << ps.bit_length()
    while ps + bit < least:
        bit <<= 1
    return ps + bit


def _placed_as(ps: int, pgp_num: int) -> int:
    """Returns the number that CRUSH places a PG by."""
    while ps and ps >= pgp_num:
        ps = merge_target(ps)
    return ps


def _in_stretch(osd_map: Mapping[str, Any]) -> Optional[Immovable]:
    """Returns why no PG of any pool may move, or None."""
    stretch = osd_map.get("stretch_mode", {})
    if stretch.get("degraded_stretch_mode") or stretch.get("recovering_stretch_mode"):
        return reasons.DEGRADED_STRETCH
    return None


def count_states(states: Mapping[str, int]) -> PgStateCounts:
    """Returns the counts of a pool's PGs. `states`: state as Ceph names it → PGs."""
    inactive = degraded = unreported = 0
    for state, count in states.items():
        if pg_states.is_inactive(state):
            inactive += count
            if pg_states.UNKNOWN in state:
                unreported += count
        elif pg_states.has_any(state, pg_states.SHORT):
            degraded += count
    return PgStateCounts(inactive, degraded, unreported)


def corrected_states(pg_status: Mapping[str, Any], lacking: Counter[int],
                     only_moving: Counter[int]) -> Dict[int, PgStateCounts]:
    """Returns pool id → PG states of `pg_status`, with corrected numbers of degraded PGs.

    `only_moving`: pool id → PGs that are not degraded, because they only move. `lacking`: pool id →
    PGs that lack copies by the osdmap, which `pg_status` does not show yet.
    """
    states: Dict[int, PgStateCounts] = {}
    for pool in pg_status.get("pgs_by_pool_state", []):
        counts = {entry["state_name"]: entry["count"]
                  for entry in pool.get("pg_state_counts", [])}
        states[pool["pool_id"]] = count_states(counts)
    for pool_id in lacking.keys() | only_moving.keys():
        reported = states.get(pool_id, PgStateCounts(0, 0))
        states[pool_id] = reported._replace(degraded=max(
            0, reported.degraded - only_moving[pool_id],
            lacking[pool_id] - reported.inactive))
    return states
