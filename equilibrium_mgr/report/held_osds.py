"""OSDs that an operator's weights hold to a share of their size: sentences, and the same as JSON."""
from __future__ import annotations

from typing import Any, Dict, List

from ..plan.weight_shares import share_limits
from ..snapshot.model import Snapshot
from ..snapshot.operator_weights import held_sentence

_SHOWN = 10


def held_sentences(snapshot: Snapshot) -> List[str]:
    """One an OSD, the first few; nothing where no weight is lowered."""
    held = [osd for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
    sentences = [held_sentence(osd) for osd in held[:_SHOWN]]
    if len(held) > _SHOWN:
        sentences.append(f"{len(held) - _SHOWN} more OSDs are held to a share of their size")
    return sentences


def held_json(snapshot: Snapshot) -> List[Dict[str, Any]]:
    """`share` is a ratio of the size; `most_bytes` is what the OSD may hold by our doing, None
    where no pool uses it."""
    limits = share_limits(snapshot)
    return [{"osd": osd.id, "share": osd.share, "held_by": osd.held_by,
             "most_bytes": limits.get(osd.id)}
            for _, osd in sorted(snapshot.osds.items()) if osd.share < 1.0]
