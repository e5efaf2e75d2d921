"""The states that `status` shows."""
from __future__ import annotations

OFF, WAITING, BLOCKED, THROTTLED = "off", "waiting", "blocked", "throttled"
PLANNING, MOVING, BALANCED, STUCK = "planning", "moving", "balanced", "stuck"
STATES = (OFF, WAITING, BLOCKED, THROTTLED, PLANNING, MOVING, BALANCED, STUCK)
