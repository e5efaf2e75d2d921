"""Random CRUSH maps, as odd as `crushtool -c` takes them, and random pools and reweights on them.

Wider than the shapes for plans: here only the mapping counts, not whether it can be balanced.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from tests.support.clusters.crush_text import TUNABLES, bucket_block, crush_text, rule_block

from .cluster import CrushPool
from .topology import item_name

FULL = 0x10000
NO_KEY = 2 ** 64 - 1  # choose_args -1 as the text format writes it
_TYPES = {0: "osd", 1: "host", 2: "rack", 3: "row", 10: "root"}
_CLASSES = ("hdd", "ssd", "nvme")


@dataclass
class Node:
    """A bucket of the map; `items` are OSD ids and other buckets, with their weights."""

    name: str
    kind: str
    number: int
    items: List[Tuple[object, float]] = field(default_factory=list)
    shadows: Dict[str, int] = field(default_factory=dict)  # class -> bucket id

    def weight(self) -> float:
        return sum(weight for _, weight in self.items)


class RandomMap:
    """One random map; the same seed gives the same map.

    `as_grown`: like a map that commands have made: shadow ids in the order in which Ceph gives
    them, and choose_args, if any, are the balancer's one set of weights.
    """

    def __init__(self, seed: str, as_grown: bool = False) -> None:
        self._as_grown = as_grown
        self.rng = random.Random(seed)
        self.nodes: List[Node] = []  # children first
        self.classes: Dict[int, Optional[str]] = {}
        self.rules: List[Tuple[int, List[str]]] = []  # (type, steps)
        self.choose_args: Dict[int, List[str]] = {}
        self.tunables = _tunables(self.rng)
        self._numbers = iter(self.rng.sample(range(1, 1500), 1499))
        self._make_tree()
        self._make_rules()
        self.pools = [self._pool(index) for index in range(len(self.rules))]
        if self.rng.random() < 0.4:
            self._make_choose_args()

    @property
    def max_osd(self) -> int:
        return max(self.classes) + 1

    def reweights(self) -> List[int]:
        """16.16 reweights by OSD id: most OSDs in, some partly, some out."""
        share = self.rng.choice((0.0, 0.2, 0.6))
        found = [FULL] * self.max_osd
        for osd in range(self.max_osd):
            if self.rng.random() < share:
                partly = self.rng.randrange(FULL), self.rng.randrange(FULL)
                found[osd] = self.rng.choice((0, 0, *partly))
        return found

    def text(self) -> str:
        """The map in the text format of crushtool."""
        blocks = []
        for node in self.nodes:
            ids = [f"-{node.number}"]
            ids += [f"-{number} class {name}" for name, number in node.shadows.items()]
            items = [(item_name(item), weight) for item, weight in node.items]
            blocks.append(bucket_block(f"{node.kind} {node.name}", ids, items))
        for number, (kind, steps) in enumerate(self.rules):
            type_name = "replicated" if kind == 1 else "erasure"
            blocks.append(rule_block(f"rule{number}", number, type_name, steps))
        for key, entries in self.choose_args.items():
            blocks.append((f"choose_args {key}", entries))
        return crush_text(self.classes, _TYPES, blocks, self.tunables)

    def gives_buckets(self, rule: int) -> bool:
        """Whether a rule ends with buckets, which no OSDs are and crushtool's test dies of."""
        return self.rules[rule][1][-2] == "choose firstn 0 type host"

    def _make_tree(self) -> None:
        rng = self.rng
        ids = iter(range(900) if rng.random() < 0.5 else sorted(rng.sample(range(900), 600)))
        used = rng.sample(_CLASSES, rng.randint(1, 3))
        sizes = rng.choice(((1.0,), (1.0, 2.0, 4.0), (0.5, 7.27, 14.55, 18.19)))
        for root_number in range(rng.choice((1, 1, 2))):
            levels = rng.choice((("host",), ("rack", "host"), ("row", "rack", "host"), ()))
            root = self._subtree(f"root{root_number}", "root", levels, ids, used, sizes)
            if levels[:1] == ("rack",) and rng.random() < 0.3:
                lone = self._subtree(f"root{root_number}-lone", "host", (), ids, used, sizes)
                root.items.insert(rng.randrange(len(root.items) + 1), (lone, lone.weight()))
            self.nodes.remove(root)
            self.nodes.append(root)
        if self._as_grown:  # OSDs that have booted once and are in no bucket
            self.classes.update((next(ids), rng.choice(used)) for _ in range(6))
        present = sorted({name for name in self.classes.values() if name})
        for node in self.nodes if not self._as_grown else ():
            node.shadows = {name: next(self._numbers) for name in present}

    def _subtree(self, name: str, kind: str, levels: Sequence[str], ids: Iterator[int],
                 used: Sequence[str], sizes: Sequence[float]) -> Node:
        rng, node = self.rng, Node(name, kind, next(self._numbers))
        if levels:
            for number in range(rng.randint(1, 5 if len(levels) > 1 else 7)):
                child = self._subtree(f"{name}-{levels[0]}{number}", levels[0],
                                      levels[1:], ids, used, sizes)
                odd = rng.random() < 0.1  # weights need not be the sum of those below
                node.items.append((child, rng.uniform(0, 50) if odd else child.weight()))
        else:
            for _ in range(rng.choice((0, 1, 2, 3, 4, 5, 6)) if kind == "host" else 9):
                osd = next(ids)
                self.classes[osd] = rng.choice((*used, *used, None))
                weight = rng.choice(sizes) if rng.random() < 0.9 else rng.choice(
                    (0.0, rng.uniform(0, 20)))
                node.items.append((osd, weight))
        if not self.classes:
            self.classes[0] = "hdd"
            next(ids)
        self.nodes.append(node)
        return node

    def _take(self, root: Node, device_class: Optional[str] = None) -> str:
        classes = sorted({name for name in self.classes.values() if name})
        if device_class is None and classes and self.rng.random() < 0.4:
            device_class = self.rng.choice(classes)
        return f"take {root.name}{' class ' + device_class if device_class else ''}"

    def _make_rules(self) -> None:
        rng = self.rng
        roots = [node for node in self.nodes if node.kind == "root"]
        for kind, text in rng.sample(_RULES, 5):
            steps: List[str] = []
            for words in text.split("; "):
                if words == "take":
                    words = self._take(rng.choice(roots))
                elif words == "take-any":
                    words = self._take(rng.choice(self.nodes))
                elif words == "take-osd":
                    words = f"take osd.{rng.choice(sorted(self.classes))}"
                steps.append(words)
            if rng.random() < 0.5:
                steps[:0] = rng.sample(_SETTINGS, rng.randint(1, 3))
            self.rules.append((kind, steps))

    def _pool(self, rule: int) -> CrushPool:
        rng, kind = self.rng, self.rules[rule][0]
        pg_num = rng.choice((16, 32, 64, rng.randint(1, 90)))
        pgp_num = rng.randint(1, pg_num) if rng.random() < 0.3 else pg_num
        return CrushPool(rule, kind, rng.randint(1, 5) if kind == 1 else rng.randint(3, 10),
                         pg_num, pgp_num, rng.random() < 0.8)

    def _make_choose_args(self) -> None:
        if self._as_grown:
            self.choose_args[NO_KEY] = [self._arguments(node, 1) for node in self.nodes
                                        if node.items]
            return
        for key in self.rng.choice(((NO_KEY,), (NO_KEY, 2), (1, 3), (NO_KEY, 1, 4))):
            positions = self.rng.randint(1, 3)
            self.choose_args[key] = [self._arguments(node, positions) for node in self.nodes
                                     if node.items and self.rng.random() < 0.8]

    def _weights(self, node: Node) -> str:
        found = []
        for _, weight in node.items:
            factor = 0.0
            if self.rng.random() < 0.95:
                factor = self.rng.uniform(0.5, 1.5)
            found.append(f"{weight * factor:.5f}")
        return f"[ {' '.join(found)} ]"

    def _arguments(self, node: Node, positions: int) -> str:
        rng = self.rng
        weight_set = " ".join(self._weights(node) for _ in range(positions))
        text = f"{{ bucket_id -{node.number} weight_set [ {weight_set} ]"
        if rng.random() < 0.3 and not self._as_grown:
            text += f" ids [ {' '.join(str(rng.randint(-500, 500)) for _ in node.items)} ]"
        return text + " }"


