"""The options in `status`: those not at their default, bad values, what balancing leaves out."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ..control.balancing_scope import bad_options, left_out
from ..settings import changed_options, read_settings
from ..snapshot.model import Snapshot


def options_json(option: Callable[[str], Any], snapshot: Optional[Snapshot]) -> Dict[str, Any]:
    """For `status --format json`; `option` is the mgr's `get_module_option`."""
    settings = read_settings(option)
    bad: Dict[str, List[str]] = {}
    for one in bad_options(settings, snapshot):
        bad.setdefault(one.option, []).append(f"'{one.value}': {one.reason}")
    return {
        "options": [dict(changed._asdict(), bad="; ".join(bad.get(changed.name, [])) or None)
                    for changed in changed_options(option)],
        "left_out": left_out(settings, snapshot) if snapshot is not None else []}
