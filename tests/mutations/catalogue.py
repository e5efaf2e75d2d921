"""The mutations: each takes out one rule of safety. `old` stands exactly once in its file.

A rule that is enforced in two independent places is taken out of both, and is called `…-anywhere`:
one of the places alone keeps what is sent right.
"""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

BATCH = "equilibrium_mgr/execution/batch_selection.py"
THROTTLE = "equilibrium_mgr/execution/throttle.py"
THROTTLE_STATE = "equilibrium_mgr/execution/throttle_state.py"
GUARDS = "equilibrium_mgr/execution/guards.py"
GATES = "equilibrium_mgr/control/cluster_guards.py"
SENDING = "equilibrium_mgr/execution/dispatcher.py"
LOOP = "equilibrium_mgr/control/balancer.py"
LEDGER = "equilibrium_mgr/execution/pending_moves.py"
BUILD = "equilibrium_mgr/snapshot/builder.py"
POOLS = "equilibrium_mgr/snapshot/pools.py"
CHECKS = "equilibrium_mgr/snapshot/pg_checks.py"
RULE = "equilibrium_mgr/crush/placement.py"
SUMMARIES = "equilibrium_mgr/gateway/summary_reader.py"
COURSE = "equilibrium_mgr/execution/execution_slot.py"
LOGBOOK = "equilibrium_mgr/control/journal.py"
GATEWAY = "equilibrium_mgr/gateway/gateway.py"
TOOFULL = "equilibrium_mgr/observation/too_full.py"
BOARD = "equilibrium_mgr/planner/state/placement_state.py"
MONITOR = "equilibrium_mgr/crush/upmap_check.py"
TRACKER = "equilibrium_mgr/snapshot/in_flight.py"
TRANSIT = "equilibrium_mgr/execution/osd_traffic.py"
OPTIONS = "equilibrium_mgr/plan/options.py"
SIGHT = "equilibrium_mgr/observation/observer.py"
WALK = "equilibrium_mgr/execution/execution.py"
SHARDS = "equilibrium_mgr/snapshot/sizes/shard_inputs.py"
SIZES = "equilibrium_mgr/snapshot/sizes/shard_sizes.py"
AUTOMATIC = "equilibrium_mgr/control/auto_planner.py"


class Edit(NamedTuple):
    """One place."""

    file: str
    old: str
    new: str


class Mutation(NamedTuple):
    """One rule taken out."""

    name: str
    rule: str     # of safety, in a few words
    edits: Tuple[Edit, ...]
    likely: Tuple[str, ...]   # what pytest is told first, below tests/; `scenario:` and its name


def targets(likely: str) -> List[str]:
    """What pytest is told."""
    return [_FILE % word[len(_SCENARIO):] if word.startswith(_SCENARIO) else
            word if word.startswith("-") or "/" not in word else "tests/" + word
            for word in likely.split()]


_SCENARIO = "scenario:"
_FILE = "tests/scenarios/test_scenarios.py::test_scenario[%s]"


#: The monitor is taken to keep whatever it is sent.
_MONITOR_KEEPS_ALL = Edit(
    MONITOR,
    "        for osd in up:\n"
    "            if self._weights.get(osd, 0.0) <= 0.0:\n",
    "        return None\n"
    "        for osd in up:\n"
    "            if self._weights.get(osd, 0.0) <= 0.0:\n")

