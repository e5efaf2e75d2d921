"""Fill and budgets: full OSDs, shares, misplaced bytes, backfills, upmap items."""

from __future__ import annotations

from typing import Tuple

from .mutation import (
    BALANCER, CHECKS, DISPATCHER, DRAIN_STATUS, IN_FLIGHT, OBSERVER, OPTIONS, PENDING_MOVES,
    PLACEMENT_STATE, ROUND_STATE, SNAPSHOT_BUILDER, SNAPSHOT_MODEL, TRAFFIC, Edit, Mutation)

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "given-is-not-counted",
        "what leaves exchanges in one freeze counts together for the fill limit of an OSD", (
            Edit("equilibrium_mgr/freeze/freeze.py",
                 "        return self._given.get(osd, 0)\n", "        return 0\n"),),
        "freeze/test_pins.py"),
    Mutation(
        "small-pools-are-reasons",
        "room for a pool of some megabytes moves no data", (
            Edit("equilibrium_mgr/control/plan_gain.py",
                 "if _is_small(pool, snapshot)}", "if False}"),),
        "control/test_plan_gain.py"),
    Mutation(
        "urgent-limit-for-all",
        "the urgent misplaced limit holds for OSDs above backfillfull alone", (
            Edit(ROUND_STATE,
                 "osd.id if osd.reaches(self.snapshot.backfillfull_ratio) else None", "osd.id"),),
        "scenario:urgent"),
    Mutation(
        "drained-osds-are-targets",
        "nothing goes to an OSD that is being drained", (
            Edit(SNAPSHOT_MODEL,
                 '        if self.drained:\n            return "being drained"\n', ""),),
        "scenario:drain_on"),
    Mutation(
        "osds-that-are-down-are-safe-to-stop-anywhere",
        "an OSD that is down with data that no other has is not called safe to stop", (
            Edit(DRAIN_STATUS,
                 "if not left.shards and osd not in self.down)", "if not left.shards)"),
            Edit(DRAIN_STATUS, "        if osd in self.down:\n            return False\n", "")),
        "scenario:drain_down"),
    Mutation(
        "no-fill-limit",
        "no target passes its fill limit", (
            Edit(CHECKS,
                 "    if peak > state.fill_limit * osd.size_bytes:\n",
                 "    if False:\n"),),
        "scenario:fill_execute"),
    Mutation(
        "no-fill-limit-anywhere",
        "no target passes its fill limit, in plans and before sending", (
            Edit(CHECKS,
                 "    if peak > state.fill_limit * osd.size_bytes:\n",
                 "    if False:\n"),
            Edit(PLACEMENT_STATE,
                 "                self.fill_limit_bytes[i] = int(most * sizes[i]) - fixed\n",
                 "                self.fill_limit_bytes[i] = int(9 * sizes[i])\n"),),
        "scenario:limit_of_fill"),
    Mutation(
        "what-comes-is-not-counted",
        "what is on its way to a target counts for its fill limit", (
            Edit(ROUND_STATE,
                 "        return (osd.used_bytes + load.bytes_in + load.arrived_bytes\n",
                 "        return (osd.used_bytes\n"),),
        "scenario:fill_execute"),
    Mutation(
        "what-landed-is-not-counted",
        "what has just arrived counts before the OSD reports it", (
            Edit(ROUND_STATE,
                 "load.bytes_in + load.arrived_bytes\n",
                 "load.bytes_in\n"),),
        "scenario:limit_of_fill_late"),
    Mutation(
        "no-nearfull-check",
        "no target above nearfull", (
            Edit(CHECKS,
                 "    if osd.reaches(snapshot.nearfull_ratio):\n",
                 "    if False:\n"),),
        "scenario:limit_of_fill"),
    Mutation(
        "fullest-of-all",
        "an OSD that gives and takes does not become the fullest", (
            Edit(CHECKS,
                 "        if gives_too and state.peak_bytes(osd, candidate) > highest:\n",
                 "        if False:\n"),),
        "scenarios/test_event_streams.py -k nothing"),
    Mutation(
        "no-share-check",
        "no target beyond its operator's weight", (
            Edit(CHECKS,
                 "    if most is not None and peak - state.shard_bytes(candidate, osd.id)"
                 " // 2 > most:\n",
                 "    if False:\n"),),
        "scenario:share_execute"),
    Mutation(
        "no-shares",
        "an operator's weights are capacity", (
            Edit(SNAPSHOT_BUILDER,
                 "        if reading.respect_weights:\n",
                 "        if False:\n"),),
        "scenario:share_of_weights"),
    Mutation(
        "no-shares-anywhere",
        "an OSD gets no more than its share, in plans and before sending", (
            Edit(PLACEMENT_STATE,
                 "                self.share_limit_bytes[i] = limit\n"
                 "                self.fill_limit_bytes[i] = min(self.fill_limit_bytes[i], "
                 "limit)\n",
                 "                pass\n"),
            Edit(CHECKS,
                 "    if most is not None and peak - state.shard_bytes(candidate, osd.id)"
                 " // 2 > most:\n",
                 "    if False:\n"),),
        "scenario:share_of_weights scenario:share_execute"),
    Mutation(
        "no-move-limit",
        "no more than max_moves_per_round", (
            Edit(CHECKS,
                 "    if state.moves_left == most or candidate.change.shards <="
                 " state.moves_left:\n",
                 "    if True:\n"),),
        "scenario:limit_of_a_round"),
    Mutation(
        "no-misplaced-limit",
        "the misplaced limit", (
            Edit(CHECKS,
                 "    if misplaced <= 0 or copies <= 0 or misplaced + copies <= allowed:\n",
                 "    if True:\n"),),
        "scenario:limit_of_misplaced"),
    Mutation(
        "no-unseen-copies",
        "what Ceph cannot show yet counts", (
            Edit(PENDING_MOVES,
                 "            if not _is_counted(snapshot, pgid, entry, as_degraded):\n",
                 "            if False:\n"),),
        "scenario:limit_of_misplaced"),
    Mutation(
        "no-pending",
        "what is sent is entered before it goes", (
            Edit(DISPATCHER,
                 "            for change in moved:\n"
                 "                self.pending.add(change, before, now)\n",
                 ""),
            Edit(PENDING_MOVES,
                 "        for change in batch:\n"
                 "            self.entries[change.pgid] = "
                 "self.entries[change.pgid]._replace(epoch=epoch)\n",
                 "        return\n"),),
        "scenario:limit_of_misplaced scenario:limit_of_a_round"),
    Mutation(
        "arrives-at-once",
        "what was sent has arrived when a report of its map says so", (
            Edit(PENDING_MOVES,
                 "    if pg.is_moving or pg_states.has_any(pg.state, pg_states.MOVING):\n"
                 "        return False\n"
                 "    if pg.reported_epoch >= entry.epoch:\n"
                 "        return True\n",
                 "    return not pg.is_moving\n"),),
        "scenario:transit_after_death"),
    Mutation(
        "rests-at-once",
        "a PG rests where a report of its present map calls it clean", (
            Edit(IN_FLIGHT,
                 "        if is_clean and is_served and has_reported:\n",
                 "        if is_served:\n"),),
        "scenario:few_writes"),
    Mutation(
        "nothing-recalled",
        "a new mgr counts what the last one has just sent", (
            Edit(DISPATCHER,
                 "            pending.restore_sending(last.in_flight, snapshot, now)\n",
                 ""),),
        "scenario:limit_after_death; scenarios/test_takeover.py -k fast"),
    Mutation(
        "recalled-for-long",
        "what has arrived before a failover is in flight no more", (
            Edit(PENDING_MOVES,
                 "coming, leaving, before + 1, sent_at)\n",
                 "coming, leaving, snapshot.epoch, sent_at)\n"),
            Edit(PENDING_MOVES,
                 "    if snapshot.taken_at > entry.heard_by:\n",
                 "    if False:\n"),),
        "scenarios/test_takeover.py -k fast"),
    Mutation(
        "plans-from-what-is-not-known",
        "a new mgr plans once it knows what of the last one's moves has arrived", (
            Edit(BALANCER,
                 "        if self.dispatcher.pending.awaits_reports:",
                 "        if False:"),),
        "scenarios/test_takeover.py -k drain"),
    Mutation(
        "no-backfill-cap",
        "max_backfills_per_osd", (
            Edit(CHECKS,
                 "    if not most or _is_alone(state, candidate):\n",
                 "    if True:\n"),),
        "scenario:limit_of_transit"),
    Mutation(
        "no-transit-cap",
        "max_transit_ratio", (
            Edit(CHECKS,
                 "    if osd is None or _is_alone(state, candidate):\n",
                 "    if True:\n"),),
        "scenario:limit_of_a_round"),
    Mutation(
        "hidden-transit",
        "what was sent and does not show yet is in transit", (
            Edit(TRAFFIC,
                 "        if pg is not None and not pg.is_moving:\n",
                 "        if False:\n"),),
        "scenario:transit_execute"),
    Mutation(
        "no-item-bound",
        "max_upmap_items", (
            Edit(CHECKS,
                 "    if left is None or added <= 0 or added <= left:\n",
                 "    if True:\n"),),
        "scenario:items_execute"),
    Mutation(
        "no-item-bound-anywhere",
        "max_upmap_items, in plans and before sending", (
            Edit(CHECKS,
                 "    if left is None or added <= 0 or added <= left:\n",
                 "    if True:\n"),
            Edit(OPTIONS,
                 "    if max_upmap_items <= 0.0:\n",
                 "    if True:\n"),),
        "scenario:limit_of_items"),
    Mutation(
        "no-shard-bound",
        "osd_max_pg_per_osd_hard_ratio", (
            Edit(CHECKS,
                 "        if count + 1 > most > 0:\n",
                 "        if False:\n"),),
        "scenario:items_execute"),
    Mutation(
        "withheld-pgs-stay",
        "what an OSD withholds is taken back", (
            Edit(DISPATCHER,
                 "            if snapshot.taken_at - since >= least:\n",
                 "            if False:\n"),),
        "scenario:withheld_pgs; control/test_withheld_pgs.py"),
    Mutation(
        "withheld-by-old-reports",
        "of a PG whose reports are old nobody says that an OSD withholds it", (
            Edit(PENDING_MOVES,
                 "pg.reported_epoch < entry.epoch <= newest and",
                 "pg.reported_epoch < entry.epoch and"),),
        "control/test_withheld_pgs.py -k late"),
    Mutation(
        "withheld-forgotten",
        "an OSD that has withheld a PG gets none later", (
            Edit(CHECKS,
                 "        most = limits.withheld_at.get(osd, limits.max_pg_shards)\n",
                 "        most = limits.max_pg_shards\n"),),
        "control/test_withheld_pgs.py -k later"),
    Mutation(
        "withheld-taken-back-when-off",
        "off sends nothing, be it that a PG is inactive", (
            Edit(BALANCER,
                 "yield self._stop_count == self._slot.stop_count and not self._is_off(",
                 "yield True or not self._is_off("),),
        "control/test_withheld_pgs.py -k final"),
    Mutation(
        "no-shard-bound-anywhere",
        "osd_max_pg_per_osd_hard_ratio, in plans and before sending", (
            Edit(CHECKS,
                 "        if count + 1 > most > 0:\n",
                 "        if False:\n"),
            Edit(PLACEMENT_STATE,
                 "        self.max_shards = options.max_pg_shards_per_osd or inf\n",
                 "        self.max_shards = inf\n"),),
        "scenario:limit_of_shards"),
    Mutation(
        "pg-num-gets-no-budget",
        "half of the mgr's own misplaced target is left to a pg_num that changes", (
            Edit(OBSERVER,
                 "        return min(limit, target / 2.0) if"
                 " changing_pg_nums(snapshot) else limit\n",
                 "        return limit\n"),),
        "scenario:pg_num_budget"),
)
