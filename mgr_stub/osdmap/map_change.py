"""The changes of one osdmap epoch, as in Ceph's OSDMap::Incremental."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Optional, Set

from .upmap import Items, Mapping


@dataclass
class MapChange:
    """The changes of one epoch; a value of None removes the entry."""

    upmap_items: Dict[str, Optional[Items]] = field(default_factory=dict)
    pg_temp: Dict[str, Optional[Mapping]] = field(default_factory=dict)
    removed_pools: Set[int] = field(default_factory=set)
    #: New or changed entries of the osdmap's `osds` and `pools`, whole.
    osds: Dict[int, Dict[str, Any]] = field(default_factory=dict)
    pools: Dict[int, Dict[str, Any]] = field(default_factory=dict)
    #: A whole CRUSH dump.
    crush: Optional[Dict[str, Any]] = None
    #: Other keys of the dump: full ratios, erasure-code profiles.
    rest: Dict[str, Any] = field(default_factory=dict)
    #: PGs whose pg_upmap or chosen primary changes in `rest`.
    remapped: Set[str] = field(default_factory=set)
    flags: Optional[FrozenSet[str]] = None
    min_compat_client: Optional[str] = None
    #: Makes an epoch even if nothing else changes.
    force_epoch: bool = False

    def __bool__(self) -> bool:
        return bool(self.upmap_items or self.pg_temp or self.removed_pools or self.force_epoch
                    or self.flags is not None or self.min_compat_client is not None
                    or self.rest or self.moves_data)

    @property
    def is_pg_temp_only(self) -> bool:
        """True if nothing changes but pg_temp, the OSDs that serve PGs while data moves."""
        return not (self.upmap_items or self.removed_pools or self.flags is not None
                    or self.min_compat_client is not None or self.rest or self.moves_data)

    @property
    def moves_data(self) -> bool:
        """True if raw mappings or up sets may change, other than by upmap items."""
        return bool(self.osds or self.pools or self.crush is not None)
