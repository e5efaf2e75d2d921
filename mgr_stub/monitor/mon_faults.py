"""Injected faults between a mgr and the monitor, and the log of commands."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from ..errors import Answer


@dataclass
class MonFaults:
    """Faults of the monitor towards mgrs; commands of operators are not affected."""

    rng: random.Random
    #: Seconds between a command and its epoch.
    delay: float = 0.0
    #: Share of the commands that are rejected.
    reject_ratio: float = 0.0
    #: Share of the commands that are carried out but answered by an error, or never.
    lose_ratio: float = 0.0
    #: Share of the PGs whose upmap items are dropped although the answer is 0, as if the monitor's
    #: own check of a rule removed them; always the same PGs.
    drop_ratio: float = 0.0
    connected: bool = True

    def rejection(self) -> Optional[Answer]:
        """The error that answers the next command, or None if it is not rejected."""
        if self.reject_ratio <= 0 or self.rng.random() >= self.reject_ratio:
            return None
        code = self.rng.choice((errno.EINVAL, errno.EPERM))
        return -code, "", "refused by the simulation"

    def drops(self, pgid: str) -> bool:
        """True if upmap items that a mgr sends for a PG are dropped."""
        return self.drop_ratio > 0 and random.Random(f"drop/{pgid}").random() < self.drop_ratio

    def loses(self) -> bool:
        """True if the answer to the next command is lost."""
        return self.lose_ratio > 0 and self.rng.random() < self.lose_ratio

    def lost_answer(self) -> Optional[Answer]:
        """The error in place of a lost answer; None if no answer ever comes."""
        if self.rng.random() < 0.5:
            return None
        return -errno.ETIMEDOUT, "", "the answer was lost by the simulation"


@dataclass
class LoggedCommand:
    """A command that the monitor has been sent, and its result."""

    #: Monotonic virtual times at which it was sent and carried out.
    sent_at: float
    sender: str
    command: Dict[str, Any]
    done_at: Optional[float] = None
    #: None while it waits for its epoch.
    returncode: Optional[int] = None
    message: str = ""
    #: The epoch that it is part of.
    epoch: int = 0
    #: True if the map of that epoch had the upmap items as sent.
    kept: bool = True
    #: The answer that the sender got, if any; not always the result.
    answer: Optional[Answer] = field(default=None)

    @property
    def prefix(self) -> str:
        return str(self.command.get("prefix", ""))
