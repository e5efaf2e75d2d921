"""The module's upmap commands as they are sent, and its moves until they have arrived."""
from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from mgr_stub.cluster.cluster import Cluster
from mgr_stub.cluster.pg import Pg
from mgr_stub.console.session import Session
from mgr_stub.crush.hashes import NONE
from mgr_stub.monitor.mon_store import LoggedCommand
from mgr_stub.monitor.monitor import MGR
from mgr_stub.osdmap.upmap import Items, Mapping

SET_ITEMS, REMOVE_ITEMS = "osd pg-upmap-items", "osd rm-pg-upmap-items"
Osds = Tuple[int, ...]


def is_upmap(entry: LoggedCommand) -> bool:
    return entry.prefix in (SET_ITEMS, REMOVE_ITEMS)


def is_ours(entry: LoggedCommand) -> bool:
    """Are these upmap items that the module has sent?"""
    return entry.sender == MGR and is_upmap(entry)


class UpmapLog:
    """The upmap commands in the monitor's log, whosever they are, from now on."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._read = len(session.command_log)

    def fresh(self) -> List[LoggedCommand]:
        """Those since the last question."""
        log, read = self._session.command_log, self._read
        self._read = len(log)
        return list(filter(is_upmap, log[read:]))

    def ours(self) -> List[LoggedCommand]:
        return list(filter(is_ours, self.fresh()))


class Outgoing(NamedTuple):
    """One upmap command at the moment of its sending; up sets as they are without the others."""

    entry: LoggedCommand
    pg: Pg
    items: Items        # none: the PG's items are removed
    had: Items
    raw: Mapping
    up_before: Mapping
    up_after: Mapping
    gains: Osds
    losses: Osds
    sent_at: float      # by the wall clock, as the module counts
    moves_nothing: bool = False   # all its data is there already, or goes where it went before
    #: shards that are copied anyway are to come to other OSDs, and nothing more is copied
    redirects: bool = False
    restores: bool = False   # an undo gives the PG items that it had, pairs without effect too

    @property
    def pgid(self) -> str:
        return self.pg.pgid


def outgoing(cluster: Cluster, entry: LoggedCommand, steers: bool) -> Optional[Outgoing]:
    """What the command would do now; None where its PG does not exist. `steers`: shards that are
    copied anyway may be sent elsewhere."""
    pg = cluster.pgs.get(str(entry.command.get("pgid", "")))
    if pg is None or pg.raw is None:
        return None
    numbers = [int(number) for number in entry.command.get("id", [])]
    items = tuple(zip(numbers[::2], numbers[1::2]))
    before, after = cluster.map.up.get(pg.pgid, ()), cluster.up_with_items(pg, items)
    gains, losses = changes(before, after, pg.erasure)
    moves_nothing = not gains or _goes_nowhere_else(pg.held, before, after, pg.erasure)
    if moves_nothing:
        gains, losses = (), ()
    redirects = steers and not moves_nothing and _copies_no_more(pg, before, after)
    if redirects:
        gains = tuple(osd for osd in gains if osd not in pg.held)
    return Outgoing(entry, pg, items, cluster.map.upmap_items.get(pg.pgid, ()), pg.raw, before,
                    after, gains, losses, cluster.clock(), moves_nothing, redirects)


def _copies_no_more(pg: Pg, before: Mapping, after: Mapping) -> bool:
    """True where as many shards are to be copied as before, or fewer."""
    now = changes(pg.held, before, pg.erasure)[0]
    then = changes(pg.held, after, pg.erasure)[0]
    return bool(now) and len(then) <= len(now)


def changes(before: Mapping, after: Mapping, positional: bool) -> Tuple[Osds, Osds]:
    """(OSDs that gain a shard, OSDs that lose one); places count in erasure-coded pools."""
    if not positional:
        return _without(after, before), _without(before, after)
    pairs = [(old, new) for old, new in zip(before, after) if old != new]
    return (tuple(new for _, new in pairs if new != NONE),
            tuple(old for old, _ in pairs if old != NONE))


def _without(osds: Mapping, others: Mapping) -> Osds:
    return tuple(osd for osd in osds if osd not in others and osd != NONE)


def _goes_nowhere_else(held: Mapping, before: Mapping, after: Mapping, positional: bool) -> bool:
    """True where each shard is wanted where it is, or where it is on its way to already; one may
    not be where more others stay for it."""
    if positional:
        new = [number for number in range(len(after))
               if after[number] not in (held[number], before[number])]
        moving = [sum(here != there for here, there in zip(held, wanted))
                  for wanted in (before, after)]
        is_one_less = len(new) == 1 and moving[1] < moving[0]
        return len(held) == len(after) and (is_one_less or not new)
    return set(after) <= set(held) | set(before)


class UnderWay:
    """pgid → our move of it: sent and not answered, or on its way."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.moves: Dict[str, Outgoing] = {}
        #: pool id → what its shards take more where they arrive, as a ratio, once an operator has
        #: been told that they do
        self.swelling: Dict[int, float] = {}

    def add(self, move: Outgoing) -> None:
        self.moves[move.pgid] = move

    def remove_finished(self) -> None:
        """Removes what has arrived, was refused, or has been changed by somebody else since."""
        self.moves = {pgid: move for pgid, move in self.moves.items() if self._goes_on(move)}

    def _goes_on(self, move: Outgoing) -> bool:
        if move.entry.returncode is None:
            return True
        if move.redirects:   # others have set it in motion
            return False
        return move.entry.returncode == 0 and bool(self.flowing(move))

    def flowing(self, move: Outgoing) -> Dict[int, float]:
        """Target → share of its shard that is still to come; empty before the command is done."""
        if self._cluster.pgs.get(move.pgid) is not move.pg:
            return {}
        return {target: transfer.missing for (_, target), transfer in move.pg.transfers.items()
                if target in move.gains}

    def bytes_at(self, osd: int, into: bool) -> int:
        """Bytes that our moves are still to bring to an OSD, or to take from it."""
        found = 0.0
        for move in self.moves.values():
            here = move.gains if into else move.losses
            if osd not in here:
                continue
            flowing = self.flowing(move)
            if move.entry.returncode is None and not flowing:
                part = 1.0   # it waits
            elif into:
                part = flowing.get(osd, 0.0)
            elif flowing and osd in self._cluster.map.up[move.pgid]:
                part = 0.0   # CRUSH has given it back to the PG
            else:
                part = max(flowing.values(), default=0.0)
            found += part * move.pg.shard.total
        return int(found)

    def copies(self) -> int:
        """Object copies that we have misplaced."""
        return sum(self._copies(move) for move in self.moves.values())

    def _copies(self, move: Outgoing) -> int:
        flowing = self.flowing(move)
        if not flowing and move.entry.returncode is None:
            return move.pg.num_objects * len(move.gains)
        return sum(int(round(move.pg.num_objects * share)) for share in flowing.values())

    def is_alone(self, pg: Pg) -> bool:
        """Is all that is copied of the PG our doing?"""
        move = self.moves.get(pg.pgid)
        return move is not None and all(target in move.gains for _, target in pg.transfers)


def circles(raw: Sequence[int], up: Sequence[int]) -> int:
    """Circles in which shards exchange their OSDs: of each, one goes by way of another OSD."""
    goes = {old: new for old, new in zip(raw, up) if old != new}
    found = 0
    while goes:
        first, last = goes.popitem()
        while last in goes:
            last = goes.pop(last)
        found += last == first
    return found
