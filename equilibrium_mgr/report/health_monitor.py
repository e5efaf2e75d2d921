"""Raises a health check once its condition has held for two rounds, clears it after two without.

What is raised is stored: a new mgr goes on with it, and clears nothing that it cannot judge yet.
"""
from __future__ import annotations

import json
import logging
from typing import Any, Dict, Mapping, Optional

from ..control.status import BalancerStatus
from ..observation.states import PLANNING, STUCK, WAITING
from ..runtime.kv_store import MAX_VALUE_BYTES, KeyValueStore
from ..snapshot.reason_codes import REASONS, UNDECIDED
from .health import PREFIX, Check, counts_as_stuck

KEY = "health"
_ROUNDS = 2
#: Conditions that are known without a look at the cluster.
_ALWAYS_KNOWN = (PREFIX + "ERROR", PREFIX + "BAD_OPTION", PREFIX + "CONFLICT")


class HealthMonitor:
    """Used by the serve thread, once a round."""

    def __init__(self, kv: KeyValueStore, log: logging.Logger) -> None:
        self._kv = kv
        self._log = log
        self._seen: Dict[str, int] = {}     # code → rounds in a row with the condition
        self._missed: Dict[str, int] = {}   # code → rounds in a row without it, of raised ones
        self._raised: Optional[Dict[str, Check]] = None   # None before the first round
        self._stored = ""
        self.stuck_since: Optional[float] = None

    def observe(self, status: BalancerStatus, now: float) -> None:
        """Before the conditions are decided: for how long the loop has been stuck. Making another
        plan does not end that."""
        self._restore()
        if status.state == STUCK and counts_as_stuck(status.reason_code):
            self.stuck_since = min(now, self.stuck_since or now)
        elif status.state not in (PLANNING, WAITING):
            self.stuck_since = None

    def update(self, present: Mapping[str, Check], status: BalancerStatus,
               active: bool) -> Dict[str, Check]:
        """The checks to be shown, by the conditions that hold in this round."""
        raised = self._restore()
        undecided = (active or status.progress is not None) and (
            status.view is None or REASONS[status.reason_code].kind == UNDECIDED)
        self._seen = {code: self._seen.get(code, 0) + 1 for code in present}
        for code, check in present.items():
            if code in raised or self._seen[code] >= _ROUNDS:
                raised[code] = check
            self._missed.pop(code, None)
        for code in raised.keys() - present.keys():
            if not undecided or code in _ALWAYS_KNOWN:
                self._missed[code] = self._missed.get(code, 0) + 1
            if self._missed.get(code, 0) >= _ROUNDS:
                del raised[code], self._missed[code]
        return dict(raised)

    def store(self) -> None:
        """Keeps for a successor which checks are raised; writes only where those are others."""
        raised = self._restore()
        known = ",".join(sorted(raised))
        if known == self._stored:
            return
        text = json.dumps({"version": 1, "raised": raised, "stuck_since": self.stuck_since})
        if len(text.encode()) <= MAX_VALUE_BYTES:
            self._kv.set_store(KEY, text if raised else None)
        self._stored = known

    def _restore(self) -> Dict[str, Check]:
        if self._raised is None:
            self._raised = {}
            try:
                dump: Any = json.loads(self._kv.get_store(KEY) or "{}")
                self._raised = {str(code): _check(check) for code, check in dump.get(
                    "raised", {}).items() if str(code).startswith(PREFIX)}
                since = dump.get("stuck_since")
                self.stuck_since = float(since) if since is not None else None
            except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
                self._log.warning("stored health checks cannot be read: %s", error)
            self._stored = ",".join(sorted(self._raised))
        return self._raised


def _check(dump: Any) -> Check:
    """A check that another mgr has stored. Raises for one that Ceph would not take."""
    return {"severity": "warning", "summary": str(dump["summary"]), "count": int(dump["count"]),
            "detail": [str(line) for line in list(dump["detail"])[:20]]}
