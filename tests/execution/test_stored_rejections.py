"""Rejections in the key-value store: a successor has them all, unless they are too many."""
from __future__ import annotations

import json

from equilibrium_mgr.execution.outcomes import Items, Rejection, restored, stored
from equilibrium_mgr.runtime.kv_store import MAX_VALUE_BYTES

_NOW = 1e9


def test_what_is_stored_comes_back() -> None:
    items: Items = {
        "1.0": Rejection("dropped", "7:ab", _NOW, tries=3),
        "1.1": Rejection("refused", "7:ab", _NOW - 9.0, is_refused=True),
        "1.2": Rejection("taken back", "400", _NOW, withheld_by=((3, 400),))}
    told = {pgid: item for pgid, item in items.items() if not item.withheld_by}
    assert restored(json.loads(json.dumps(stored(items))), _NOW) == told
    assert restored(stored(items), _NOW - 99.0)["1.0"].at == _NOW - 99.0   # a clock set back


def test_the_newest_of_too_many_are_stored() -> None:
    items = {f"{pool}.{ps:x}": Rejection(f"{ps % 500:200d}", "7:ab", _NOW + ps)
             for pool in (1, 2) for ps in range(9000)}
    rows = stored(items)
    assert len(json.dumps(rows)) < MAX_VALUE_BYTES
    assert restored(rows, 2 * _NOW)["2.2327"].at == _NOW + 8999.0
