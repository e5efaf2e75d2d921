"""Legality: CRUSH rules, Ceph's own check of upmap items, and the scope that an operator gives."""

from __future__ import annotations

from typing import Tuple

from .mutation import (
    BATCH, CHECKS, MSR, OPTIONS, PG_CHECKS, PLACEMENT, PLACEMENT_STATE, POOLS, RULE_REPAIR,
    SIZE_MODEL, SNAPSHOT_BUILDER, UNDO_COMMANDS, UPMAP_CHECK, Edit, Mutation)

#: The monitor is taken to keep whatever it is sent.
_MONITOR_KEEPS_ALL = Edit(
    UPMAP_CHECK,
    "        for osd in up:\n"
    "            if self._weights.get(osd, 0.0) <= 0.0:\n",
    "        return None\n"
    "        for osd in up:\n"
    "            if self._weights.get(osd, 0.0) <= 0.0:\n")

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "no-up-check",
        "another's move voids a change", (
            Edit(BATCH,
                 "    if immovable is None and not is_same_placement("
                 "pg.up, change.up_before, pool.erasure):\n",
                 "    if False:\n"),),
        "scenario:guard_execute"),
    Mutation(
        "no-raw-nor-up-check",
        "what others have moved or CRUSH maps otherwise voids a change", (
            Edit(BATCH,
                 "    if immovable is None and not is_same_placement("
                 "pg.raw, change.raw, pool.erasure):\n",
                 "    if False:\n"),
            Edit(BATCH,
                 "    if immovable is None and not is_same_placement("
                 "pg.up, change.up_before, pool.erasure):\n",
                 "    if False:\n"),),
        "scenario:guard_execute"),
    Mutation(
        "no-legality-check",
        "what has become illegal is not sent", (
            Edit(BATCH,
                 "    if broken:\n"
                 "        return f\"no longer legal",
                 "    if False:\n"
                 "        return f\"no longer legal"),),
        "scenario:guard_execute"),
    Mutation(
        "no-domain-check-anywhere",
        "failure domains, in plans and before sending", (
            Edit(PLACEMENT,
                 "        return self.refusal(replaced(up, position, osd)) is None\n",
                 "        return True\n"),
            Edit(PLACEMENT_STATE,
                 "                if domain_of[other] == wanted and other != source:\n",
                 "                if False:\n"),
            Edit(PLACEMENT_STATE,
                 "        return group.rule.refusal([self.osd_ids[osd] for osd in up]) is None\n",
                 "        return True\n"),
            Edit(BATCH,
                 "    if broken:\n"
                 "        return f\"no longer legal",
                 "    if False:\n"
                 "        return f\"no longer legal"),),
        "scenario:guard_flags scenario:domains"),
    Mutation(
        "groups-are-not-checked-anywhere",
        "no bucket has more shards than the rule gives it", (
            Edit(PLACEMENT,
                 "        if max(counts.values()) > most or len(counts) > buckets:\n",
                 "        if False:\n"),
            Edit(PG_CHECKS,
                 "    if broken:\n        return reasons.BREAKS_RULE\n",
                 ""),),
        "scenario:domains_broken"),
    Mutation(
        "monitor-is-not-foreseen",
        "what the monitor would cancel is not planned or sent", (
            _MONITOR_KEEPS_ALL,),
        "scenario:nested_rule"),
    Mutation(
        "takes-are-not-checked",
        "targets are in the rule's take", (
            Edit(PLACEMENT,
                 "                if osd not in block.weights and osd != NO_OSD:\n"
                 "                    return",
                 "                if False:\n"
                 "                    return"),
            Edit(PLACEMENT,
                 "        if osd in up or osd not in block.weights:\n",
                 "        if osd in up:\n"),
            Edit(PLACEMENT_STATE,
                 "        if target not in group.members:\n"
                 "            yield codes.FAILURE_DOMAIN\n"
                 "        elif domain_of is not None:\n",
                 "        if domain_of is not None:\n"),
            _MONITOR_KEEPS_ALL,),
        "scenario:guard_execute scenario:two_classes"),
    Mutation(
        "exchanges-are-planned",
        "items never exchange OSDs of one PG", (
            Edit(PLACEMENT_STATE,
                 "        for known in (self.initial_up[pg], raw):\n",
                 "        for known in ():\n"),),
        "properties/test_plan_safety.py"),
    Mutation(
        "pools-of-others",
        "only pools in pool_ids are planned for", (
            Edit(PLACEMENT_STATE,
                 "    if options.pool_ids is not None and pg.pool not in options.pool_ids:\n",
                 "    if False:\n"),),
        "scenario:scope"),
    Mutation(
        "classes-of-others",
        "only device classes in device_classes are planned for", (
            Edit(OPTIONS,
                 "        if self.device_classes is not None and device_class not in "
                 "self.device_classes:\n",
                 "        if False:\n"),),
        "scenario:scope"),
    Mutation(
        "msr-groups-share",
        "groups of shards of an MSR rule share no bucket; no monitor checks that", (
            Edit(MSR,
                 "    if _fits(levels, found, len(members)):\n",
                 "    if True:\n"),),
        "scenario:msr"),
    Mutation(
        "nothing-is-mended",
        "what breaks its rule is mended by a plan that says so", (
            Edit(BATCH,
                 "        if kind in (REPAIR, FREEZE) and pg.immovable in OF_RULE:\n",
                 "        if False:\n"),),
        "commands/plans/test_repair.py"),
    Mutation(
        "rule-to-be-is-forgotten",
        "what prepares a pool for a rule is legal by that rule", (
            Edit(RULE_REPAIR,
                 "        return any(rule.refusal(up) for rule in self.rules)\n",
                 "        return any(rule.refusal(up) for rule in self.rules[:1])\n"),),
        "commands/plans/test_rule_change.py"),
    Mutation(
        "freeze-of-before-the-rule",
        "a look from before a pool got its rule is not frozen", (
            Edit(UNDO_COMMANDS, "    if then != now or topology != ", "    if topology != "),),
        "commands/plans/test_rule_change.py"),
    Mutation(
        "osds-spared",
        "no shard leaves an OSD that filters leave out, nor comes to it", (
            Edit(OPTIONS,
                 "        return self.sources is None or osd in self.sources\n",
                 "        return True\n"),
            Edit(OPTIONS,
                 "        return self.targets is None or osd in self.targets\n",
                 "        return True\n")),
        "scenario:filters"),
    Mutation(
        "immovable-anywhere",
        "what must not be moved is neither planned nor sent", (
            Edit(PLACEMENT_STATE,
                 "    if pg.immovable is not None:\n",
                 "    if False:\n"),
            Edit(CHECKS,
                 "    if not immovable:\n",
                 "    if True:\n"),
            Edit(BATCH,
                 "    return immovable if immovable not in TRANSIENT else None\n",
                 "    return None\n"),),
        "scenario:guard_reports"),
    Mutation(
        "full-upmaps-are-moved",
        "a PG that somebody has placed in full stays", (
            Edit(PG_CHECKS,
                 "    pinned = {e[\"pgid\"]: reasons.FULL_UPMAP for e in "
                 "osd_map.get(\"pg_upmap\", [])}\n",
                 "    pinned: Dict[str, str] = {}\n"),),
        "scenario:pinned"),
    Mutation(
        "chosen-primaries-are-moved",
        "a PG whose primary is not the one of its rule stays where positions differ", (
            Edit(PG_CHECKS,
                 "    for entry in osd_map.get(\"pg_upmap_primaries\", []):\n",
                 "    for entry in ():\n"),),
        "snapshot/test_immovable_pgs.py"),
    Mutation(
        "stretch-mode-is-not-asked",
        "nothing while a site of a stretched cluster is gone or coming back", (
            Edit(POOLS,
                 "        return reasons.DEGRADED_STRETCH\n",
                 "        return None\n"),),
        "scenario:stretch"),
    Mutation(
        "omap-that-has-left-is-forgotten",
        "omap that has left an OSD is leaving until its RocksDB has compacted", (
            Edit(SIZE_MODEL,
                 "        return max(0, min(left, excess))\n",
                 "        return 0\n"),),
        "scenario:omap_late"),
    Mutation(
        "omap-on-small-osds-is-moved",
        "omap stays on OSDs whose RocksDB comes and goes by more", (
            Edit(SNAPSHOT_BUILDER,
                 "        least_bytes = look.reading.min_omap_osd_bytes\n",
                 "        least_bytes = 0\n"),),
        "scenario:omap_small"),
    Mutation(
        "held-pgs-stay-for-ever",
        "a rest ends when PGs may be moved again that somebody had held back", (
            Edit("equilibrium_mgr/control/plan_basis.py",
                 "    if now.held_pgs * 2 <= then.held_pgs and then.held_pgs:\n",
                 "    if False:\n"),),
        "scenario:omap_freed"),
    Mutation(
        "unmeasured-omap-is-moved",
        "before Ceph 18 nothing goes of PGs whose omap has not been measured", (
            Edit(SIZE_MODEL,
                 "        if is_untold and is_unmeasured(record, is_late):\n",
                 "        if False:\n"),),
        "scenario:omap_16"),
)
