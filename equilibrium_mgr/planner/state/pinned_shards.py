"""The shards of a PG that upmap items hold elsewhere than CRUSH wants them. OSDs are indices; -1 in
a raw mapping is no OSD of ours."""
from __future__ import annotations

from typing import Iterator, Sequence, Tuple

from ...snapshot.upmap_items import items_for


def pinned_shards(raw: Sequence[int], up: Sequence[int],
                  positional: bool) -> Iterator[Tuple[int, int]]:
    """Yields (OSD that has a shard, OSD that CRUSH wants for it). Where positions do not count, any
    of the OSDs that CRUSH wants will do."""
    wanted = [osd for osd in raw if osd >= 0 and osd not in up]
    for position, osd in enumerate(up):
        if not positional and osd not in raw:
            yield from ((osd, target) for target in wanted)
        elif positional and raw[position] in wanted:
            yield osd, raw[position]


def has_exchange(raw: Sequence[int], up: Sequence[int]) -> bool:
    """True where a shard is on an OSD that CRUSH wants for another position."""
    return any(osd in raw and osd != wanted for osd, wanted in zip(up, raw))


def is_expressible(raw: Sequence[int], up: Sequence[int]) -> bool:
    """True where upmap items lead from a raw mapping to an up set."""
    try:
        items_for(raw, up)
    except ValueError:
        return False
    return True
