"""Recognizes options that `ceph config rm` has removed, of which a running mgr never hears.

Seen on Ceph 16.2.15 and 20.2.4: the monitor sends an mgr the options that are set, and the mgr goes
on with the last value of one that is not among them, a standby that becomes active too. It calls
`config_notify`, though; then, and at the start, the monitor is asked.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Optional, Sequence


class RemovedOptions:
    """The values of the options that are in effect.

    `mgr_value` is the mgr's `get_module_option`. `options_set` returns the names of the options
    that are set, or None without an answer. Any thread may read; only the serve thread checks.
    """

    def __init__(self, mgr_value: Callable[[str], Any],
                 options_set: Callable[[], Optional[FrozenSet[str]]],
                 options: Sequence[Dict[str, Any]]) -> None:
        self._mgr_value = mgr_value
        self._options_set = options_set
        self._defaults = {option["name"]: option["default"] for option in options}
        self._removed: Dict[str, Any] = {}   # name → its last value; replaced, never edited
        self._is_check_due = True   # a standby keeps what was removed while it stood by, too

    def value(self, name: str) -> Any:
        """The value of an option; None where it is at its default, or was removed since."""
        value, removed = self._mgr_value(name), self._removed
        # compared as text: nan is not equal to itself
        return None if name in removed and str(removed[name]) == str(value) else value

    def request_check(self) -> None:
        """Has the next `check_if_due` ask the monitor."""
        self._is_check_due = True

    def check_if_due(self) -> bool:
        """Asks the monitor where that was requested; True where a value in effect has changed."""
        if not self._is_check_due:
            return False
        self._is_check_due = False
        # read before the monitor is asked: an option that is set meanwhile was not removed
        held = {name: self._mgr_value(name) for name in self._defaults}
        changed = {name: value for name, value in held.items()
                   if value is not None and value != self._defaults[name]}
        names = self._options_set() if changed else frozenset()
        if names is None:
            self._is_check_due = True
            return False
        before = self._removed
        self._removed = {name: value for name, value in changed.items() if name not in names}
        return before != self._removed
