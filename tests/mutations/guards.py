"""The guards: what has to be so before anything is sent, and for each PG and OSD."""

from __future__ import annotations

from typing import Tuple

from .mutation import (
    BALANCER, BATCH, CHECKS, CLUSTER_GUARDS, COOLDOWN, DISPATCHER, EXECUTION_SLOT, GATEWAY,
    GUARDS, JOURNAL, PG_NUM_STEPS, POOLS, SNAPSHOT_BUILDER, TOO_FULL, Edit, Mutation)

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "off-is-not-obeyed",
        "an automatic plan ends where `active` is switched off by its option", (
            Edit(BALANCER,
                 "        if execution.name or settings.active:\n            return True\n",
                 "        if True:\n            return True\n"),),
        "scenario:off_meanwhile"),
    Mutation(
        "off-is-not-asked",
        "nothing after `off` has answered", (
            Edit(DISPATCHER,
                 "            if not is_permitted:\n"
                 "                return None\n",
                 ""),),
        "threads/test_off_is_final.py; scenario:off_meanwhile"),
    Mutation(
        "off-leaves-the-plan",
        "`off` stops the plan under way", (
            Edit(EXECUTION_SLOT,
                 "                self.stop_count += 1\n"
                 "            if execution is None:\n"
                 "                return None\n"
                 "            self.execution = None\n",
                 "                pass\n"
                 "            if execution is None:\n"
                 "                return None\n"),),
        "scenario:off_executing"),
    Mutation(
        "off-is-forgotten",
        "no successor takes up what `off` has stopped", (
            Edit(JOURNAL,
                 "            self._store.put(EXECUTION, None)\n"
                 "            self._store.flush()\n",
                 "            pass\n"),),
        "threads/test_off_is_final.py"),
    Mutation(
        "options-are-not-asked",
        "nothing under options that do not hold any more", (
            Edit(BALANCER,
                 "        if now._replace(active=settings.active) != settings:\n",
                 "        if False:\n"),),
        "scenario:off_meanwhile"),
    Mutation(
        "no-window",
        "nothing outside the window", (
            Edit(CLUSTER_GUARDS,
                 "            if not drains_only and not is_named:\n",
                 "            if False:\n"),),
        "scenario:guard_window"),
    Mutation(
        "no-start-delay",
        "nothing within start_delay of a failover", (
            Edit(CLUSTER_GUARDS,
                 "settings.start_delay - (now - self._active_since))\n",
                 "0.0)\n"),),
        "scenario:guard_start"),
    Mutation(
        "no-hold",
        "nothing while the built-in balancer may be finishing", (
            Edit(CLUSTER_GUARDS,
                 "            now, self._builtin_grace.seconds_left(now))\n",
                 "            now, 0.0)\n"),),
        "scenario:guard_monitor"),
    Mutation(
        "hold-after-on-alone",
        "nothing while the built-in balancer may be finishing, whoever has switched it off", (
            Edit(CLUSTER_GUARDS,
                 "        if is_active or not self._gateway.pop_builtin_was_active():\n",
                 "        if True:\n"),),
        "scenario:guard_builtin"),
    Mutation(
        "builtin-is-not-watched",
        "nor where that was while equilibrium was off", (
            Edit(BALANCER,
                 "        self._guards.observe_builtin("
                 "self._gateway.builtin_balancer_active())\n",
                 ""),),
        "scenarios/test_builtin_by_hand.py"),
    Mutation(
        "no-monitor-guard-anywhere",
        "nothing without a monitor, whether it is asked for flags or not", (
            Edit(GUARDS,
                 "    if not have_mon_connection:\n",
                 "    if False:\n"),
            Edit(GATEWAY,
                 "        if not self.have_mon_connection():\n            return None, None\n",
                 ""),),
        "scenario:guard_monitor"),
    Mutation(
        "no-min-compat-guard",
        "nothing for clients before luminous", (
            Edit(GUARDS,
                 "    if refused:\n",
                 "    if False:\n"),),
        "scenario:guard_old_clients"),
    Mutation(
        "no-flags-guard",
        "nothing under norebalance, nobackfill, norecover, pause", (
            Edit(GUARDS,
                 "        if flag in osd_map.flags:\n",
                 "        if False:\n"),),
        "scenario:guard_flags"),
    Mutation(
        "no-builtin-guard",
        "nothing while the built-in balancer is on", (
            Edit(GUARDS,
                 "    if builtin_balancer_active:\n",
                 "    if False:\n"),),
        "scenario:guard_monitor"),
    Mutation(
        "no-second-look",
        "flags, weights and CRUSH are asked once more before a batch", (
            Edit(DISPATCHER,
                 "        for left in reversed(range(_MOST_MAPS)):\n",
                 "        return batch\n        for left in reversed(range(_MOST_MAPS)):\n"),),
        "scenarios/test_between_look_and_send.py -k few"),
    Mutation(
        "second-look-without-fullness",
        "full ratios that were lowered since the look hold", (
            Edit(DISPATCHER,
                 "        if _are_limits_lower(before, now) or _is_osd_down(",
                 "        if _is_osd_down("),),
        "scenarios/test_between_look_and_send.py -k few"),
    Mutation(
        "second-look-without-downs",
        "nothing goes where an OSD went down since the look", (
            Edit(DISPATCHER,
                 "        if _are_limits_lower(before, now) or _is_osd_down(before, now):\n",
                 "        if _are_limits_lower(before, now):\n"),
            Edit(DISPATCHER,
                 "        if _state(before, osd) != _state(now, osd):\n",
                 "        if False:\n"),),
        "scenarios/test_between_look_and_send.py -k few"),
    Mutation(
        "second-look-without-pools",
        "nothing goes where a pool was made or changed since the look", (
            Edit(DISPATCHER,
                 "        if shapes != {number: pool.shape for",
                 "        if False and shapes != {number: pool.shape for"),),
        "scenarios/test_between_look_and_send.py -k few"),
    Mutation(
        "second-look-once",
        "an osdmap that comes while another is read is read, too", (
            Edit(DISPATCHER,
                 "            if is_newest:\n",
                 "            if True:\n"),),
        "scenarios/test_between_look_and_send.py -k few"),
    Mutation(
        "withheld-without-end",
        "a batch goes although an osdmap follows each one that is read", (
            Edit(DISPATCHER,
                 "            if not is_newest and left == 0:\n",
                 "            if False:\n"),),
        "scenarios/awake/test_waiting.py -k map"),
    Mutation(
        "old-options-go-on",
        "options that change bind what is under way while the CRUSH map does not rest", (
            Edit("equilibrium_mgr/control/plan_basis.py",
                 "PLAN_CHECKS: Sequence[Tuple[str, Check]] = (\n    (AT_ONCE, request_change),\n",
                 "PLAN_CHECKS: Sequence[Tuple[str, Check]] = (\n"),),
        "scenarios/awake/test_waiting.py -k options_bind"),
    Mutation(
        "numbers-as-stored",
        "a stored value that cannot be read ends no recovery", (
            Edit("equilibrium_mgr/runtime/kv_store.py",
                 "    if not -_LARGEST < value < _LARGEST:\n",
                 "    if False:\n"),),
        "properties/test_garbled_store.py"),
    Mutation(
        "no-second-placing",
        "a PG mapped otherwise since the look waits", (
            Edit(GATEWAY,
                 "        if osdmap.get_epoch() == snapshot.epoch:\n",
                 "        if True:\n"),),
        "scenarios/test_between_look_and_send.py"),
    Mutation(
        "no-degraded-guard",
        "degraded and inactive PGs keep pools waiting", (
            Edit(CHECKS,
                 "    if guard is None or _is_relief(state, guard, candidate):\n",
                 "    if True:\n"),),
        "scenario:guard_shared_osds"),
    Mutation(
        "no-shared-osds-guard",
        "so do those of pools on the same OSDs", (
            Edit(GUARDS,
                 "                  if other == pool_id or not "
                 "osds[pool_id].isdisjoint(osds[other])]\n",
                 "                  if other == pool_id]\n"),),
        "scenario:guard_shared_osds"),
    Mutation(
        "no-inactive-guard",
        "inactive PGs keep pools waiting", (
            Edit(GUARDS,
                 "(states.inactive or states.degraded):\n",
                 "states.degraded:\n"),),
        "scenario:guard_inactive"),
    Mutation(
        "relief-of-anything",
        "only full OSDs are relieved while PGs are degraded", (
            Edit(CHECKS,
                 "    return state.is_relief(candidate) and ACTIVE in",
                 "    return ACTIVE in"),),
        "scenario:toofull"),
    Mutation(
        "relief-while-inactive",
        "nothing is relieved while PGs are inactive", (
            Edit(CHECKS,
                 "    if guard.inactive or not state.settings.relieve_while_degraded:\n",
                 "    if not state.settings.relieve_while_degraded:\n"),),
        "scenario:relief_inactive"),
    Mutation(
        "no-toofull-relief",
        "OSDs that a backfill waits for are relieved", (
            Edit(GUARDS,
                 "        if pg_states.BACKFILL_TOOFULL in pg.state:\n",
                 "        if False:\n"),
            Edit(GUARDS,
                 "        if one.reaches(backfillfull, still_to_come):\n",
                 "        if False:\n"),),
        "scenario:relief_of_toofull"),
    Mutation(
        "toofull-is-not-told",
        "PGs in toofull are told with their OSD", (
            Edit(TOO_FULL,
                 "               if TOOFULL in pg.state]\n",
                 "               if False]\n"),),
        "scenario:relief_of_toofull"),
    Mutation(
        "steps-of-pg-num-are-not-waited-for",
        "PGs that steps of pg_num will merge, split or place anew stay", (
            Edit(SNAPSHOT_BUILDER,
                 "        if pool.touched:\n",
                 "        if False:\n"),),
        "scenario:guard_pg_num; snapshot/test_immovable_pgs.py"),
    Mutation(
        "only-the-next-merge-is-waited-for",
        "what later steps of pg_num will touch stays, too", (
            Edit(POOLS,
                 "    last = min(target, pending)\n",
                 "    last = pending\n"),),
        "scenario:pg_num_merge; snapshot/test_immovable_pgs.py"),
    Mutation(
        "the-newest-map-is-not-asked-for-steps",
        "a PG that the newest map says is to be merged stays", (
            Edit(DISPATCHER,
                 " or ps >= pool.pg_num:\n", ":\n"),
            Edit(DISPATCHER,
                 "    if ps in pool.touched and ps not in then.touched:\n",
                 "    if False:\n"),),
        "execution/test_pg_num_steps.py"),
    Mutation(
        "osds-that-steps-need-are-not-spared",
        "nothing goes to or from OSDs that the next pair of a merge needs", (
            Edit(CHECKS,
                 "        if osd in state.needed_by_steps:\n",
                 "        if False:\n"),),
        "execution/test_pg_num_steps.py"),
    Mutation(
        "what-waits-for-slots-does-not-make-way",
        "moves that wait where steps of pg_num do are taken back", (
            Edit(PG_NUM_STEPS,
                 "        if pg is None or BACKFILL_WAIT not in pg.state:\n",
                 "        if True:\n"),),
        "execution/test_pg_num_steps.py"),
    Mutation(
        "what-has-made-way-goes-at-once",
        "what steps of pg_num have had taken back waits, whatever pg_cooldown", (
            Edit(CHECKS,
                 "    if state.changing and pgid in state.limits.made_way:\n",
                 "    if False:\n"),),
        "execution/test_pg_num_steps.py; scenarios/test_merge_beside_a_plan.py"),
    Mutation(
        "drains-do-not-make-way",
        "moves of drains are taken back as others are, to the OSD that is drained", (
            Edit("equilibrium_mgr/control/cancelling.py",
                 "    return cancel_plan(_undrained(snapshot), rows",
                 "    return cancel_plan(snapshot, rows"),),
        "scenarios/test_merge_beside_a_plan.py -k drain"),
    Mutation(
        "a-map-a-move-while-pg-num-changes",
        "while a pg_num changes, what is sent is no less than is under way", (
            Edit(BATCH,
                 "    if kind not in MOTIONLESS and state.changing:\n",
                 "    if False:\n"),),
        "execution/test_pg_num_steps.py"),
    Mutation(
        "no-immovable-guard",
        "what cannot be judged is not moved", (
            Edit(CHECKS,
                 "    if not immovable:\n",
                 "    if True:\n"),),
        "scenario:guard_execute scenario:guard_reports"),
    Mutation(
        "no-arrival-guard",
        "a PG on its way is not moved again", (
            Edit(CHECKS,
                 "    if not candidate.pg.is_moving and pgid not in state.limits.in_flight:\n",
                 "    if True:\n"),),
        "scenario:guard_arrival"),
    Mutation(
        "no-target-guard",
        "no target that is down, out or without statistics", (
            Edit(CHECKS,
                 "        if obstacle is not None:\n",
                 "        if False:\n"),),
        "scenario:guard_targets"),
    Mutation(
        "no-silence-guard",
        "nothing to or from an OSD that does not report", (
            Edit(CHECKS,
                 "        if osd in state.snapshot.stale_osds:\n",
                 "        if False:\n"),),
        "scenario:guard_reports"),
    Mutation(
        "no-scrub-guard",
        "a PG being scrubbed, repaired, trimmed stays", (
            Edit(CHECKS,
                 "        if busy in states:\n",
                 "        if False:\n"),),
        "scenario:guard_scrub"),
    Mutation(
        "doubtful-pgs-are-moved",
        "a PG whose copies are inconsistent or could not be repaired stays", (
            Edit("equilibrium_mgr/snapshot/immovable_reasons.py",
                 "        return INCONSISTENT\n",
                 "        return None\n"),),
        "scenario:guard_doubtful"),
    Mutation(
        "no-cooldown",
        "a PG that was moved stays for pg_cooldown", (
            Edit(CHECKS,
                 "    if seconds <= 0.0:\n",
                 "    if True:\n"),),
        "scenario:guard_cooldown_execute"),
    Mutation(
        "no-cooldown-anywhere",
        "no plan and no batch moves a PG again within pg_cooldown", (
            Edit(CHECKS,
                 "    if seconds <= 0.0:\n",
                 "    if True:\n"),
            Edit(COOLDOWN,
                 "        if pg is None or code == codes.COOLDOWN and not",
                 "        if pg is None or code == codes.COOLDOWN or not"),),
        "scenario:guard_cooldown"),
    Mutation(
        "wait-for-ever",
        "what holds up a plan for max_wait is given up", (
            Edit(DISPATCHER,
                 "        if seconds < settings.max_wait:\n",
                 "        if True:\n"),),
        "scenario:endless_scrub"),
    Mutation(
        "no-deadlock",
        "what only full targets refuse for ever is given up", (
            Edit(BALANCER,
                 "            self._drop_deadlocked(execution, decision)\n",
                 "            pass\n"),
            Edit(DISPATCHER,
                 "        if seconds < settings.max_wait:\n",
                 "        if True:\n"),),
        "scenario:fill_execute"),
    Mutation(
        "old-executions-go-on",
        "an execution that nobody has noted for a day is over", (
            Edit(JOURNAL,
                 "            if was_long_ago:\n",
                 "            if False:\n"),),
        "scenario:old_execution"),
)
