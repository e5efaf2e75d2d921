"""The choose steps of CRUSH: several distinct items of a type from below one bucket.

Both modes descend the tree with a trial number r, which differs by position and by retry, and
retry if the item is already chosen or out. `firstn` fills position after position and leaves out
those that it cannot fill; `indep` keeps the positions and leaves holes.
"""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

from .constants import NONE, WEIGHT_ONE
from .hashes import hash2
from .steps import Tries
from .tree import Bucket, Tree

#: A position of indep that is still to be filled.
_UNDEFINED = 0x7FFFFFFE


class Chooser:
    """Chooses for one CRUSH input x.

    `reweight` gives the 16.16 reweight of an OSD, 0 for those that are out or do not exist.
    """

    def __init__(self, tree: Tree, x: int, reweight: Callable[[int], int], tries: Tries) -> None:
        self._tree = tree
        self._x = x
        self._reweight = reweight
        self.tries = tries

    def firstn(self, bucket: Bucket, count: int, limit: int, type_id: int,
               to_leaf: bool) -> List[int]:
        """Up to `limit` items for `count` positions; with `to_leaf` an OSD below each instead."""
        chosen: List[int] = []
        leaves: List[int] = []
        for position in range(count):
            if len(chosen) >= limit:
                break
            found = self._one_of_firstn(bucket, position, type_id, to_leaf, chosen, leaves)
            if found is not None:
                chosen.append(found[0])
                leaves.append(found[1])
        return leaves if to_leaf else chosen

    def _one_of_firstn(self, bucket: Bucket, position: int, type_id: int, to_leaf: bool,
                       chosen: List[int], leaves: List[int]) -> Optional[Tuple[int, int]]:
        """An item and its OSD (or the item again); None if all tries fail."""
        for trial in range(position, position + self.tries.choose):
            item = self._descend(bucket, trial, type_id, len(chosen))
            if item == NONE:
                return None
            if item is None or item in chosen:
                continue
            leaf: Optional[int] = item
            if to_leaf and item < 0:
                leaf = self._leaf_of_firstn(self._tree.buckets[item], trial, leaves)
            if leaf is not None and not (type_id == 0 and self._is_out(item)):
                return item, leaf
        return None

    def _leaf_of_firstn(self, bucket: Bucket, trial: int, leaves: List[int]) -> Optional[int]:
        tries = self.tries
        attempts = tries.leaf or (1 if tries.descend_once else tries.choose)
        first = trial >> (tries.vary_r - 1) if tries.vary_r else 0
        if not tries.stable:
            first += len(leaves)
        for r in range(first, first + attempts):
            osd = self._descend(bucket, r, 0, len(leaves))
            if osd == NONE:
                return None
            if osd is not None and osd not in leaves and not self._is_out(osd):
                return osd
        return None

    def indep(self, bucket: Bucket, count: int, places: int, type_id: int,
              to_leaf: bool) -> List[int]:
        """`places` of `count` positions, NONE where a position stays empty."""
        chosen = [_UNDEFINED] * places
        # a leaf that is out stays here when the tries are used up: Ceph returns it
        leaves = [_UNDEFINED] * places
        for attempt in range(self.tries.choose):
            if _UNDEFINED not in chosen:
                break
            for position in range(places):
                if chosen[position] == _UNDEFINED:
                    self._try_position(bucket, position, position + count * attempt, count,
                                       type_id, to_leaf, chosen, leaves)
        return [NONE if item == _UNDEFINED else item for item in (leaves if to_leaf else chosen)]

    def _try_position(self, bucket: Bucket, position: int, trial: int, count: int, type_id: int,
                      to_leaf: bool, chosen: List[int], leaves: List[int]) -> None:
        """One attempt to fill a position of indep; puts the result into the two lists."""
        item = self._descend(bucket, trial, type_id, 0)
        if item == NONE:
            chosen[position] = leaves[position] = NONE
        elif item is not None and item not in chosen:
            if to_leaf:
                leaves[position] = item if item >= 0 else self._leaf_of_indep(
                    self._tree.buckets[item], position, trial, count)
                if leaves[position] == NONE:
                    return
            if not (type_id == 0 and self._is_out(item)):
                chosen[position] = item

    def _leaf_of_indep(self, bucket: Bucket, position: int, trial: int, count: int) -> int:
        for attempt in range(self.tries.leaf or 1):
            osd = self._descend(bucket, position + trial + count * attempt, 0, position)
            if osd == NONE:
                return NONE
            if osd is not None and not self._is_out(osd):
                return osd
        return NONE

    def _descend(self, bucket: Bucket, r: int, type_id: int, position: int) -> Optional[int]:
        """The item of the type that r leads to; None at an empty bucket, NONE at a dead end."""
        buckets, x = self._tree.buckets, self._x
        while bucket.straws:
            item = bucket.draw(x, r, position)
            if item >= 0:
                return item if type_id == 0 else NONE
            bucket = buckets[item]
            if bucket.type_id == type_id:
                return item
        return None

    def _is_out(self, osd: int) -> bool:
        return is_out(self._x, osd, self._reweight(osd))


def is_out(x: int, osd: int, reweight: int) -> bool:
    """True if its reweight (16.16) excludes an OSD for an input x."""
    if reweight >= WEIGHT_ONE:
        return False
    return reweight <= 0 or hash2(x, osd) & 0xFFFF >= reweight
