"""The exemption of changes that move nothing: for those alone, and while they do not."""

from __future__ import annotations

from typing import Tuple

from .mutation import (
    BATCH, CHECKS, CURRENT_VIEW, DISPATCHER, IN_FLIGHT, KINDS, ROUND_STATE, UNDO_PLAN, Edit,
    Mutation)

MUTATIONS: Tuple[Mutation, ...] = (
    Mutation(
        "nothing-is-bound",
        "a change that moves data keeps every check", (
            Edit(CHECKS,
                 "    return _CHECKS_WITHOUT_MOTION if candidate.moves_nothing else CHECKS\n",
                 "    return _CHECKS_WITHOUT_MOTION\n"),),
        "scenario:limit_of_shards"),
    Mutation(
        "a-cancel-moves-data",
        "a plan that is to move nothing drops what would", (
            Edit(BATCH,
                 "        if void is None and kind in MOTIONLESS and not"
                 " candidate.adds_no_copy:\n",
                 "        if False:\n"),),
        "execution/test_motionless_changes.py"),
    Mutation(
        "what-moves-is-not-pending",
        "what an undo sends on its way counts as misplaced", (
            Edit(DISPATCHER,
                 "        if not moves_nothing(pg, change.up_after, before.is_positional(pg)):\n",
                 "        if False:\n"),),
        "scenario:undo"),
    Mutation(
        "cancel-takes-what-is-being-copied",
        "cancel leaves alone what has begun to move", (
            Edit(UNDO_PLAN,
                 "    if not pg.is_moving or pg.uncopied_ratio < 1.0:\n",
                 "    if not pg.is_moving:\n"),),
        "undo/test_undo_plan.py"),
    Mutation(
        "undo-overrides-others",
        "undo leaves alone what somebody else has changed since", (
            Edit(UNDO_PLAN,
                 "    if present != follows:\n",
                 "    if False:\n"),),
        "undo/test_undo_plan.py"),
    Mutation(
        "what-has-arrived-is-not-bound",
        "what an undo has found on its way is bound by all limits once it has arrived", (
            Edit(ROUND_STATE,
                 "        if not is_motionless and change.shards < len(gains):\n",
                 "        if False:\n"),),
        "undo/test_what_comes_in_between.py"),
    Mutation(
        "undo-by-a-look-of-before",
        "what is taken back is decided by a look that shows the last batch", (
            Edit(CURRENT_VIEW,
                 "        if epoch < self.balancer.changes().epoch:\n",
                 "        if False:\n"),),
        "undo/test_what_comes_in_between.py"),
    Mutation(
        "who-held-a-shard-holds-it",
        "of the remembered holders only those count that have the data for certain", (
            Edit(KINDS,
                 "    if _waits_where_it_was(pg, positional):\n",
                 "    if True:\n"),),
        "plan/test_kinds.py"),
    Mutation(
        "what-was-sent-on-had-not-arrived",
        "holders are doubtful once a PG was sent on", (
            Edit(IN_FLIGHT,
                 "previous_read_at=before_at, doubtful=True)\n",
                 "previous_read_at=before_at)\n"),),
        "plan/test_kinds.py"),
)
