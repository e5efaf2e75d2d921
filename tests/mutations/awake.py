"""The loop stays awake: whoever asks, whatever drifts, and whatever else changes."""

from __future__ import annotations

from typing import Tuple

from .mutation import AUTO_PLANNER, BALANCER, CURRENT_VIEW, OBSERVER, Edit, Mutation

_OFTEN = Edit(CURRENT_VIEW, "_POLLED_SECONDS = 1200.0\n", "_POLLED_SECONDS = 0.0\n")

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "asked-look-is-the-baseline-anywhere",
        "what a command has looked at is not what the idle loop compares the cluster with", (
            _OFTEN,
            Edit(BALANCER,
                 "        try:\n"
                 "            self._observe(summary, settings)\n",
                 "        try:\n"
                 "            if summary is not None:\n"
                 "                self.observer.begin_look(summary, settings)\n"
                 "            self._observe(summary, settings)\n"),),
        "threads/test_asked.py; scenarios/awake/test_asking.py --asked-streams 3"),
    Mutation(
        "each-poll-looks",
        "asking at rest costs three looks an hour", (
            _OFTEN,
            Edit(OBSERVER,
                 "        if at_rest and 0.0 <= now - self._asked_at[0] < 3600.0:\n",
                 "        if False:\n"),),
        "scenarios/awake/test_price.py -k balanced"),
    Mutation(
        "idle-for-good",
        "a rest ends where a plan could gain by what has drifted since", (
            Edit(AUTO_PLANNER,
                 "        reason = why_new(idle.basis, now, IDLE_CHECKS)\n",
                 "        reason = why_new(idle.basis, now, LARGE_CHECKS)\n"),
            Edit(AUTO_PLANNER,
                 "        doubt = reason or why_new(idle.basis, now._replace(noise=0.0),"
                 " IDLE_CHECKS)\n",
                 "        doubt = reason\n"),),
        "scenarios/awake/test_drift.py --drift-streams 4"),
    Mutation(
        "drift-is-followed-by-whole-plans",
        "drift moves little more bytes than a plan a day", (
            Edit(AUTO_PLANNER,
                 "_DRIFT_GAIN if self._follows_drift(basis) else 0.0\n", "0.0\n"),),
        "scenarios/awake/test_drift.py --full -k little"),
    Mutation(
        "what-others-move-is-drift",
        "a rest after which others have moved shards is planned for as a whole", (
            Edit(AUTO_PLANNER,
                 "        if have_others_moved(idle.basis, now):\n"
                 "            self._balanced = None\n", ""),),
        "scenarios/awake/test_drift.py -k others"),
    Mutation(
        "what-others-move-meanwhile-is-drift",
        "a plan during which others have moved shards is followed by a whole one", (
            Edit(AUTO_PLANNER,
                 "        if executed is not None and have_others_moved(",
                 "        if False and have_others_moved("),),
        "scenarios/awake/test_drift.py -k others"),
    Mutation(
        "drift-leaves-too-much",
        "drift leaves less than a point to gain", (
            Edit(AUTO_PLANNER, "_DRIFT_GAIN = 0.008\n", "_DRIFT_GAIN = 0.02\n"),),
        "scenarios/awake/test_drift.py --full -k little"),
    Mutation(
        "rests-until-all-have-cooled",
        "a rest is questioned when the first PG may move again", (
            Edit(AUTO_PLANNER,
                 "cooling_seconds = min(", "cooling_seconds = max("),),
        "scenario:guard_cooldown"),
    Mutation(
        "pause-without-looks",
        "figures are of this round while data moves, also in a pause of the monitor", (
            Edit(BALANCER,
                 "        if not is_needed and not is_for_steering and self.execution is not None:\n",
                 "        if False:\n"),
            Edit(BALANCER,
                 "        if not is_needed and self.dispatcher.is_watched:\n",
                 "        if False:\n"),),
        "scenario:guard_monitor"),
    Mutation(
        "settles-without-end",
        "relief and drains wait five minutes at most for a map that does not settle", (
            Edit("equilibrium_mgr/control/settling.py",
                 "_LONGEST_SETTLE_SECONDS = 300.0\n",
                 "_LONGEST_SETTLE_SECONDS = 86400.0\n"),),
        "scenarios/awake/test_waiting.py"),
)
