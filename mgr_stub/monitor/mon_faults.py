"""What goes wrong between a mgr and the monitor, on command."""

from __future__ import annotations

import errno
import random
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple

Answer = Tuple[int, str, str]


@dataclass
class MonFaults:
    """How the monitor misbehaves towards mgrs; commands of operators are not touched."""

    rng: random.Random
    #: Seconds between a command and its epoch.
    delay: float = 0.0
    #: Share of the commands that are refused.
    reject_ratio: float = 0.0
    #: Share of the commands that are done but whose answer is an error, or never comes.
    lose_ratio: float = 0.0
    #: Share of the PGs whose upmap items are dropped though the answer is 0, as where the monitor's
    #: own check of a rule says no; always the same PGs.
    drop_ratio: float = 0.0
    connected: bool = True

    def refusal(self) -> Optional[Answer]:
        """The answer of a monitor that refuses the next command, or None."""
        if self.reject_ratio <= 0 or self.rng.random() >= self.reject_ratio:
            return None
        code = self.rng.choice((errno.EINVAL, errno.EPERM))
        return -code, "", "refused by the simulation"

    def drops(self, pgid: str) -> bool:
        """Whether upmap items that a mgr sends for a PG do not stay in the map."""
        return self.drop_ratio > 0 and random.Random(f"drop/{pgid}").random() < self.drop_ratio

    def loses(self) -> bool:
        """Whether the answer to the next command is lost."""
        return self.lose_ratio > 0 and self.rng.random() < self.lose_ratio

    def lost_answer(self) -> Optional[Answer]:
        """What comes instead of a lost answer; None if nothing ever comes."""
        if self.rng.random() < 0.5:
            return None
        return -errno.ETIMEDOUT, "", "the answer was lost by the simulation"


@dataclass
class LoggedCommand:
    """A command that the monitor has been sent, and what became of it."""

    #: Virtual time (of the clock that never jumps) at which it was sent, and was done.
    sent_at: float
    sender: str
    command: Dict[str, Any]
    done_at: Optional[float] = None
    #: None while it waits for its epoch.
    returncode: Optional[int] = None
    message: str = ""
    #: The epoch that had it.
    epoch: int = 0
    #: Whether the map of that epoch had the upmap items as they were sent.
    kept: bool = True
    #: What the sender was told, if anything; not always what is true.
    answer: Optional[Answer] = field(default=None)

    @property
    def prefix(self) -> str:
        return str(self.command.get("prefix", ""))