def _tunables(rng: random.Random) -> Dict[str, int]:
    tunables = dict(TUNABLES)
    if rng.random() < 0.4:
        tunables.update(choose_total_tries=rng.choice((0, 1, 5, 19, 50, 100)),
                        chooseleaf_descend_once=rng.randint(0, 1),
                        chooseleaf_vary_r=rng.randint(0, 4), chooseleaf_stable=rng.randint(0, 1))
    return tunables


_SETTINGS = ("set_choose_tries 100", "set_choose_tries 3", "set_chooseleaf_tries 5",
             "set_chooseleaf_tries 1", "set_chooseleaf_vary_r 0", "set_chooseleaf_vary_r 2",
             "set_chooseleaf_stable 0", "set_chooseleaf_stable 1", "set_choose_local_tries 0",
             "set_choose_local_fallback_tries 0")

_REPLICATED = (
    "take; chooseleaf firstn 0 type host; emit",
    "take; chooseleaf firstn 0 type host; emit",
    "take; chooseleaf firstn 0 type rack; emit",
    "take; choose firstn 0 type rack; chooseleaf firstn 1 type host; emit",
    "take; choose firstn 2 type rack; chooseleaf firstn 2 type host; emit",
    "take; choose firstn 0 type host; choose firstn 2 type osd; emit",
    "take; choose firstn 0 type osd; emit",
    "take-any; chooseleaf firstn 0 type osd; emit",
    "take; chooseleaf firstn 1 type host; emit; take; chooseleaf firstn -1 type host; emit",
    "take; chooseleaf firstn 2 type rack; emit; take; choose firstn -2 type osd; emit",
    "take; choose firstn 0 type host; emit",
    "take; chooseleaf indep 0 type host; emit",
    "take-osd; emit; take; chooseleaf firstn -1 type host; emit",
    "take; choose firstn 2 type row; choose firstn 2 type rack; chooseleaf firstn 1 type host;"
    " emit",
)

_ERASURE = (
    "take; chooseleaf indep 0 type host; emit",
    "take; chooseleaf indep 0 type host; emit",
    "take; chooseleaf indep 0 type rack; emit",
    "take; choose indep 0 type osd; emit",
    "take-any; chooseleaf indep 0 type osd; emit",
    "take; choose indep 3 type rack; chooseleaf indep 2 type host; emit",
    "take; choose indep 2 type rack; choose indep 2 type host; choose indep 2 type osd; emit",
    "take; choose indep 4 type host; choose indep 2 type osd; emit",
    "take; choose firstn 3 type rack; chooseleaf indep 3 type host; emit",
    "take; chooseleaf indep 2 type host; emit; take; chooseleaf indep -2 type host; emit",
    "take; choose indep 0 type rack; chooseleaf firstn 1 type host; emit",
)

#: (type, steps)
_RULES = [(1, text) for text in _REPLICATED] + [(3, text) for text in _ERASURE]
