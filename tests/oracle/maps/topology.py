"""CRUSH trees and rules of the test clusters, written as text for `crushtool -c`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from tests.support.clusters.crush_text import bucket_block, crush_text, rule_block

from ..ceph_tools import compile_crush, run_tool

TYPES = ("osd", "host", "rack", "zone", "datacenter", "root")  # index is the CRUSH type id


@dataclass
class Bucket:
    """A CRUSH bucket; children are buckets or OSD ids."""

    name: str
    kind: str
    children: List[Union[Bucket, int]] = field(default_factory=list)

    def add(self, name: str, kind: str) -> Bucket:
        """A new bucket below this one."""
        child = Bucket(name, kind)
        self.children.append(child)
        return child


@dataclass(frozen=True)
class Rule:
    """A CRUSH rule in the words of the text format, take to emit."""

    name: str
    steps: Tuple[str, ...]
    erasure: bool = False


@dataclass
class Topology:
    """A CRUSH map in the making. Weights are TiB, as Ceph sets them by default."""

    rng: random.Random
    roots: List[Bucket] = field(default_factory=list)
    weights: List[float] = field(default_factory=list)  # by OSD id
    classes: List[Optional[str]] = field(default_factory=list)
    rules: List[Rule] = field(default_factory=list)

    def root(self, name: str = "default") -> Bucket:
        """A new root."""
        bucket = Bucket(name, "root")
        self.roots.append(bucket)
        return bucket

    def osd(self, host: Bucket, weight: float, device_class: Optional[str] = "hdd") -> int:
        """A new OSD on a host; its id."""
        self.weights.append(weight)
        self.classes.append(device_class)
        host.children.append(len(self.weights) - 1)
        return len(self.weights) - 1

    def host(self, parent: Bucket, name: str, osds: int, sizes: Sequence[float],
             device_class: Optional[str] = "hdd") -> Bucket:
        """A host with OSDs of sizes drawn from `sizes`."""
        bucket = parent.add(name, "host")
        for _ in range(osds):
            self.osd(bucket, self.rng.choice(sizes), device_class)
        return bucket

    def buckets(self) -> Iterator[Bucket]:
        """All buckets, children before their parents."""
        for root in self.roots:
            yield from _children_first(root)

    def weight(self, item: Union[Bucket, int]) -> float:
        """CRUSH weight of an OSD or of all OSDs below a bucket."""
        if isinstance(item, int):
            return self.weights[item]
        return sum(self.weight(child) for child in item.children)

    def text(self) -> str:
        """The map in the text format of crushtool."""
        blocks = []
        for number, bucket in enumerate(self.buckets(), start=1):
            items = [(item_name(child), self.weight(child)) for child in bucket.children]
            blocks.append(bucket_block(f"{bucket.kind} {bucket.name}", [f"-{number}"], items))
        for number, rule in enumerate(self.rules):
            kind = "erasure" if rule.erasure else "replicated"
            blocks.append(rule_block(rule.name, number, kind, rule.steps))
        return crush_text(dict(enumerate(self.classes)), dict(enumerate(TYPES)), blocks)

    def rule_id(self, name: str) -> int:
        """The id under which a rule is compiled."""
        return [rule.name for rule in self.rules].index(name)


def item_name(item: Any) -> str:
    """Of a bucket or an OSD."""
    return f"osd.{item}" if isinstance(item, int) else str(item.name)


def _children_first(bucket: Bucket) -> Iterator[Bucket]:
    for child in bucket.children:
        if isinstance(child, Bucket):
            yield from _children_first(child)
    yield bucket


def with_weight_set(binary: Path, crush_dump: Dict[str, Any], rng: random.Random,
                    folder: Path) -> Path:
    """The compiled map with a default weight-set (choose_args -1), every weight off by up to 20 %.

    Shadow buckets get theirs too: their ids are known only after the first compilation.
    """
    blocks = []
    for bucket in crush_dump["buckets"]:
        weights = " ".join(f"{item['weight'] / 65536 * rng.uniform(0.8, 1.2):.3f}"
                           for item in bucket["items"])
        if weights:
            blocks.append(f" {{\n  bucket_id {bucket['id']}\n  weight_set [\n"
                          f"   [ {weights} ]\n  ]\n }}")
    text = run_tool("crushtool", "-d", binary)
    default = 2 ** 64 - 1  # -1 as the text format writes it
    lines = "\n".join(blocks)
    text += f"choose_args {default} {{\n{lines}\n}}\n"
    return compile_crush(text, folder)
