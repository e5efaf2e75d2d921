"""OSDs that an operator's weights hold to a share of their size, as sentences and as JSON."""
from __future__ import annotations

from typing import Any, Dict, List

from ...plan.weight_shares import share_limits
from ...runtime.formatting import plural
from ...snapshot.model import Snapshot
from ...snapshot.operator_weights import held_sentence

_SHOWN = 10


def held_sentences(snapshot: Snapshot) -> List[str]:
    """A sentence for each of the first OSDs, and one that counts the rest."""
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    sentences = [held_sentence(osd) for osd in held[:_SHOWN]]
    if len(held) > _SHOWN:
        more = len(held) - _SHOWN
        verb = "is" if more == 1 else "are"
        sentences.append(f"{plural(more, 'more OSD')} {verb} held to a share of the size")
    return sentences


def held_json(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """All of them, JSON-ready.

    `share` is a ratio of the size; `most_bytes` is what moves may fill the OSD to, None where no
    pool uses it.
    """
    limits = share_limits(snapshot)
    return [{"osd": osd.id, "share": osd.share, "held_by": osd.held_by,
             "most_bytes": osd.device_bytes(limits[osd.id]) if osd.id in limits else None}
            for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
