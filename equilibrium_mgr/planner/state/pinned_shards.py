"""The shards of a PG that upmap items hold elsewhere than CRUSH wants them."""
from __future__ import annotations

from typing import Iterator, Sequence, Tuple


def pinned_shards(raw: Sequence[int], up: Sequence[int],
                  positional: bool) -> Iterator[Tuple[int, int]]:
    """Yields (OSD that has a shard, OSD that CRUSH wants for it), as OSD indices; -1 in `raw` is no
    OSD of ours. Where positions do not count, any of the OSDs that CRUSH wants will do."""
    wanted = [osd for osd in raw if osd >= 0 and osd not in up]
    for position, osd in enumerate(up):
        if not positional and osd not in raw:
            yield from ((osd, target) for target in wanted)
        elif positional and raw[position] in wanted:
            yield osd, raw[position]
