"""What the next osdmap epoch changes, as an incremental map does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Optional, Set

from .upmap import Items, Mapping


@dataclass
class MapChange:
    """The changes of one epoch; None removes an entry."""

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
    #: PGs whose full pg_upmap or chosen primary is another one in `rest`.
    remapped: Set[str] = field(default_factory=set)
    flags: Optional[FrozenSet[str]] = None
    min_compat_client: Optional[str] = None
    #: A command that changes nothing but makes an epoch all the same.
    bump: bool = False

    def __bool__(self) -> bool:
        return bool(self.upmap_items or self.pg_temp or self.removed_pools or self.bump
                    or self.flags is not None or self.min_compat_client is not None
                    or self.rest or self.moves_data)

    @property
    def only_serves(self) -> bool:
        """Whether only the OSDs that serve PGs in the meantime change (pg_temp)."""
        return not (self.upmap_items or self.removed_pools or self.flags is not None
                    or self.min_compat_client is not None or self.rest or self.moves_data)

    @property
    def moves_data(self) -> bool:
        """Whether raw mappings or up sets may follow the change, apart from upmap items."""
        return bool(self.osds or self.pools or self.crush is not None)
