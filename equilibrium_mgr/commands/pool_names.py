"""Pools as operators name them: by name or id, with `pool/` in front where that is ambiguous."""
from __future__ import annotations

import errno
from typing import FrozenSet, Mapping, Optional, Sequence

from ..report.command_answer import CommandError

PREFIX = "pool/"

#: Most digits of an id that stands for a pool; Python refuses to read thousands of digits.
_MAX_DIGITS = 19


def find_pool(text: str, ids_by_name: Mapping[str, int]) -> Optional[str]:
    """Name of the pool that `text` names, with or without `pool/` in front; None for no pool."""
    names = {pool_id: name for name, pool_id in ids_by_name.items()}
    for wanted in (text, text[len(PREFIX):] if text.startswith(PREFIX) else text):
        if wanted in ids_by_name:
            return wanted
        if _is_id(wanted) and int(wanted) in names:
            return names[int(wanted)]
    return None


def pool_id(text: str, ids_by_name: Mapping[str, int]) -> int:
    """Id of a pool given by name or id; a name goes before an id. Raises CommandError for none."""
    if text in ids_by_name:
        return ids_by_name[text]
    if _is_id(text) and int(text) in ids_by_name.values():
        return int(text)
    raise CommandError(errno.ENOENT, f"no pool has the name or id '{text}'")


def pool_ids(texts: Sequence[str], ids_by_name: Mapping[str, int]) -> FrozenSet[int]:
    """As `pool_id`, of several pools."""
    return frozenset(pool_id(text, ids_by_name) for text in texts)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
