"""Random events, chosen by a seed and by where PGs lie now, so that most upmaps are legal."""

from __future__ import annotations

import random
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import cluster_shape as shape

MOST_DOWN, MOST_OUT, MOST_POOLS = 2, 2, 2
FLAGS = ("norebalance", "nobackfill", "norecover", "noout")
WEIGHTS = {"upmap": 5, "bad_upmap": 3, "remove_upmap": 1, "out": 2, "in": 3, "down": 3, "up": 4,
           "reweight": 2, "crush_reweight": 2, "add_osd": 2, "create_pool": 3, "remove_pool": 2,
           "pg_num": 4, "affinity": 2, "set_flag": 3, "unset_flag": 3, "fail_mgr": 1}
"""How often each kind is tried; those that end something are tried more often."""


class Event(NamedTuple):
    """Something that an operator does or that breaks, with its values."""

    kind: str
    values: Tuple[Any, ...] = ()

    def __str__(self) -> str:
        return " ".join([self.kind, *(str(value) for value in self.values)])


class Stream:
    """Chooses one event after the other; knows what is down, out and set by the earlier ones."""

    def __init__(self, seed: int, spares: Sequence[int]) -> None:
        self._rng = random.Random(seed)
        self._spares = list(spares)
        self._made = 0
        self._flags: Set[str] = set()
        self._pools: List[str] = []

    def next(self, view: Dict[str, Any]) -> Event:
        """The next event for a cluster as `view` has it."""
        while True:
            kind = self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            chooser: Callable[[Dict[str, Any]], Optional[Event]] = getattr(self, f"_{kind}")
            event = chooser(view)
            if event is not None:
                return event

    def last(self, view: Dict[str, Any]) -> List[Event]:
        """What ends all that still stands, so that the cluster can become clean."""
        ends: Dict[str, Sequence[Any]] = {
            "up": _osds(view, up=0), "in": _out_of(view), "unset_flag": sorted(self._flags)}
        return [Event(kind, (value,)) for kind, values in ends.items() for value in values]

    # -- OSDs ------------------------------------------------------------------------------------

    def _out(self, view: Dict[str, Any]) -> Optional[Event]:
        out = _out_of(view)
        if len(out) >= MOST_OUT:
            return None
        return self._one_of("out", [osd for osd in _osds(view, up=1) if osd not in out])

    def _in(self, view: Dict[str, Any]) -> Optional[Event]:
        return self._one_of("in", _out_of(view))

    def _down(self, view: Dict[str, Any]) -> Optional[Event]:
        if len(_osds(view, up=0)) >= MOST_DOWN:
            return None
        return self._one_of("down", _osds(view, up=1))

    def _up(self, view: Dict[str, Any]) -> Optional[Event]:
        return self._one_of("up", _osds(view, up=0))

    def _one_of(self, kind: str, values: Sequence[Any]) -> Optional[Event]:
        return Event(kind, (self._rng.choice(values),)) if values else None

    def _reweight(self, view: Dict[str, Any]) -> Optional[Event]:
        osd = self._rng.choice(_osds(view, up=1))
        if osd in _out_of(view):
            return None
        weight = self._rng.choice((0.25, 0.5, 0.75, 1.0, 1.0))
        if weight == view["osds"][str(osd)]["weight"]:
            return None
        return Event("reweight", (osd, weight))

    def _crush_reweight(self, view: Dict[str, Any]) -> Event:
        osd = self._rng.choice(self._present(_osds(view)))
        return Event("crush_reweight", (osd, self._rng.choice((0.5, 1.0, 2.0, 3.0))))

    def _present(self, osds: List[int]) -> List[int]:
        """Those that are in the CRUSH map."""
        return [osd for osd in osds if osd not in self._spares]

    def _add_osd(self, _view: Dict[str, Any]) -> Optional[Event]:
        if not self._spares:
            return None
        return Event("add_osd", (self._spares.pop(0), "h9", self._rng.choice((1.0, 2.0))))

    def _affinity(self, view: Dict[str, Any]) -> Event:
        osd = self._rng.choice(_osds(view))
        return Event("affinity", (osd, self._rng.choice((0.0, 0.0, 0.5, 1.0))))

    # -- pools -----------------------------------------------------------------------------------

    def _create_pool(self, _view: Dict[str, Any]) -> Optional[Event]:
        if len(self._pools) >= MOST_POOLS:
            return None
        self._made += 1
        name = f"new{self._made}"
        self._pools.append(name)
        pgs = self._rng.choice((4, 6, 8))
        return Event("create_pool", (name, pgs, self._rng.choice(("replicated", "erasure"))))

    def _remove_pool(self, view: Dict[str, Any]) -> Optional[Event]:
        there = [name for name in self._pools if name in view["pools"]]
        if not there:
            return None
        self._pools.remove(there[0])
        return Event("remove_pool", (there[0],))

    def _pg_num(self, view: Dict[str, Any]) -> Optional[Event]:
        still = []
        for name in sorted({*shape.RESIZED, *self._pools} & {*view["pools"]}):
            pool = view["pools"][name]
            if pool["pg_num"] == pool["pg_num_target"] == pool["pg_placement_num"]:
                still.append(name)
        if not still:
            return None
        name = self._rng.choice(still)
        change = self._rng.choice((-2, -1, 2, 4))
        return Event("pg_num", (name, max(3, view["pools"][name]["pg_num"] + change)))

    # -- upmaps ----------------------------------------------------------------------------------

    def _upmap(self, view: Dict[str, Any]) -> Optional[Event]:
        """One or two pairs to OSDs of hosts that the PG is not on; now and then on its own."""
        pgid, up = self._some_pg(view)
        hosts = [shape.host_of(osd) for osd in up]
        present = self._present(_osds(view, up=1))
        free = [osd for osd in present if shape.host_of(osd) not in hosts]
        self._rng.shuffle(free)
        pairs: List[int] = []
        for source in self._rng.sample(up, min(len(up), self._rng.choice((1, 1, 1, 2)))):
            own = [osd for osd in _of_host(source, present) if osd not in up]
            if own and self._rng.random() < 0.3:
                target = own[0]
            elif free:
                target = free[0]
            else:
                return None
            taken = _of_host(target, free)
            free = [osd for osd in free if osd not in taken]
            pairs += [source, target]
        return Event("upmap", (pgid, *pairs))

    def _bad_upmap(self, view: Dict[str, Any]) -> Event:
        """Pairs as other tools and people write them: any OSDs at all."""
        pgid, _ = self._some_pg(view)
        pairs = [self._rng.choice(_osds(view)) for _ in range(self._rng.choice((2, 2, 4)))]
        return Event("upmap", (pgid, *pairs))

    def _remove_upmap(self, view: Dict[str, Any]) -> Optional[Event]:
        return self._one_of("remove_upmap", sorted(view["upmap_items"]))

    def _some_pg(self, view: Dict[str, Any]) -> Tuple[str, List[int]]:
        pgid = self._rng.choice(sorted(view["pgs"]))
        up = [osd for osd in view["pgs"][pgid]["up"] if osd != shape.NONE]
        return pgid, up

    # -- the rest --------------------------------------------------------------------------------

    def _set_flag(self, _view: Dict[str, Any]) -> Optional[Event]:
        if self._flags:
            return None
        flag = self._rng.choice(FLAGS)
        self._flags.add(flag)
        return Event("set_flag", (flag,))

    def _unset_flag(self, _view: Dict[str, Any]) -> Optional[Event]:
        return Event("unset_flag", (self._flags.pop(),)) if self._flags else None

    def _fail_mgr(self, _view: Dict[str, Any]) -> Event:
        return Event("fail_mgr")


def _osds(view: Dict[str, Any], **wanted: int) -> List[int]:
    """The OSDs, or those of which an entry of theirs is as wanted."""
    found = view["osds"].items()
    for name, value in wanted.items():
        found = [(osd, entry) for osd, entry in found if entry[name] == value]
    return sorted(int(osd) for osd, _ in found)


def _out_of(view: Dict[str, Any]) -> List[int]:
    """The OSDs that are out."""
    return _osds(view, weight=0)


def _of_host(osd: int, others: List[int]) -> List[int]:
    """Those on the same host."""
    return [other for other in others if shape.host_of(other) == shape.host_of(osd)]
