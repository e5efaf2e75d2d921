"""The mutations: each takes out one rule of safety. `old` stands exactly once in its file."""

from __future__ import annotations

from typing import NamedTuple, Tuple

BATCH = "equilibrium_mgr/executor/batch.py"
THROTTLE = "equilibrium_mgr/executor/room.py"
GUARDS = "equilibrium_mgr/executor/guards.py"
GATES = "equilibrium_mgr/executor/gatekeeper.py"
SENDING = "equilibrium_mgr/executor/sending.py"
LOOP = "equilibrium_mgr/executor/balancer.py"
LEDGER = "equilibrium_mgr/executor/ledger.py"
BUILD = "equilibrium_mgr/snapshot/build.py"
RULE = "equilibrium_mgr/crush/placement.py"


class Mutation(NamedTuple):
    """One rule taken out."""

    name: str
    rule: str     # of safety, in a few words
    file: str
    old: str
    new: str


MUTATIONS: Tuple[Mutation, ...] = (
    Mutation("no-window", "nothing outside the window", GATES,
             "            if closed is not None:\n                return closed\n",
             "            if closed is not None:\n                pass\n"),
    Mutation("no-start-delay", "nothing within start_delay of a failover", GATES,
             "        if left > 0.0:\n            return Stop(WAITING, \"the mgr has only",
             "        if False:\n            return Stop(WAITING, \"the mgr has only"),
    Mutation("no-hold", "nothing while the built-in balancer may be finishing", GATES,
             "        if hold_seconds > 0.0:\n", "        if False:\n"),
    Mutation("no-monitor-guard", "nothing without a monitor", GUARDS,
             "    if not have_mon_connection:\n", "    if False:\n"),
    Mutation("no-min-compat-guard", "nothing for clients before luminous", GUARDS,
             "    if refused:\n        return refused\n", "    if refused:\n        pass\n"),
    Mutation("no-flags-guard", "nothing under norebalance, nobackfill, norecover, pause", GUARDS,
             "    if flags:\n", "    if False:\n"),
    Mutation("no-builtin-guard", "nothing while the built-in balancer is on", GUARDS,
             "    if builtin_balancer_active:\n", "    if False:\n"),
    Mutation("no-degraded-guard", "degraded and inactive PGs keep pools waiting", BATCH,
             "        if trouble is not None and not relief:\n", "        if False:\n"),
    Mutation("no-shared-osds-guard", "so do those of pools on the same OSDs", GUARDS,
             "              if other == pool_id or not osds[pool_id].isdisjoint(osds[other])]\n",
             "              if other == pool_id]\n"),
    Mutation("relief-of-anything", "only full OSDs are relieved while PGs are degraded", BATCH,
             "                and all(osd in self._limits.relief for osd in losses)\n", ""),
    Mutation("no-immovable-guard", "what cannot be judged is not moved", BATCH,
             "        if pg.immovable:\n            return Refusal(pg.immovable)\n", ""),
    Mutation("no-arrival-guard", "a PG on its way is not moved again", BATCH,
             "        if pg.is_moving or change.pgid in self._in_flight:\n", "        if False:\n"),
    Mutation("no-target-guard", "no target that is down, out or without statistics", BATCH,
             "            if obstacle is not None:\n                return Refusal(\"osd.%d is %s\"",
             "            if False:\n                return Refusal(\"osd.%d is %s\""),
    Mutation("no-silence-guard", "nothing to or from an OSD that does not report", BATCH,
             "            if osd_id in self._snapshot.stale_osds:\n", "            if False:\n"),
    Mutation("no-scrub-guard", "a PG being scrubbed, repaired, trimmed stays", BATCH,
             "            if state in states:\n", "            if False:\n"),
    Mutation("no-cooldown", "a PG that was moved stays for pg_cooldown", BATCH,
             "        if seconds <= 0.0:\n", "        if True:\n"),
    Mutation("no-raw-check", "another raw mapping voids a change", BATCH,
             "    if pg.immovable is None and pg.raw != change.raw:\n", "    if False:\n"),
    Mutation("no-up-check", "another's move voids a change", BATCH,
             "    if pg.immovable is None and pg.up != change.up_before:\n", "    if False:\n"),
    Mutation("no-legality-check", "what has become illegal is not sent", BATCH,
             "    if broken:\n        return \"no longer legal", "    if False:\n        return \"no"
             " longer legal"),
    Mutation("no-fill-limit", "no target passes its fill limit", THROTTLE,
             "            if self._peak(osd, pg) > self._fill_limit * osd.size_bytes:\n",
             "            if False:\n"),
    Mutation("no-nearfull-check", "no target above nearfull", THROTTLE,
             "            if osd.used_bytes >= self._snapshot.nearfull_ratio * osd.size_bytes:\n",
             "            if False:\n"),
    Mutation("no-share-check", "no target beyond its operator's weight", THROTTLE,
             "            if self._beyond_share(osd, pg):\n", "            if False:\n"),
    Mutation("no-move-limit", "no more than max_moves_per_round", THROTTLE,
             "        if self._moves_left < limits.max_moves and change.shards > self._moves_left:"
             "\n", "        if False:\n"),
    Mutation("no-misplaced-limit", "the misplaced limit", THROTTLE,
             "        if self._misplaced > 0 and copies > 0 and self._misplaced + copies > "
             "self._allowed:\n", "        if False:\n"),
    Mutation("no-unseen-copies", "what Ceph cannot show yet counts", LEDGER,
             "                   if not _is_counted(snapshot, pgid, entry))\n",
             "                   if False)\n"),
    Mutation("no-backfill-cap", "max_backfills_per_osd", THROTTLE,
             "                if (load.shards_in if into else load.shards_out) >= most:\n",
             "                if False:\n"),
    Mutation("no-transit-cap", "max_transit_ratio", THROTTLE,
             "        if busy is None or self._alone(shards):\n", "        if True:\n"),
    Mutation("no-item-bound", "max_upmap_items", THROTTLE,
             "            if self._items + self._more_items(change) > limits.max_items:\n",
             "            if False:\n"),
    Mutation("no-shard-bound", "mon_max_pg_per_osd", THROTTLE,
             "            if count + 1 > most:\n", "            if False:\n"),
    Mutation("off-is-not-asked", "nothing after `off` has answered", SENDING,
             "            if not is_permitted:\n                return None\n", ""),
    Mutation("rejected-again", "what the monitor dropped is not sent again", SENDING,
             "        return Excluded(frozenset(self.rejected), ",
             "        return Excluded(frozenset(), "),
    Mutation("unknown-is-movable", "what has not been reported is not moved", BUILD,
             "pool.immovable or unknown.get(pgid)\n", "pool.immovable\n"),
    Mutation("illegal-starts", "PGs that break their rule are left alone", BUILD,
             "    if broken:\n        return reasons.BREAKS_RULE\n", ""),
    Mutation("no-domain-check", "failure domains are kept", RULE,
             "            if not self._enters(domain, block, up, position, bucket):\n"
             "                return False\n", ""),
    Mutation("no-size-correction", "pools whose sizes were mispredicted are stopped", SENDING,
             "        if not findings.mispredictions:\n", "        if True:\n"),
)
