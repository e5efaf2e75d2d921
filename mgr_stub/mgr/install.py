"""Installs the stand-in for `mgr_module`, only on an explicit call."""

from __future__ import annotations

import importlib
import json
import re
import sys
from types import ModuleType
from typing import Any, Mapping, Tuple

#: Supported releases: {major: (version, name)}.
SIMULATED_RELEASES = {
    16: ("16.2.15", "pacific"),
    18: ("18.2.7", "reef"),
    20: ("20.2.4", "tentacle"),
}
#: The release that is played if a state file has none.
_USUAL_RELEASE = 18


def release_of(versions: Mapping[str, Any]) -> int:
    """Returns the simulated release that is next to that of the mgrs in `ceph versions`, and not
    above it if there is one.
    """
    told = [int(major) for major in re.findall(
        r"ceph version (\d+)", json.dumps(versions.get("mgr", {})))]
    if not told:
        return _USUAL_RELEASE
    return max([release for release in SIMULATED_RELEASES if release <= min(told)],
               default=min(SIMULATED_RELEASES))


def style_of(release: int) -> str:
    """Returns the name of the module in this package that stands for `mgr_module` of a release."""
    return "mgr_module_new" if release >= 20 else "mgr_module_old"


def install(release: int, packages: Tuple[str, ...] = ("equilibrium_mgr",)) -> ModuleType:
    """Makes `import mgr_module` give the stand-in of a release, and returns it.

    If the other style was installed, the named packages are removed from `sys.modules`, since they
    were imported with it.
    """
    if release not in SIMULATED_RELEASES:
        known = ", ".join(str(number) for number in SIMULATED_RELEASES)
        raise ValueError(f"release {release} is none of {known}")
    wanted = importlib.import_module(f"{__package__}.{style_of(release)}")
    present = sys.modules.get("mgr_module")
    if present is not wanted:
        if present is not None:
            for name in [n for n in sys.modules if n.partition(".")[0] in packages]:
                del sys.modules[name]
        sys.modules["mgr_module"] = wanted
    return wanted
