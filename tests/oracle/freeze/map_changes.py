"""Changes of a cluster's CRUSH map that remap PGs."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Callable, Dict, List

from ..maps.cluster_spec import ClusterSpec
from ..maps.topology import Bucket

Change = Callable[[ClusterSpec, random.Random], None]


def add_hosts(spec: ClusterSpec, rng: random.Random) -> None:
    for number in range(2):
        host = rng.choice(_parents_of_hosts(spec)).add(f"new{number}", "host")
        for _ in range(3):
            spec.topology.osd(host, 2.0, "hdd")


def change_device_classes(spec: ClusterSpec, rng: random.Random) -> None:
    classes = spec.topology.classes
    names = [name for name in classes if name] + ["other"]
    for osd in rng.sample(range(len(classes)), len(classes) // 6):
        if classes[osd]:
            classes[osd] = rng.choice(names)


def remove_a_host(spec: ClusterSpec, rng: random.Random) -> None:
    """From the tree: its OSDs are up and in."""
    _take_out(spec, rng.choice(_hosts(spec)))


def move_a_host(spec: ClusterSpec, rng: random.Random) -> None:
    host, parents = rng.choice(_hosts(spec)), _parents_of_hosts(spec)
    _take_out(spec, host)
    rng.choice(parents).children.append(host)


def move_osds(spec: ClusterSpec, rng: random.Random) -> None:
    hosts = _hosts(spec)
    for host in rng.sample(hosts, min(3, len(hosts))):
        if len(host.children) > 1:
            rng.choice(hosts).children.append(host.children.pop())


def exchange_rules(spec: ClusterSpec, rng: random.Random) -> None:
    """Each pool gets any rule of its type."""
    rejected = {pool.rule for pool in spec.pools if pool.rejected}
    irregular = {pool.rule for pool in spec.pools if pool.irregular}
    for number, pool in enumerate(spec.pools):
        rule = rng.choice([rule.name for rule in spec.topology.rules
                           if rule.erasure == bool(pool.k)])
        spec.pools[number] = replace(pool, rule=rule, rejected=rule in rejected,
                                     irregular=rule in irregular)


def change_weights(spec: ClusterSpec, rng: random.Random) -> None:
    weights = spec.topology.weights
    for osd in rng.sample(range(len(weights)), len(weights) // 4):
        if weights[osd]:
            spec.capacity.setdefault(osd, weights[osd])
            weights[osd] *= rng.choice((0.5, 2.0, 0.0))


def change_reweights(spec: ClusterSpec, rng: random.Random) -> None:
    count = len(spec.topology.weights)
    for osd in rng.sample(range(count), count // 4):
        spec.reweights[osd] = rng.choice((0.3, 0.7, 0.9))


CHANGES: Dict[str, Change] = {change.__name__: change for change in (
    add_hosts, change_device_classes, remove_a_host, move_a_host, move_osds, exchange_rules,
    change_weights, change_reweights)}


def _hosts(spec: ClusterSpec) -> List[Bucket]:
    return [bucket for bucket in spec.topology.buckets()
            if bucket.kind == "host" and bucket.children]


def _parents_of_hosts(spec: ClusterSpec) -> List[Bucket]:
    return [bucket for bucket in spec.topology.buckets()
            if any(isinstance(child, Bucket) and child.kind == "host"
                   for child in bucket.children)]


def _take_out(spec: ClusterSpec, host: Bucket) -> None:
    for bucket in spec.topology.buckets():
        bucket.children = [child for child in bucket.children if child is not host]
