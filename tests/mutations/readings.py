"""What is known: unknown statistics, answers of monitors, and sizes that were mispredicted."""

from __future__ import annotations

from typing import Tuple

from .mutation import (
    BALANCER, DISPATCHER, EXECUTION, OSD_FACTORS, SIZE_MODEL,
    SNAPSHOT_BUILDER, SNAPSHOT_MODEL, Edit, Mutation)

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "undeleted-data-counts-as-used",
        "data that has left an OSD is gone while the OSD still deletes it", (
            Edit(SIZE_MODEL,
                 "                sums.undeleted[pool] += part\n",
                 "                pass\n"),),
        "snapshot/test_undeleted.py"),
    Mutation(
        "unknown-is-movable-anywhere",
        "what has not been reported is not moved", (
            Edit(SNAPSHOT_BUILDER,
                 "shard, unknown or fault)",
                 "shard, fault)"),
            Edit(SNAPSHOT_BUILDER,
                 "        if not self._awaited.isdisjoint(up):\n",
                 "        if False:\n"),),
        "scenario:guard_reports"),
    Mutation(
        "unreported-osds",
        "nothing of PGs on OSDs that have not reported", (
            Edit(SNAPSHOT_BUILDER,
                 "        if not self._awaited.isdisjoint(up):\n",
                 "        if False:\n"),),
        "scenario:guard_reports"),
    Mutation(
        "unknown-weighs-nothing",
        "what has not been reported counts as its pool's mean", (
            Edit(SNAPSHOT_BUILDER,
                 "max(shard.objects, least_objects),",
                 "shard.objects if unknown is None else 0,"),
            Edit(SNAPSHOT_BUILDER,
                 "pg_status.get(\"misplaced_objects\", 0) + silent,\n",
                 "pg_status.get(\"misplaced_objects\", 0),\n"),),
        "scenario:unknown_misplaced"),
    Mutation(
        "answers-are-believed",
        "only what stands in the map was taken", (
            Edit(EXECUTION,
                 "        if present == change.items:\n",
                 "        if present == change.items or code == 0:\n"),),
        "scenario:mon_drops_items"),
    Mutation(
        "rejected-again",
        "what the monitor dropped is not sent again", (
            Edit(DISPATCHER,
                 "        yield from exclusions_of(self.rejected)\n",
                 "        yield from exclusions_of({})\n"),),
        "scenario:mon_drops_items"),
    Mutation(
        "no-backoff",
        "a pause after a batch of which nothing was taken", (
            Edit(DISPATCHER,
                 "            self.backoff.failed(self._clock())\n",
                 "            pass\n"),),
        "scenario:guard_monitor"),
    Mutation(
        "no-size-correction",
        "pools whose sizes were mispredicted are stopped", (
            Edit("equilibrium_mgr/execution/size_check.py",
                 "        if new:\n",
                 "        if False:\n"),),
        "scenario:swelling_limit scenario:swelling"),
    Mutation(
        "stopped-is-sent",
        "what a plan wants of a stopped pool is void", (
            Edit(DISPATCHER,
                 "            if few[pool] < change.shards:\n",
                 "            if False:\n"),),
        "scenario:swelling_execute"),
    Mutation(
        "stopped-anywhere",
        "nothing of a stopped pool is planned or sent", (
            Edit(DISPATCHER,
                 "            if few[pool] < change.shards:\n",
                 "            if False:\n"),
            Edit(DISPATCHER,
                 "            if pg.pool in stopped:\n",
                 "            if False:\n"),),
        "scenario:swelling"),
    Mutation(
        "stop-is-forgotten",
        "another mgr keeps to the stop", (
            Edit(DISPATCHER,
                 "        self.corrections.restore(learnt)\n",
                 ""),),
        "scenario:swelling"),
    Mutation(
        "measured-is-not-used",
        "full_readings use the sizes that were measured", (
            Edit(SIZE_MODEL,
                 "        return max(0, int(raw * ratio + shard.objects * measured))\n",
                 "        return max(0, int(raw * ratio))\n"),),
        "scenario:swelling_fill"),
    Mutation(
        "suspects-are-fed",
        "nothing goes while an OSD seems to have taken too much", (
            Edit(BALANCER,
                 "        if dispatcher.corrections.has_unconfirmed_excess and not"
                 " is_motionless:\n"
                 "            return Verdict(codes.MISPREDICTED",
                 "        if False:\n"
                 "            return Verdict(codes.MISPREDICTED"),),
        "scenario:swelling_fast"),
    Mutation(
        "all-shards-are-alike",
        "a shard has the size that it takes on its OSD, and at its position", (
            Edit(SNAPSHOT_MODEL,
                 "        return int(shard_bytes * self.ratio_on(osd, osds))\n",
                 "        return shard_bytes\n"),),
        "scenario:min_alloc scenario:small_objects"),
    Mutation(
        "metadata-is-multiplied",
        "metadata and omap of a shard take the same on every OSD, and at every position", (
            Edit(OSD_FACTORS,
                 "    return 1.0 + (of_data - 1.0) * (1.0 - metadata)\n",
                 "    return of_data\n"),),
        "snapshot/test_osd_factors.py"),
    Mutation(
        "impossible-figures-are-believed",
        "figures that no hardware can have say nothing of an OSD", (
            Edit(OSD_FACTORS,
                 " for row in rows if _is_within(row[0] / usual, _MOST_RATIO)]\n",
                 " for row in rows]\n"),),
        "snapshot/test_osd_factors.py"),
    Mutation(
        "what-comes-is-there-at-once",
        "a shard that came within a minute may not be in its OSD's report yet", (
            Edit(SIZE_MODEL,
                 "            self._came[pgid, osd] = look.reading.taken_at, epoch\n",
                 "            pass\n"),),
        "snapshot/test_undeleted.py; scenarios/test_event_streams.py -k 12 --event-streams 13"),
)
