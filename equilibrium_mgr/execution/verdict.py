"""The one value that says why: of a state of the loop, and of a change that has to wait."""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..plan.model import PgChange
from ..planner.refusal_census import Census
from ..runtime.formatting import plural
from ..snapshot import reason_codes as codes
from ..snapshot.reason_codes import FULL, LIMIT, REASONS


class Refusals(NamedTuple):
    """Why nothing lowers the fullest OSD, as counted when the loop came to rest."""

    code: str           # the one reason
    rest_code: str      # that of the state before it was counted
    osd: int
    census: Census      # of all shards on it
    excluded_seconds: float   # until PGs that were left alone for a time may be moved

    def sentence(self) -> str:
        """The counts of the reason, for people; empty where nothing refuses the moves, or the
        state's own sentence tells."""
        found, census = self.census.of(self.code), self.census
        if found is None or self.code in (codes.MIN_GAIN, codes.IMMOVABLE):
            return ""
        where = (f"{found.pairs} of the {census.pairs} targets for the"
                 f" {plural(census.counted, 'shard')} on osd.{self.osd}")
        if self.code == codes.GRANULARITY:
            return f"whole shards are larger than the difference to {where}"
        return f"{where} {REASONS[self.code].clause or 'may not be taken for now'}"


class Verdict(NamedTuple):
    """Why something is as it is."""

    code: str                        # of snapshot/reason_codes.py
    text: str = ""                   # one sentence; empty where the code's own says it
    numbers: Mapping[str, Any] = {}  # figures with their units, and names, for sentence and action
    state: str = ""                  # of observation/cluster_view.py; empty for what is no state
    seconds: Optional[float] = None  # until there will be more to say, where that is known
    #: Of a state: what single changes wait for, by the decision that led to it.
    waiting: Sequence[WaitingChange] = ()
    refusals: Optional[Refusals] = None   # of a state at rest, where they were counted

    @property
    def reason(self) -> str:
        """The sentence with its figures."""
        return self.text or REASONS[self.code].sentence.format(**self.numbers)

    @property
    def option(self) -> str:
        """Of equilibrium or Ceph, which sets the limit; empty for none."""
        return self.numbers.get("option") or REASONS[self.code].option

    @property
    def is_throttle(self) -> bool:
        """True where a change waits for movement or time, and not for trouble to end."""
        return REASONS[self.code].kind in (LIMIT, FULL)


WaitingChange = Tuple[PgChange, Verdict]
