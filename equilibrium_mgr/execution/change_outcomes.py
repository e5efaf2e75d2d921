"""The fates of a change that is not sent: it is deferred, or it is dropped."""
from __future__ import annotations

from enum import Enum
from typing import Any, Mapping, NamedTuple

from ..plan.model import PgChange


class DeferralKind(Enum):
    """The kind of condition that a deferred change waits for."""

    NOT_ALLOWED = "not-allowed"   # a condition that somebody or something has to end
    TRANSIENT = "transient"       # a condition that most likely ends within seconds
    THROTTLE = "throttle"         # a limit that frees itself as moves arrive
    COOLDOWN = "cooldown"         # pg_cooldown, which ends by itself
    FULL_TARGET = "full-target"   # a target without free space, which other moves may relieve

    @property
    def is_throttle(self) -> bool:
        """True where the change waits for movement or time, and not for trouble to end."""
        return self in (DeferralKind.THROTTLE, DeferralKind.COOLDOWN, DeferralKind.FULL_TARGET)


class Deferral(NamedTuple):
    """The reason for which a change has to wait. `reason` is the sentence for people."""

    code: str                      # stable, for programs
    kind: DeferralKind
    option: str                    # of equilibrium or Ceph, which sets the limit; "" for none
    numbers: Mapping[str, Any]     # figures with their units, and names, that the sentence has
    sentence: str                  # a str.format template over `numbers`

    @property
    def reason(self) -> str:
        """The sentence with its figures."""
        return self.sentence.format(**self.numbers)


class DroppedChange(NamedTuple):
    """A change that is given up; some of its shards may move all the same."""

    change: PgChange
    reason: str
    moving_shards: int = 0
