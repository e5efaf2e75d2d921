"""The shapes of `shapes.txt`, each a function that fills a spec."""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Dict

from .cluster_spec import ClusterSpec, Shape
from .topology import Bucket

_EC_TRIES = "set_chooseleaf_tries 5; set_choose_tries 100"
_NUMBERS = {"k": int, "share": float}


class _Maker:
    """Has a method for each kind of line."""

    def __init__(self, spec: ClusterSpec) -> None:
        self.spec = spec
        self.buckets: Dict[str, Bucket] = {}
        self.root("default")

    def root(self, name: str) -> None:
        self.buckets[name] = self.spec.root(name)

    def bucket(self, parent: str, kind: str, name: str, *osds: str) -> None:
        made = self.buckets[parent].add(name, kind)
        made.children.extend(map(int, osds))
        self.buckets[name] = made

    def osds(self, host: str, count: str, sizes: str, device_class: str = "hdd") -> None:
        choice = list(map(float, sizes.split(",")))
        for _ in range(int(count)):
            size = self.spec.rng.choice(choice) if len(choice) > 1 else choice[0]
            self.spec.osd(self.buckets[host], size, None if device_class == "-" else device_class)

    def hosts(self, parent: str, count: str, osds: str, sizes: str) -> None:
        for number in range(int(count)):
            name = f"{parent}-h{number}"
            self.bucket(parent, "host", name)
            self.osds(name, osds, sizes)

    def racks(self, parent: str, count: str, hosts: str, osds: str, sizes: str) -> None:
        for number in range(int(count)):
            name = f"{parent}-r{number}"
            self.bucket(parent, "rack", name)
            self.hosts(name, hosts, osds, sizes)


def _fill(lines: str, spec: ClusterSpec) -> None:
    maker = _Maker(spec)
    for line in lines.splitlines():
        words, _, rule = line.partition(": ")
        kind, *values = words.split()
        if kind == "pool":
            _pool(spec, rule.replace("TRIES", _EC_TRIES), *values)
        elif kind != "#":
            getattr(maker, kind)(*values)


def _pool(spec: ClusterSpec, rule: str, size: str, pg_num: str, *words: str) -> None:
    fields: Dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        fields[name] = _NUMBERS[name](value) if value else True
    spec.pool(rule, int(size), int(pg_num), **fields)


def _shapes() -> Dict[str, Shape]:
    found: Dict[str, Shape] = {}
    for text in Path(__file__).with_suffix(".txt").read_text().split("\n\n")[1:]:
        title, _, lines = text.partition("\n")
        found[title.split()[1]] = partial(_fill, lines)
    return found


SHAPES = _shapes()
