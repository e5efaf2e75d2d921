"""Places PGs by CRUSH weight: the probabilities of straw2, drawn from a seed and not from a hash.

Every candidate draws a straw of length ln(u) ÷ weight and the longest win, which is what straw2
buckets do; drawing among all buckets of a type at once is the same as going down the tree.
"""
from __future__ import annotations

import random
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

_Weighted = List[Tuple[int, float]]


class NotEnoughBuckets(ValueError):
    """The tree is too small for the rule."""


class Placer:
    """Draws raw mappings from a CRUSH dump; rules of take, choose, chooseleaf and emit."""

    def __init__(self, crush: Mapping[str, Any], rng: random.Random) -> None:
        self._rng = rng
        self._buckets = {bucket["id"]: bucket for bucket in crush["buckets"]}
        self._rules = {rule["rule_id"]: rule["steps"] for rule in crush["rules"]}
        self._candidates: Dict[Tuple[int, str], _Weighted] = {}

    def place(self, rule_id: int, size: int) -> List[int]:
        """OSD ids of one PG, position by position."""
        up: List[int] = []
        chosen: List[int] = []
        for step in self._rules[rule_id]:
            if step["op"] == "take":
                chosen = [step["item"]]
            elif step["op"] == "emit":
                up += chosen[:size - len(up)]
            else:
                chosen = self._choose(step, chosen, size, set(up))
        return up

    def draw(self, bucket: int, type_name: str, count: int, barred: Set[int]) -> List[int]:
        """`count` different items of a type below a bucket."""
        key = (bucket, type_name)
        if key not in self._candidates:
            self._candidates[key] = self._below(bucket, type_name)
        straws = sorted((self._rng.expovariate(weight), item)
                        for item, weight in self._candidates[key] if item not in barred)
        if len(straws) < count:
            raise NotEnoughBuckets(f"{count} of type {type_name} wanted, {len(straws)} there")
        return [item for _, item in straws[:count]]

    def _choose(self, step: Mapping[str, Any], parents: Sequence[int], size: int,
                barred: Set[int]) -> List[int]:
        count = step["num"] if step["num"] > 0 else size + step["num"]
        chosen = [item for parent in parents
                  for item in self.draw(parent, step["type"], count, barred)]
        if step["op"].startswith("chooseleaf"):
            chosen = [self.draw(bucket, "osd", 1, barred)[0] for bucket in chosen]
        return chosen

    def _below(self, bucket: int, type_name: str) -> _Weighted:
        found: _Weighted = []
        for item in self._buckets[bucket]["items"]:
            kind = "osd" if item["id"] >= 0 else self._buckets[item["id"]]["type_name"]
            if kind == type_name:
                if item["weight"] > 0:
                    found.append((item["id"], item["weight"] / 0x10000))
            elif item["id"] < 0:
                found += self._below(item["id"], type_name)
        return found
