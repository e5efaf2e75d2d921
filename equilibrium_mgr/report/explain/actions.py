"""What an operator can do about each reason: one command or sentence for each code.

The only home of these sentences: `status`, `explain`, health checks and the report take them from
here.
"""
from __future__ import annotations

from typing import Any, Mapping

from ...snapshot import reason_codes as codes

NOTHING = "nothing"

#: Code → a str.format template over the figures of the reason.
_ACTIONS: Mapping[str, str] = {
    codes.SWITCHED_OFF: "'ceph equilibrium on' balances automatically",
}


def action(code: str, numbers: Mapping[str, Any]) -> str:
    """The action for a reason with these figures; NOTHING where none is needed or possible."""
    template = _ACTIONS.get(code)
    return NOTHING if template is None else template.format(**numbers)
