"""Reading a cluster state file: the layout of jj-balancer's `gather`, plain JSON or xz."""

from __future__ import annotations

import errno
import json
import lzma
from typing import Any, Dict, Tuple

from ..errors import StubError, invalid

_XZ_MAGIC = b"\xfd7zXZ\x00"

#: Required keys of a state file: (path, type), in the order of the checks.
_REQUIRED: Tuple[Tuple[Tuple[str, ...], type], ...] = (
    (("osd_dump",), dict),
    (("osd_dump", "pools"), list),
    (("osd_dump", "osds"), list),
    (("pg_dump",), dict),
    (("pg_dump", "pg_map", "pg_stats"), list),
    (("pg_dump", "pg_map", "osd_stats"), list),
    (("crush_dump",), dict),
    (("crush_dump", "devices"), list),
    (("crush_dump", "buckets"), list),
    (("crush_dump", "rules"), list),
)

#: Required keys of the entries of a list: {path of the list: keys}.
_REQUIRED_IN_ENTRIES: Dict[Tuple[str, ...], Tuple[str, ...]] = {
    ("osd_dump", "pools"): ("pool", "pool_name", "type", "size", "crush_rule", "pg_num"),
    ("osd_dump", "osds"): ("osd", "weight"),
    ("pg_dump", "pg_map", "pg_stats"): ("pgid", "state", "up", "acting", "stat_sum"),
    ("pg_dump", "pg_map", "osd_stats"): ("osd", "statfs"),
    ("crush_dump", "devices"): ("id",),
    ("crush_dump", "buckets"): ("id", "name", "type_name", "items"),
    ("crush_dump", "rules"): ("rule_id", "steps"),
}


def read_state(path: str) -> Dict[str, Any]:
    """The checked content of a state file; StubError with one sentence if it is not valid."""
    try:
        with open(path, "rb") as file:
            packed = file.read()
    except FileNotFoundError:
        raise StubError(errno.ENOENT, f"{path}: no such state file") from None
    except OSError as error:
        code = error.errno or errno.EIO
        raise StubError(code, f"{path}: cannot be read: {error.strerror}") from None
    if not packed:
        raise invalid(f"{path}: the state file is empty")
    state: Dict[str, Any] = _parse(path, _unpack(path, packed))
    check_state(path, state)
    return state


def _unpack(path: str, packed: bytes) -> bytes:
    if not packed.startswith(_XZ_MAGIC[:len(packed)]):
        return packed
    try:
        return lzma.decompress(packed)
    except (lzma.LZMAError, EOFError):
        raise invalid(f"{path}: the xz-compressed state file is truncated or damaged") from None


def _parse(path: str, text: bytes) -> Any:
    if not text.strip():
        raise invalid(f"{path}: the state file is empty")
    try:
        return json.loads(text.decode("utf-8"))
    except UnicodeDecodeError:
        raise invalid(f"{path}: the state file is not JSON") from None
    except json.JSONDecodeError as error:
        raise invalid(f"{path}: the state file is not JSON or is truncated: {error.msg} at line "
                      f"{error.lineno}") from None
    except RecursionError:
        raise invalid(f"{path}: the state file is nested too deeply") from None


def check_state(path: str, state: Any) -> None:
    """StubError unless the state is of version 1 and has all required keys."""
    if not isinstance(state, dict):
        raise invalid(f"{path}: a state file holds a JSON object, this one holds something else")
    version = state.get("stateversion")
    if version != 1:
        if version is None:
            raise invalid(f"{path}: the key 'stateversion' is missing from the state file")
        raise invalid(f"{path}: the state file has version {version!r}, only 1 is understood")
    for keys, kind in _REQUIRED:
        value: Any = state
        for depth, key in enumerate(keys):
            if not isinstance(value, dict) or key not in value:
                missing = ".".join(keys[:depth + 1])
                raise invalid(f"{path}: the key '{missing}' is missing from the state file")
            value = value[key]
        if not isinstance(value, kind):
            wanted = "a list" if kind is list else "an object"
            raise invalid(f"{path}: '{'.'.join(keys)}' in the state file is not {wanted}")
    for keys, needed in _REQUIRED_IN_ENTRIES.items():
        _check_entries(path, state, keys, needed)


def _check_entries(path: str, state: Dict[str, Any], keys: Tuple[str, ...],
                   needed: Tuple[str, ...]) -> None:
    entries: Any = state
    for key in keys:
        entries = entries[key]
    name = ".".join(keys)
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise invalid(f"{path}: '{name}[{index}]' in the state file is not an object")
        for key in needed:
            if key not in entry:
                raise invalid(
                    f"{path}: the key '{name}[{index}].{key}' is missing from the state file")
