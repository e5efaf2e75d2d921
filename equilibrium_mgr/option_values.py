"""The values of the options that hold for this mgr: its own, or those of all mgrs, and none that
`ceph config rm` has removed.

`mgr/equilibrium/x/metrics_port` is set for mgr.x alone. A mgr tells only which value holds for it,
not whether it is its own.

Of what is removed a running mgr never hears, seen on Ceph 16.2.15 and 20.2.4: the monitor sends it
the options that are set, and it goes on with the last value of one that is not among them, a
standby that becomes active too. It calls `config_notify`, though; then, and at the start, the
monitor is asked.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, Optional, Sequence

from .settings import LOCAL_OPTIONS, OPTIONS


class OptionValues:
    """`common_value` and `effective_value` are the mgr's `get_module_option` and
    `get_localized_module_option`; `options_set` returns the names of the options that are set, or
    None without an answer. Any thread may read; only the serve thread checks."""

    def __init__(self, common_value: Callable[[str], Any], effective_value: Callable[[str], Any],
                 mgr_id: str, options_set: Callable[[], Optional[FrozenSet[str]]],
                 options: Sequence[Dict[str, Any]] = OPTIONS) -> None:
        self._common_value = common_value
        self._effective_value = effective_value
        self._options_set = options_set
        self._defaults = {option["name"]: option["default"] for option in options}
        self._own_names = {name: f"{mgr_id}/{name}" for name in LOCAL_OPTIONS
                           if name in self._defaults}
        self._removed: Dict[str, Any] = {}   # name → its last value; replaced, never edited
        self._is_check_due = True   # a standby keeps what was removed while it stood by, too

    def value(self, name: str) -> Any:
        """The value of an option; None where it is at its default, or was removed since."""
        own_name = self._own_names.get(name)
        own = None if own_name is None else self._unremoved(own_name, self._own_value(name))
        return self._unremoved(name, self._common_value(name)) if own is None else own

    def request_check(self) -> None:
        """Has the next `check_if_due` ask the monitor which options were removed."""
        self._is_check_due = True

    def check_if_due(self) -> None:
        """Asks the monitor where that was requested."""
        if not self._is_check_due:
            return
        self._is_check_due = False
        # read before the monitor is asked: an option that is set meanwhile was not removed
        changed = {}
        for name, default in self._defaults.items():
            changed[name] = self._common_value(name), default
            if name in self._own_names:
                changed[self._own_names[name]] = self._own_value(name), default
        last = {name: value for name, (value, default) in changed.items()
                if value is not None and value != default}
        names = self._options_set() if last else frozenset()
        if names is None:
            self._is_check_due = True
        else:
            self._removed = {name: value for name, value in last.items() if name not in names}

    def _own_value(self, name: str) -> Any:
        """This mgr's value; None where it is that of all mgrs."""
        value = self._effective_value(name)
        return None if value == self._common_value(name) else value

    def _unremoved(self, name: str, value: Any) -> Any:
        removed = self._removed
        # compared as text: nan is not equal to itself
        return None if name in removed and str(removed[name]) == str(value) else value
