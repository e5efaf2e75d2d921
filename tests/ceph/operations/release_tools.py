"""Puts a bootstrapped release's crushtool and osdmaptool on the PATH of this process.

The release's own loader runs them with its own libraries, outside its folder: thousands of calls
would take minutes in a mount namespace each.
"""

from __future__ import annotations

from pathlib import Path

from ..release import Release

_TOOLS = ("crushtool", "osdmaptool")
_SCRIPT = """#!/bin/sh
exec {root}/lib64/ld-linux-x86-64.so.2 --library-path {libraries} {root}/usr/bin/{tool} "$@"
"""


def write_tools(release: Release, folder: Path) -> None:
    """Writes a script for each tool of a release that is in a folder of its own."""
    root = release.root
    assert root is not None, f"Ceph {release.major} is installed in the system"
    base = root / "usr" / "lib" / "x86_64-linux-gnu"
    for tool in _TOOLS:
        script = folder / tool
        script.write_text(_SCRIPT.format(root=root, libraries=f"{base}:{base / 'ceph'}", tool=tool))
        script.chmod(0o755)
