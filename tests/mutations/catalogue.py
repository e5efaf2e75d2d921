"""All mutations, by what the rules that they remove are about."""

from __future__ import annotations

from typing import Tuple

from . import advice, awake, guards, legality, limits, motionless, readings, steering
from .mutation import Mutation

MUTATIONS: Tuple[Mutation, ...] = (
    guards.MUTATIONS + legality.MUTATIONS + limits.MUTATIONS + motionless.MUTATIONS
    + readings.MUTATIONS + advice.MUTATIONS + awake.MUTATIONS
    + steering.MUTATIONS)