MUTATIONS: Tuple[Mutation, ...] = (
    # -- the guards, in the order in which design.md 6 has them
    Mutation(
        "off-is-not-obeyed",
        "an automatic plan ends where `active` is switched off by its option", (
            Edit(LOOP,
                 "        if execution is not None and not (execution.name or settings.active):\n",
                 "        if False:\n"),
            Edit(LOOP,
                 "            yield is_under_way and (bool(execution.name) or now.active) and (\n",
                 "            yield is_under_way and (\n"),),
        ("scenario:off_meanwhile",)),
    Mutation(
        "off-is-not-asked",
        "nothing after `off` has answered", (
            Edit(SENDING,
                 "            if not is_permitted:\n"
                 "                return None\n",
                 ""),),
        ("threads/test_off_is_final.py", "scenario:off_meanwhile",)),
    Mutation(
        "off-leaves-the-plan",
        "`off` stops the plan under way", (
            Edit(COURSE,
                 "            self._stops += 1\n"
                 "            execution, self.execution = self.execution, None\n",
                 "            execution = self.execution\n"),),
        ("scenario:off_executing",)),
    Mutation(
        "off-is-forgotten",
        "no successor takes up what `off` has stopped", (
            Edit(LOGBOOK,
                 "            self._memory.put(EXECUTION, None)\n"
                 "            self._memory.flush()\n",
                 "            pass\n"),),
        ("threads/test_off_is_final.py",)),
    Mutation(
        "options-are-not-asked",
        "nothing under options that do not hold any more", (
            Edit(LOOP,
                 "(bool(execution.name) or now.active) and (\n"
                 "                now._replace(active=settings.active) == settings)\n",
                 "(bool(execution.name) or now.active)\n"),),
        ("scenario:off_meanwhile",)),
    Mutation(
        "no-window",
        "nothing outside the window", (
            Edit(GATES,
                 "            if closed is not None:\n"
                 "                return closed\n",
                 "            if closed is not None:\n"
                 "                pass\n"),),
        ("scenario:guard_window",)),
    Mutation(
        "no-start-delay",
        "nothing within start_delay of a failover", (
            Edit(GATES,
                 "        if left > 0.0:\n"
                 "            return ActiveGuard(WAITING, \"the mgr has only",
                 "        if False:\n"
                 "            return ActiveGuard(WAITING, \"the mgr has only"),),
        ("scenario:guard_start",)),
    Mutation(
        "no-hold",
        "nothing while the built-in balancer may be finishing", (
            Edit(GATES,
                 "        if hold_seconds > 0.0:\n",
                 "        if False:\n"),),
        ("scenario:guard_monitor",)),
    Mutation(
        "hold-after-on-alone",
        "nothing while the built-in balancer may be finishing, whoever has switched it off", (
            Edit(GATES,
                 "        if not is_active and self._gateway.pop_builtin_was_active() and not (\n",
                 "        if False and not (\n"),),
        ("scenario:guard_builtin",)),
    Mutation(
        "builtin-is-not-watched",
        "nor where that was while equilibrium was off", (
            Edit(LOOP,
                 "            self._guards.observe_builtin()\n",
                 ""),),
        ("scenario:guard_builtin_by_hand",)),
    Mutation(
        "no-monitor-guard-anywhere",
        "nothing without a monitor, whether it is asked for flags or not", (
            Edit(GUARDS,
                 "    if not have_mon_connection:\n",
                 "    if False:\n"),
            Edit(GATEWAY,
                 "        return self._summaries.map_settings(epoch) if self.have_mon_connection() "
                 "else None\n",
                 "        return self._summaries.map_settings(epoch)\n"),
            Edit(SUMMARIES,
                 "        map_settings = self.map_settings(epoch) if with_map_settings and connected "
                 "else None\n",
                 "        map_settings = self.map_settings(epoch) if with_map_settings else None\n"),),
        ("scenario:guard_monitor",)),
    Mutation(
        "no-min-compat-guard",
        "nothing for clients before luminous", (
            Edit(GUARDS,
                 "    if refused:\n"
                 "        return refused\n",
                 "    if refused:\n"
                 "        pass\n"),),
        ("scenario:guard_old_clients",)),
    Mutation(
        "no-flags-guard",
        "nothing under norebalance, nobackfill, norecover, pause", (
            Edit(GUARDS,
                 "    if flags:\n",
                 "    if False:\n"),),
        ("scenario:guard_flags",)),
    Mutation(
        "no-builtin-guard",
        "nothing while the built-in balancer is on", (
            Edit(GUARDS,
                 "    if builtin_balancer_active:\n",
                 "    if False:\n"),),
        ("scenario:guard_monitor",)),
    Mutation(
        "no-second-look",
        "flags, weights and CRUSH are asked once more before a batch", (
            Edit(SENDING,
                 "        if self._gateway.epoch() == before.epoch:\n",
                 "        if True:\n"),),
        ("scenario:guard_flags scenario:guard_meanwhile",)),
    Mutation(
        "no-second-placing",
        "a PG mapped otherwise since the look waits", (
            Edit(GATEWAY,
                 "        if osdmap.get_epoch() == snapshot.epoch:\n",
                 "        if True:\n"),),
        ("scenario:guard_meanwhile",)),
    Mutation(
        "no-degraded-guard",
        "degraded and inactive PGs keep pools waiting", (
            Edit(THROTTLE,
                 "    if reason is None or _is_relief(state, candidate):\n",
                 "    if True:\n"),),
        ("scenario:guard_shared_osds",)),
    Mutation(
        "no-shared-osds-guard",
        "so do those of pools on the same OSDs", (
            Edit(GUARDS,
                 "              if other == pool_id or not osds[pool_id].isdisjoint(osds[other])]\n",
                 "              if other == pool_id]\n"),),
        ("scenario:guard_shared_osds",)),
    Mutation(
        "no-inactive-guard",
        "inactive PGs keep pools waiting", (
            Edit(GUARDS,
                 "(states.inactive or states.degraded):\n",
                 "states.degraded:\n"),),
        ("scenario:guard_inactive",)),
    Mutation(
        "relief-of-anything",
        "only full OSDs are relieved while PGs are degraded", (
            Edit(THROTTLE,
                 "            and all(osd in limits.relievable_osds for osd in"
                 " candidate.losses)\n",
                 ""),),
        ("scenario:toofull",)),
    Mutation(
        "relief-while-inactive",
        "nothing is relieved while PGs are inactive", (
            Edit(SENDING,
                 "            degraded_pools=tuple(pool for pool, block in blocked.items() if"
                 " not block.inactive),\n",
                 "            degraded_pools=tuple(blocked),\n"),),
        ("scenario:relief_inactive",)),
    Mutation(
        "no-toofull-relief",
        "OSDs that a backfill waits for are relieved", (
            Edit(GUARDS,
                 "        if \"backfill_toofull\" in pg.state:\n",
                 "        if False:\n"),
            Edit(GUARDS,
                 "            if osd.reaches(snapshot.backfillfull_ratio)}\n",
                 "            if False}\n"),),
        ("scenario:relief_of_toofull",)),
    Mutation(
        "toofull-is-not-told",
        "PGs in toofull are told with their OSD", (
            Edit(TOOFULL,
                 "        if \"toofull\" not in pg.state:\n",
                 "        if True:\n"),),
        ("scenario:relief_of_toofull",)),
    Mutation(
        "no-pg-num-guard",
        "nothing of a pool whose pg_num changes, nor on its OSDs", (
            Edit(GUARDS,
                 "           for pool in snapshot.pools.values() if pool.immovable == "
                 "reasons.PG_NUM_CHANGING}\n",
                 "           for pool in ()}\n"),),
        ("scenario:guard_pg_num",)),
    Mutation(
        "pg-num-is-no-transition",
        "a pool whose pg_num changes is not moved, by name either", (
            Edit(POOLS,
                 "        return reasons.PG_NUM_CHANGING\n",
                 "        return None\n"),),
        ("scenario:guard_pg_num scenario:guard_execute",)),
    Mutation(
        "no-immovable-guard",
        "what cannot be judged is not moved", (
            Edit(THROTTLE,
                 "    if not immovable:\n",
                 "    if True:\n"),),
        ("scenario:guard_execute scenario:guard_reports",)),
    Mutation(
        "no-arrival-guard",
        "a PG on its way is not moved again", (
            Edit(THROTTLE,
                 "    if not candidate.pg.is_moving and pgid not in state.in_flight:\n",
                 "    if True:\n"),),
        ("scenario:guard_arrival",)),
    Mutation(
        "no-target-guard",
        "no target that is down, out or without statistics", (
            Edit(THROTTLE,
                 "        if obstacle is not None:\n",
                 "        if False:\n"),),
        ("scenario:guard_targets",)),
    Mutation(
        "no-silence-guard",
        "nothing to or from an OSD that does not report", (
            Edit(THROTTLE,
                 "        if osd in state.snapshot.stale_osds:\n",
                 "        if False:\n"),),
        ("scenario:guard_reports",)),
    Mutation(
        "no-scrub-guard",
        "a PG being scrubbed, repaired, trimmed stays", (
            Edit(THROTTLE,
                 "        if busy in states:\n",
                 "        if False:\n"),),
        ("scenario:guard_scrub",)),
    Mutation(
        "doubtful-pgs-are-moved",
        "a PG whose copies are inconsistent or could not be repaired stays", (
            Edit(CHECKS,
                 "        return reasons.INCONSISTENT\n",
                 "        return None\n"),),
        ("scenario:guard_doubtful",)),
    Mutation(
        "no-cooldown",
        "a PG that was moved stays for pg_cooldown", (
            Edit(THROTTLE,
                 "    if seconds <= 0.0:\n",
                 "    if True:\n"),),
        ("scenario:guard_cooldown_execute",)),
    Mutation(
        "no-cooldown-anywhere",
        "no plan and no batch moves a PG again within pg_cooldown", (
            Edit(THROTTLE,
                 "    if seconds <= 0.0:\n",
                 "    if True:\n"),
            Edit(SENDING,
                 "        left = {pgid: seconds for pgid, seconds in cooling.items() if pgid in "
                 "snapshot.pgs\n",
                 "        left = {pgid: seconds for pgid, seconds in () if pgid in snapshot.pgs\n"),),
        ("scenario:guard_cooldown",)),
    Mutation(
        "wait-for-ever",
        "what holds up a plan for max_wait is given up", (
            Edit(SENDING,
                 "        if seconds < settings.max_wait:\n",
                 "        if True:\n"),),
        ("scenario:endless_scrub",)),
    Mutation(
        "no-deadlock",
        "what only full targets refuse for ever is given up", (
            Edit(LOOP,
                 "                execution.apply(ExecutionUpdate(dropped=[\n"
                 "                    DroppedChange(change, deferral.reason) for change,"
                 " deferral in decision.full]))\n",
                 "                pass\n"),
            Edit(SENDING,
                 "        if seconds < settings.max_wait:\n",
                 "        if True:\n"),),
        ("scenario:limit_of_fill",)),
    Mutation(
        "old-executions-go-on",
        "an execution that nobody has noted for a day is over", (
            Edit(LOGBOOK,
                 "    if isinstance(at, (int, float)) and now - at > void_seconds:\n",
                 "    if False:\n"),),
        ("scenario:old_execution",)),
    # -- legality
    Mutation(
        "no-up-check",
        "another's move voids a change", (
            Edit(BATCH,
                 "    if pg.immovable is None and pg.up != change.up_before:\n",
                 "    if False:\n"),),
        ("scenario:guard_execute",)),
    Mutation(
        "no-raw-nor-up-check",
        "what others have moved or CRUSH maps otherwise voids a change", (
            Edit(BATCH,
                 "    if pg.immovable is None and pg.raw != change.raw:\n",
                 "    if False:\n"),
            Edit(BATCH,
                 "    if pg.immovable is None and pg.up != change.up_before:\n",
                 "    if False:\n"),),
        ("scenario:guard_execute",)),
    Mutation(
        "no-legality-check",
        "what has become illegal is not sent", (
            Edit(BATCH,
                 "    if broken:\n"
                 "        return f\"no longer legal",
                 "    if False:\n"
                 "        return f\"no longer legal"),),
        ("scenario:guard_execute",)),
    Mutation(
        "no-domain-check-anywhere",
        "failure domains, in plans and before sending", (
            Edit(RULE,
                 "            if not self._may_enter(domain, block, up, position, bucket):\n"
                 "                return False\n",
                 ""),
            Edit(RULE,
                 "        return self.violation(wanted) is None and self._upmap_check.rejection(wanted) "
                 "is None\n",
                 "        return True\n"),
            Edit(BOARD,
                 "                if bucket[other] == wanted and other != source:\n",
                 "                if False:\n"),
            Edit(BOARD,
                 "        return rule.violation(wanted) is None and rule.upmap_rejection(wanted) is "
                 "None\n",
                 "        return True\n"),
            Edit(BATCH,
                 "    if broken:\n"
                 "        return f\"no longer legal",
                 "    if False:\n"
                 "        return f\"no longer legal"),),
        ("scenario:guard_flags scenario:domains",)),
    Mutation(
        "groups-are-not-checked-anywhere",
        "neighboring shards of an EC pool share a bucket, others do not", (
            Edit(RULE,
                 "        if seen.setdefault(bucket, group) != group:\n",
                 "        if False:\n"),
            Edit(RULE,
                 "        if domain.bucket_of[members[group * size]] != bucket:\n",
                 "        if False:\n"),
            Edit(RULE,
                 "            if not self._may_enter(domain, block, up, position, bucket):\n"
                 "                return False\n",
                 ""),
            Edit(CHECKS,
                 "    if broken:\n"
                 "        return reasons.BREAKS_RULE\n",
                 ""),),
        ("scenario:domains_broken",)),
    Mutation(
        "monitor-is-not-foreseen",
        "what the monitor would cancel is not planned or sent", (
            _MONITOR_KEEPS_ALL,),
        ("scenario:nested_rule",)),
    Mutation(
        "takes-are-not-checked",
        "targets are in the rule's take", (
            Edit(RULE,
                 "                if osd not in block.weights:\n"
                 "                    return",
                 "                if False:\n"
                 "                    return"),
            Edit(RULE,
                 "        if osd in up or osd not in block.weights:\n",
                 "        if osd in up:\n"),
            Edit(BOARD,
                 "        if target not in group.members:\n"
                 "            return False\n"
                 "        if not self",
                 "        if not self"),
            _MONITOR_KEEPS_ALL,),
        ("scenario:guard_execute scenario:two_classes",)),
    Mutation(
        "exchanges-are-planned",
        "items never exchange OSDs of one PG", (
            Edit(BOARD,
                 "        for known in (self.initial_up[pg], self.raw_up[pg]):\n",
                 "        for known in ():\n"),),
        ("scenario:exchanges",)),
    Mutation(
        "pools-of-others",
        "only pools in pool_ids are planned for", (
            Edit(BOARD,
                 "                       and (options.pool_ids is None or pg.pool in "
                 "options.pool_ids))\n",
                 "                       )\n"),),
        ("scenario:scope",)),
    Mutation(
        "classes-of-others",
        "only device classes in device_classes are planned for", (
            Edit(BOARD,
                 "                                  or o.device_class in options.device_classes "
                 "for o in osds]\n",
                 "                                  or True for o in osds]\n"),),
        ("scenario:scope",)),
    Mutation(
        "immovable-anywhere",
        "what must not be moved is neither planned nor sent", (
            Edit(BOARD,
                 "            movable = (pg.immovable is None and pg.pgid not in "
                 "options.rejected_pgs\n",
                 "            movable = (pg.pgid not in options.rejected_pgs\n"),
            Edit(THROTTLE,
                 "    if not immovable:\n",
                 "    if True:\n"),
            Edit(BATCH,
                 "        if void is None and pg.immovable not in TRANSIENT:\n"
                 "            void = pg.immovable\n",
                 ""),),
        ("scenario:guard_reports",)),
    Mutation(
        "full-upmaps-are-moved",
        "a PG that somebody has placed in full stays", (
            Edit(CHECKS,
                 "    pinned = {e[\"pgid\"]: reasons.FULL_UPMAP for e in osd_map.get(\"pg_upmap\", [])}\n",
                 "    pinned: Dict[str, str] = {}\n"),),
        ("scenario:pinned",)),
    Mutation(
        "chosen-primaries-are-moved",
        "a PG whose primary somebody has chosen stays", (
            Edit(CHECKS,
                 "    for entry in osd_map.get(\"pg_upmap_primaries\", []):\n",
                 "    for entry in ():\n"),),
        ("scenario:pinned",)),
    Mutation(
        "cache-tiers-are-moved",
        "nothing of a cache tier is moved", (
            Edit(POOLS,
                 "        return reasons.CACHE_TIER\n",
                 "        return None\n"),),
        ("scenario:cache_tier",)),
    Mutation(
        "stretch-mode-is-not-asked",
        "nothing while a site of a stretched cluster is gone or coming back", (
            Edit(POOLS,
                 "        return reasons.DEGRADED_STRETCH\n",
                 "        return None\n"),),
        ("scenario:stretch",)),
    Mutation(
        "omap-that-has-left-is-forgotten",
        "omap that has left an OSD is leaving until its RocksDB has compacted", (
            Edit(BUILD,
                 "        if shard.omap_bytes:\n            if location.holders",
                 "        if False:\n            if location.holders"),),
        ("scenario:omap_late",)),
    Mutation(
        "omap-on-small-osds-is-moved",
        "omap stays on OSDs whose RocksDB comes and goes by more", (
            Edit(BUILD,
                 "        small = smaller_than(osds, reading.min_omap_osd_bytes)\n",
                 "        small: FrozenSet[int] = frozenset()\n"),),
        ("scenario:omap_small",)),
    Mutation(
        "held-pgs-stay-for-ever",
        "a rest ends when PGs may be moved again that somebody had held back", (
            Edit("equilibrium_mgr/control/plan_validity.py",
                 "    if now.held_pgs * 2 <= then.held_pgs and then.held_pgs:\n",
                 "    if False:\n"),),
        ("scenario:omap_freed",)),
    Mutation(
        "unmeasured-omap-is-moved",
        "before Ceph 18 nothing goes of PGs whose omap has not been measured", (
            Edit(SHARDS,
                 "            if told.is_unknown(record) or (\n"
                 "                    reported_late and is_unmeasured(record, reported_late)):\n",
                 "            if told.is_unknown(record):\n"),
            Edit(SHARDS,
                 "        elif not pool.erasure and is_unmeasured(record, reported_late):\n",
                 "        elif False:\n"),),
        ("scenario:omap_16",)),
    # -- fill and budgets
    Mutation(
        "no-fill-limit",
        "no target passes its fill limit", (
            Edit(THROTTLE,
                 "        if peak > state.fill_limit * osd.size_bytes:\n",
                 "        if False:\n"),),
        ("scenario:fill_execute",)),
    Mutation(
        "no-fill-limit-anywhere",
        "no target passes its fill limit, in plans and before sending", (
            Edit(THROTTLE,
                 "        if peak > state.fill_limit * osd.size_bytes:\n",
                 "        if False:\n"),
            Edit(BOARD,
                 "        self.fill_limit_bytes: List[int] = [int(limit * o.size_bytes) if",
                 "        self.fill_limit_bytes: List[int] = [int(9 * o.size_bytes) if"),),
        ("scenario:limit_of_fill",)),
    Mutation(
        "what-comes-is-not-counted",
        "what is on its way to a target counts for its fill limit", (
            Edit(THROTTLE_STATE,
                 "        return osd.used_bytes + load.bytes_in + load.landed_bytes +"
                 " pg.shard_bytes\n",
                 "        return osd.used_bytes + pg.shard_bytes\n"),),
        ("scenario:fill_execute",)),
    Mutation(
        "what-landed-is-not-counted",
        "what has just arrived counts before the OSD reports it", (
            Edit(THROTTLE_STATE,
                 "load.bytes_in + load.landed_bytes + pg",
                 "load.bytes_in + pg"),),
        ("scenario:limit_of_fill_late",)),
    Mutation(
        "no-nearfull-check",
        "no target above nearfull", (
            Edit(THROTTLE,
                 "        if osd.reaches(snapshot.nearfull_ratio):\n",
                 "        if False:\n"),),
        ("scenario:limit_of_fill",)),
    Mutation(
        "fullest-of-all",
        "an OSD that gives and takes does not become the fullest", (
            Edit(THROTTLE,
                 "                and state.peak_bytes(osd, candidate.pg) > highest):\n",
                 "                and False):\n"),),
        ("scenarios/test_event_streams.py -k nothing",)),
    Mutation(
        "no-share-check",
        "no target beyond its operator's weight", (
            Edit(THROTTLE,
                 "        if most is not None and peak - candidate.pg.shard_bytes // 2 > most:\n",
                 "        if False:\n"),),
        ("scenario:share_execute",)),
    Mutation(
        "no-shares",
        "an operator's weights are capacity", (
            Edit(BUILD,
                 "        if reading.respect_weights:\n",
                 "        if False:\n"),),
        ("scenario:share_of_weights",)),
    Mutation(
        "no-shares-anywhere",
        "an OSD gets no more than its share, in plans and before sending", (
            Edit(BOARD,
                 "                self.share_limit_bytes[i] = limit\n"
                 "                self.fill_limit_bytes[i] = min(self.fill_limit_bytes[i], limit)\n",
                 "                pass\n"),
            Edit(THROTTLE,
                 "        if most is not None and peak - candidate.pg.shard_bytes // 2 > most:\n",
                 "        if False:\n"),),
        ("scenario:share_of_weights scenario:share_execute",)),
    Mutation(
        "no-move-limit",
        "no more than max_moves_per_round", (
            Edit(THROTTLE,
                 "    if state.moves_left == most or candidate.change.shards <="
                 " state.moves_left:\n",
                 "    if True:\n"),),
        ("scenario:limit_of_a_round",)),
    Mutation(
        "no-misplaced-limit",
        "the misplaced limit", (
            Edit(THROTTLE,
                 "            or state.misplaced_copies + copies <= state.allowed_copies):\n",
                 "            or True):\n"),),
        ("scenario:limit_of_misplaced",)),
    Mutation(
        "no-unseen-copies",
        "what Ceph cannot show yet counts", (
            Edit(LEDGER,
                 "                   if not _is_counted(snapshot, pgid, entry))\n",
                 "                   if False)\n"),),
        ("scenario:limit_of_misplaced",)),
    Mutation(
        "no-pending",
        "what is sent is entered before it goes", (
            Edit(SENDING,
                 "            for change in batch:  # whatever happens from here on, the budget "
                 "knows of it\n"
                 "                self.pending.add(change, before, now)\n",
                 ""),
            Edit(LEDGER,
                 "        for change in batch:\n"
                 "            self.entries[change.pgid] = "
                 "self.entries[change.pgid]._replace(epoch=epoch)\n",
                 "        return\n"),
            Edit(LEDGER,
                 "        entry = self.entries.pop(change.pgid)\n"
                 "        if shards:\n",
                 "        entry = self.entries.pop(change.pgid, None)\n"
                 "        if shards and entry:\n"),),
        ("scenario:limit_of_misplaced scenario:limit_of_a_round",)),
    Mutation(
        "arrives-at-once",
        "what was sent has arrived when a report of its map says so", (
            Edit(LEDGER,
                 "    if pg.is_moving or any(state in pg.state for state in _MOVING_STATES):\n"
                 "        return False\n"
                 "    return (pg.reported_epoch >= entry.epoch\n"
                 "            or snapshot.taken_at - entry.sent_at > _BELIEVE_AFTER_SECONDS)",
                 "    return not pg.is_moving"),),
        ("scenario:transit_after_death",)),
    Mutation(
        "rests-at-once",
        "a PG rests where a report of its present map calls it clean", (
            Edit(TRACKER,
                 "        return (\"clean\" in pg.record.state and not self._has_hole(pg)\n"
                 "                and _is_same_set(pg.up, pg.acting, pg.positional)\n"
                 "                and self._has_reported(pg, unclean))\n",
                 "        return _is_same_set(pg.up, pg.acting, pg.positional)\n"),),
        ("scenario:few_writes",)),
    Mutation(
        "nothing-recalled",
        "a new mgr counts what the last one has just sent", (
            Edit(SENDING,
                 "            self.pending.restore_sending(self._recovered, snapshot,"
                 " self._clock())\n",
                 ""),),
        ("scenario:limit_after_death",)),
    Mutation(
        "no-backfill-cap",
        "max_backfills_per_osd", (
            Edit(THROTTLE,
                 "            if shards >= most:\n",
                 "            if False:\n"),),
        ("scenario:limit_of_transit",)),
    Mutation(
        "no-transit-cap",
        "max_transit_ratio", (
            Edit(THROTTLE,
                 "    if osd is None or _is_alone(state, candidate):\n",
                 "    if True:\n"),),
        ("scenario:limit_of_a_round",)),
    Mutation(
        "hidden-transit",
        "what was sent and does not show yet is in transit", (
            Edit(TRANSIT,
                 "        if pg is not None and not pg.is_moving:\n",
                 "        if False:\n"),),
        ("scenario:transit_after_death",)),
    Mutation(
        "no-item-bound",
        "max_upmap_items", (
            Edit(THROTTLE,
                 "    if not most or added <= 0 or state.upmap_pairs + added <= most:\n",
                 "    if True:\n"),),
        ("scenario:items_execute",)),
    Mutation(
        "no-item-bound-anywhere",
        "max_upmap_items, in plans and before sending", (
            Edit(THROTTLE,
                 "    if not most or added <= 0 or state.upmap_pairs + added <= most:\n",
                 "    if True:\n"),
            Edit(OPTIONS,
                 "    if max_upmap_items <= 0.0:\n",
                 "    if True:\n"),),
        ("scenario:limit_of_items",)),
    Mutation(
        "no-shard-bound",
        "mon_max_pg_per_osd", (
            Edit(THROTTLE,
                 "        if count + 1 > most:\n",
                 "        if False:\n"),),
        ("scenario:items_execute",)),
    Mutation(
        "no-shard-bound-anywhere",
        "mon_max_pg_per_osd, in plans and before sending", (
            Edit(THROTTLE,
                 "        if count + 1 > most:\n",
                 "        if False:\n"),
            Edit(BOARD,
                 "        if not most:\n"
                 "            return None\n",
                 "        if True:\n"
                 "            return None\n"),),
        ("scenario:limit_of_shards",)),
    Mutation(
        "pg-num-gets-no-budget",
        "half of the mgr's own misplaced target is left to a pg_num that changes", (
            Edit(SIGHT,
                 "        return min(limit, target / 2.0) if pg_num_changes(snapshot) else limit\n",
                 "        return limit\n"),),
        ("scenario:pg_num_budget",)),
    # -- what is known
    Mutation(
        "unknown-is-movable-anywhere",
        "what has not been reported is not moved", (
            Edit(BUILD,
                 "pool.immovable or unknown.get(pgid)\n",
                 "pool.immovable\n"),
            Edit(CHECKS,
                 "    if awaited and not awaited.isdisjoint(up):\n",
                 "    if False:\n"),),
        ("scenario:guard_reports",)),
    Mutation(
        "unreported-osds",
        "nothing of PGs on OSDs that have not reported", (
            Edit(CHECKS,
                 "    if awaited and not awaited.isdisjoint(up):\n",
                 "    if False:\n"),),
        ("scenario:guard_reports",)),
    Mutation(
        "unknown-weighs-nothing",
        "what has not been reported counts as its pool's mean", (
            Edit(BUILD,
                 "                objects=_objects(shard, pgid in unknown),\n",
                 "                objects=shard.objects if pgid not in unknown else 0,\n"),
            Edit(BUILD,
                 "                              + _unreported_misplaced(unreported, pools)),\n",
                 "                              ),\n"),),
        ("scenario:unknown_misplaced",)),
    Mutation(
        "answers-are-believed",
        "only what stands in the map was taken", (
            Edit(WALK,
                 "        if present == change.items:\n",
                 "        if present == change.items or sent.returncode == 0:\n"),),
        ("scenario:mon_drops_items",)),
    Mutation(
        "rejected-again",
        "what the monitor dropped is not sent again", (
            Edit(SENDING,
                 "        return ExcludedPgs(frozenset(self.rejected), ",
                 "        return ExcludedPgs(frozenset(), "),),
        ("scenario:guard_monitor",)),
    Mutation(
        "no-backoff",
        "a pause after a batch of which nothing was taken", (
            Edit(SENDING,
                 "            self.backoff.failed(self._clock())\n",
                 "            pass\n"),),
        ("scenario:guard_monitor",)),
    Mutation(
        "no-size-correction",
        "pools whose sizes were mispredicted are stopped", (
            Edit(SENDING,
                 "        if not findings.mispredictions:\n",
                 "        if True:\n"),),
        ("scenario:swelling",)),
    Mutation(
        "stopped-is-sent",
        "what a plan wants of a stopped pool is void", (
            Edit(SENDING,
                 "            execution.apply(ExecutionUpdate(dropped=[\n"
                 "                DroppedChange(change, reasons[pool]) for change, pool in"
                 " pools\n"
                 "                if pool in reasons]))\n",
                 "            pass\n"),),
        ("scenario:swelling_execute",)),
    Mutation(
        "stopped-anywhere",
        "nothing of a stopped pool is planned or sent", (
            Edit(SENDING,
                 "            execution.apply(ExecutionUpdate(dropped=[\n"
                 "                DroppedChange(change, reasons[pool]) for change, pool in"
                 " pools\n"
                 "                if pool in reasons]))\n",
                 "            pass\n"),
            Edit(SENDING,
                 "            alone |= {pg.pgid for pg in snapshot.pgs.values() if pg.pool in "
                 "stopped}\n",
                 "            pass\n"),),
        ("scenario:swelling",)),
    Mutation(
        "stop-is-forgotten",
        "another mgr keeps to the stop", (
            Edit(SENDING,
                 "        self.corrections.restore(corrections)\n",
                 ""),),
        ("scenario:swelling",)),
    Mutation(
        "measured-is-not-used",
        "full_readings use the sizes that were measured", (
            Edit(SIZES,
                 "        return max(0, int(raw * factors[1] + pg.objects * measured))\n",
                 "        return max(0, int(raw * factors[1]))\n"),),
        ("scenario:swelling_again",)),
    Mutation(
        "suspects-are-fed",
        "nothing goes while an OSD seems to have taken too much", (
            Edit(LOOP,
                 "        if self._dispatcher.has_suspects:\n"
                 "            return THROTTLED",
                 "        if False:\n"
                 "            return THROTTLED"),),
        ("scenario:swelling_fast",)),
)
