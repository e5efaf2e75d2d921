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
