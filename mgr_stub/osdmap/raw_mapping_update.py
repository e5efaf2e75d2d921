"""Update of a PG's raw mapping when the result of CRUSH changes with the map.

A raw mapping that was CRUSH's result before the change is CRUSH's result after it. Any other one
(made clusters, mappings of an older map) changes only as far as CRUSH's result has changed. OSDs
that are new in it are added, if possible in the place of an OSD that has left it. OSDs that may not
serve any more are removed. If that is not possible within the rule, CRUSH's whole result is taken.
"""

from __future__ import annotations

from typing import Callable, List, Sequence

from ..crush.hashes import NONE
from .upmap import Mapping


def follow(raw: Mapping, before: Mapping, after: Mapping, may_serve: Callable[[int], bool],
           legal: Callable[[Sequence[int]], bool]) -> Mapping:
    """Returns the raw mapping after a change in which CRUSH's result went from `before` to `after`.

    `may_serve(osd)` is true if the rule can still choose the OSD, `legal(osds)` if it allows a set.
    """
    if raw == before or len(raw) != len(after):
        return after
    now = list(raw)
    fresh = [osd for osd in after if osd != NONE and osd not in before]
    for osd in fresh:
        if osd not in now:
            _put(now, osd, _places(now, after, before, osd, may_serve), fresh, legal)
    for place, osd in enumerate(raw):
        if now[place] == osd and not may_serve(osd):
            spares = [spare for spare in after if spare not in now and may_serve(spare)]
            if not any(_put(now, spare, [place], [], legal) for spare in spares):
                return after
    return tuple(now)


def _places(now: List[int], after: Mapping, before: Mapping, osd: int,
            may_serve: Callable[[int], bool]) -> List[int]:
    """Returns all places, the best one for a new OSD first."""
    def rank(place: int) -> int:
        if not may_serve(now[place]):
            return 0
        if now[place] in before and now[place] not in after:
            return 1
        return 2 if after.index(osd) == place else 3
    return sorted(range(len(now)), key=rank)


def _put(now: List[int], osd: int, places: List[int], kept: List[int],
         legal: Callable[[Sequence[int]], bool]) -> bool:
    """Puts the OSD at the first allowed place that is not `kept`; False if there is none."""
    for place in places:
        trial = now[:place] + [osd] + now[place + 1:]
        if now[place] not in kept and legal(trial):
            now[place] = osd
            return True
    return False
