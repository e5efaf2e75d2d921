"""`pool ls`, `pool add` and `pool rm`: the option pool_ids."""
from __future__ import annotations

import errno
from typing import FrozenSet, List

from ..report.command_answer import CommandAnswer, CommandError
from .module_parts import ModuleParts
from .pool_names import pool_id, pool_ids


class PoolCommands:
    """Pools are given by name or id. Raises CommandError for what is no pool."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts

    def list(self) -> CommandAnswer:
        """The pools that balancing is limited to; none in JSON where all are balanced."""
        names = {pool: name for name, pool in self._parts.gateway.pool_ids_by_name().items()}
        chosen = sorted(self._parts.settings().pool_ids or ())
        pools = [names.get(pool, f"{pool} (gone)") for pool in chosen]
        return CommandAnswer({"pools": pools}, "\n".join(pools) or (
            "all pools are balanced; 'ceph equilibrium pool add <pool>' limits it to some"))

    def add(self, pools: List[str]) -> CommandAnswer:
        """Limits balancing to these pools beside those named before."""
        chosen = self._parts.settings().pool_ids or frozenset()
        return self._limit_to(chosen | pool_ids(pools, self._parts.gateway.pool_ids_by_name()))

    def remove(self, pools: List[str]) -> CommandAnswer:
        """Takes pools off the list, ids of pools that are gone among them.

        Refuses to leave the list empty, which would mean all pools: a command that takes a pool out
        never has more of them balanced.
        """
        known = self._parts.gateway.pool_ids_by_name()
        limited_to = self._parts.settings().pool_ids
        if limited_to is None:
            pool_ids(pools, known)   # raises for what is no pool at all
            raise CommandError(errno.EINVAL, "pool_ids is empty, and all pools are balanced; run"
                               " 'ceph equilibrium pool add' with those that are to be")
        gone = {str(pool) for pool in limited_to - set(known.values())} - set(known)
        left = limited_to - frozenset(int(pool) if pool in gone else pool_id(pool, known)
                                      for pool in pools)
        if not left:
            raise CommandError(errno.EPERM, "no pool would be left in pool_ids, and an empty list"
                               " means all pools; 'ceph config rm mgr mgr/equilibrium/pool_ids' has"
                               " all of them balanced, 'ceph equilibrium pool add' another one"
                               " instead")
        return self._limit_to(left)

    def _limit_to(self, chosen: FrozenSet[int]) -> CommandAnswer:
        self._parts.gateway.set_option("pool_ids", ",".join(str(pool) for pool in sorted(chosen)))
        return self.list()
