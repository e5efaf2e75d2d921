"""Shapes of clusters and rules that few people have, and those that the monitor gets wrong."""

from __future__ import annotations

from .cluster_spec import ClusterSpec
from .shapes import ALIKE, EC_TRIES, UNEQUAL, hosts, racks


def short_rack(spec: ClusterSpec) -> None:
    """A rack with one host where the rule asks for two: CRUSH takes a third rack or stays short."""
    root = spec.topology.root()
    racks(spec, root, 3, 3, 3)
    spec.topology.host(root.add("small", "rack"), "small-h0", 3, ALIKE)
    spec.pool(spec.rule("take default", "choose firstn 0 type rack",
                        "chooseleaf firstn 2 type host"), 4, 64, irregular=True)
    spec.pool(spec.rule(*EC_TRIES, "take default", "choose indep 2 type rack",
                        "chooseleaf indep 2 type host", erasure=True), 4, 32, k=2)


def fixed_osd(spec: ClusterSpec) -> None:
    """A take on a single OSD: the monitor does not count its position and cancels every item."""
    hosts(spec, spec.topology.root(), 5, 3, ALIKE)
    hosts(spec, spec.topology.root("other"), 1, 2, ALIKE)
    spec.pool(spec.rule("take osd.15", "emit", "take default", "chooseleaf firstn -1 type host"),
              3, 48, share=0.5, rejected=True)
    spec.pool(spec.rule("take default", "chooseleaf firstn 0 type host"), 3, 32)


def replicated_indep(spec: ClusterSpec) -> None:
    """A replicated pool under an indep rule, and an erasure-coded one under firstn."""
    hosts(spec, spec.topology.root(), 6, 4, UNEQUAL)
    spec.pool(spec.rule("take default", "chooseleaf indep 0 type host"), 3, 48)
    spec.pool(spec.rule("take default", "chooseleaf firstn 0 type host", erasure=True), 4, 32,
              k=2)


def rejected_nested(spec: ClusterSpec) -> None:
    """The monitor does not multiply the inner number by the outer one and cancels every item."""
    racks(spec, spec.topology.root(), 4, 3, 3)
    spec.pool(spec.rule(*EC_TRIES, "take default", "choose indep 2 type rack",
                        "choose indep 2 type host", "choose indep 2 type osd", erasure=True),
              8, 32, k=6, rejected=True)
    spec.pool(spec.rule("take default", "chooseleaf firstn 0 type host"), 3, 48)


def rejected_zones(spec: ClusterSpec) -> None:
    """Two takes that both choose two zones: the monitor counts four and cancels every item."""
    root = spec.topology.root()
    for zone in range(2):
        bucket = root.add(f"zone{zone}", "zone")
        for number in range(3):
            host = spec.topology.host(bucket, f"z{zone}-h{number}", 4, ALIKE)
            for _ in range(3):
                spec.topology.osd(host, 1.0, "ssd")
    spec.pool(spec.rule("take default class ssd", "choose firstn 2 type zone",
                        "chooseleaf firstn 1 type host", "emit", "take default class hdd",
                        "choose firstn 2 type zone", "chooseleaf firstn 1 type host"),
              4, 32, rejected=True)
    spec.pool(spec.rule("take default class hdd", "chooseleaf firstn 0 type host"), 3, 48)


def left_out(spec: ClusterSpec) -> None:
    """Two racks, three hosts in each, for pools of four and five: the last hosts are left out."""
    racks(spec, spec.topology.root(), 4, 4, 2)
    rule = spec.rule("take default", "choose firstn 2 type rack", "chooseleaf firstn 3 type host")
    spec.pool(rule, 4, 48)
    spec.pool(rule, 5, 32)
    spec.pool(spec.rule(*EC_TRIES, "take default", "choose indep 2 type rack",
                        "chooseleaf indep 4 type host", erasure=True), 7, 32, k=4)


def uneven_sites(spec: ClusterSpec) -> None:
    """Sites with racks and without; an empty host; the rule chooses sites, then hosts."""
    root = spec.topology.root()
    for name in ("east", "west", "south"):
        site = root.add(name, "datacenter")
        hosts(spec, site, 2, 3, UNEQUAL)
        racks(spec, site, 1, 2, 3)
    root.add("empty", "host")
    spec.pool(spec.rule("take default", "choose firstn 2 type datacenter",
                        "chooseleaf firstn 2 type host"), 4, 64)
    spec.pool(spec.rule(*EC_TRIES, "take default", "choose indep 3 type datacenter",
                        "chooseleaf indep 2 type host", erasure=True), 6, 32, k=4)


def second_tree(spec: ClusterSpec) -> None:
    """The same OSDs in two trees that group them differently."""
    hosts(spec, spec.topology.root(), 6, 4, UNEQUAL)
    other = spec.topology.root("other")
    for number in range(4):
        shelf = other.add(f"shelf{number}", "rack")
        shelf.children.extend(range(number, 24, 4))
    spec.pool(spec.rule("take default", "chooseleaf firstn 0 type host"), 3, 64)
    spec.pool(spec.rule("take other", "chooseleaf firstn 0 type rack"), 3, 48)


def overlapping_takes(spec: ClusterSpec) -> None:
    """One copy in a given rack, the others anywhere: at times CRUSH chooses an OSD twice."""
    root = spec.topology.root()
    racks(spec, root, 3, 3, 3, UNEQUAL)
    spec.pool(spec.rule("take default-r0", "chooseleaf firstn 1 type host", "emit",
                        "take default", "chooseleaf firstn -1 type host"), 3, 64, irregular=True)


def types_upside_down(spec: ClusterSpec) -> None:
    """Datacenters below racks: the monitor does not find them and keeps whatever it is given."""
    root = spec.topology.root()
    for rack in range(3):
        bucket = root.add(f"r{rack}", "rack")
        for number in range(2):
            hosts(spec, bucket.add(f"r{rack}-d{number}", "datacenter"), 1, 4, UNEQUAL)
    spec.pool(spec.rule("take default", "chooseleaf firstn 0 type datacenter"), 3, 64)
    spec.pool(spec.rule(*EC_TRIES, "take default", "choose indep 3 type datacenter",
                        "chooseleaf indep 2 type osd", erasure=True), 6, 32, k=4)
