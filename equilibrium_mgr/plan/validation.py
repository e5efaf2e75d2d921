"""Checks values that were read back from the key-value store against their types."""
from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Optional, Union, get_args, get_origin, get_type_hints

from .model import Plan

#: No size, id or time is as large.
_MOST = 1 << 63

#: A plan has as many records as shards, of a handful of types.
_hints = lru_cache(maxsize=None)(get_type_hints)


def conforms(value: Any, hint: Any) -> bool:
    """True if a value is of a type, in depth: NamedTuples, tuples, dicts and plain types.

    An int is a float as well, a bool is neither.
    """
    if hint is float or hint is int:
        return (isinstance(value, (int, float) if hint is float else int)
                and not isinstance(value, bool) and math.isfinite(value) and abs(value) < _MOST)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Union:
        return any(conforms(value, one) for one in inner)
    if origin is dict:
        return isinstance(value, dict) and all(
            conforms(key, inner[0]) and conforms(one, inner[1]) for key, one in value.items())
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        if len(inner) == 2 and inner[1] is Ellipsis:
            return all(conforms(one, inner[0]) for one in value)
        return len(value) == len(inner) and all(map(conforms, value, inner))
    if hasattr(hint, "_fields"):
        hints = _hints(hint)
        return isinstance(value, hint) and all(
            conforms(one, hints[name]) for name, one in zip(hint._fields, value))
    return isinstance(value, hint)


def fault_of_plan(plan: Plan) -> Optional[str]:
    """Returns what is wrong with a plan that was read back, or None."""
    if not conforms(plan, Plan):
        return "a value has the wrong type"
    pgids = [move.pgid for move in plan.moves] + [change.pgid for change in plan.changes]
    for pgid in pgids:
        if not _is_pgid(pgid):
            return f"'{pgid[:40]}' is no PG"
    if set(plan.after.pools) - set(plan.before.pools) or (
            set(plan.after.classes) - set(plan.before.classes)):
        return "before and after do not belong together"
    return None


def _is_pgid(text: str) -> bool:
    pool, dot, number = text.partition(".")
    if not (dot and pool.isascii() and pool.isdigit() and len(number) <= 8):
        return False
    return bool(number) and all(digit in "0123456789abcdef" for digit in number)
