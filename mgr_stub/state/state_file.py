"""Reading a cluster state file: the layout of jj-balancer's `gather`, plain JSON or xz."""

from __future__ import annotations

import errno
import json
import lzma
from typing import Any, Dict

from ..errors import StubError, invalid

_XZ_MAGIC = b"\xfd7zXZ\x00"


def read_state(path: str) -> Dict[str, Any]:
    """The content of a state file; StubError with one sentence if it is none. What is in it is
    checked as the cluster is built (cluster_builder.py)."""
    try:
        with open(path, "rb") as file:
            packed = file.read()
    except FileNotFoundError:
        raise StubError(errno.ENOENT, f"{path}: no such state file") from None
    except OSError as error:
        code = error.errno or errno.EIO
        raise StubError(code, f"{path}: cannot be read: {error.strerror}") from None
    try:
        text = lzma.decompress(packed) if packed.startswith(_XZ_MAGIC) else packed
        state: Any = json.loads(text.decode("utf-8"))
    except (lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
        raise invalid(f"{path}: this is no state file, or a part of one: {error}") from None
    version = state.get("stateversion") if isinstance(state, dict) else None
    if version != 1:
        raise invalid(f"{path}: a state file has the stateversion 1, this has {version!r}")
    found: Dict[str, Any] = state
    return found
