"""The usual shapes of clusters and rules. A shape fills a spec; chance is the spec's.

Shapes of clusters and rules that few people have, and those that the monitor gets wrong.

All shapes by name.
"""
from __future__ import annotations

from typing import Dict, Optional, Sequence

from .cluster_spec import ClusterSpec, Shape
from .topology import Bucket


EC_TRIES = "set_chooseleaf_tries 5; set_choose_tries 100; "
UNEQUAL = (1.0, 2.0, 2.0, 4.0)
ALIKE = (2.0, 2.0, 2.5)


def hosts(spec: ClusterSpec, parent: Bucket, count: int, osds: int,
          sizes: Sequence[float] = ALIKE, device_class: Optional[str] = "hdd") -> None:
    for number in range(count):
        spec.host(parent, f"{parent.name}-h{number}", osds, sizes, device_class)


def racks(spec: ClusterSpec, parent: Bucket, count: int, hosts_each: int, osds: int,
          sizes: Sequence[float] = ALIKE) -> None:
    for number in range(count):
        hosts(spec, parent.add(f"{parent.name}-r{number}", "rack"), hosts_each, osds, sizes)


def replicated_host(spec: ClusterSpec) -> None:
    """Failure domain host, sizes 3 and 2, OSDs of very unequal size."""
    hosts(spec, spec.root(), 6, 4, UNEQUAL)
    rule = "take default; chooseleaf firstn 0 type host"
    spec.pool(rule, 3, 64)
    spec.pool(rule, 2, 32, share=0.3, omap=True)


def replicated_osd(spec: ClusterSpec) -> None:
    """Failure domain OSD, by choose and by chooseleaf; pg_num no power of two."""
    hosts(spec, spec.root(), 3, 5, UNEQUAL)
    spec.pool("take default; choose firstn 0 type osd", 3, 48)
    spec.pool("take default; chooseleaf firstn 0 type osd", 2, 24)


def erasure_host(spec: ClusterSpec) -> None:
    """4+2, 3+2 and 2+1 over hosts."""
    hosts(spec, spec.root(), 8, 3, ALIKE)
    rule = f"{EC_TRIES}take default class hdd; chooseleaf indep 0 type host"
    spec.pool(rule, 6, 48, k=4)
    spec.pool(rule, 5, 32, k=3)
    spec.pool(rule, 3, 32, k=2)


def erasure_osd(spec: ClusterSpec) -> None:
    """Erasure-coded over OSDs, one pool with an explicit number in its rule."""
    hosts(spec, spec.root(), 3, 5, UNEQUAL)
    spec.pool(f"{EC_TRIES}take default; choose indep 0 type osd", 6, 48, k=4)
    spec.pool("take default; chooseleaf indep 3 type osd", 3, 32, k=2)


def racks_3x2(spec: ClusterSpec) -> None:
    """Three racks of five, two hosts in each; size 6, and 5, where the last is left out."""
    racks(spec, spec.root(), 5, 3, 3)
    rule = f"{EC_TRIES}take default; choose indep 3 type rack; chooseleaf indep 2 type host"
    spec.pool(rule, 6, 48, k=4)
    spec.pool(rule, 5, 32, k=3)


def racks_2x3(spec: ClusterSpec) -> None:
    """Two racks of three, three hosts in each."""
    racks(spec, spec.root(), 3, 5, 2)
    spec.pool(f"{EC_TRIES}take default; choose indep 2 type rack; chooseleaf indep 3 type host",
              6, 64, k=4)


def stretch_three(spec: ClusterSpec) -> None:
    """Two of three sites of unequal weight, two hosts in each: CRUSH chooses which two."""
    root = spec.root()
    for name, count in (("east", 4), ("west", 3), ("south", 3)):
        hosts(spec, root.add(name, "datacenter"), count, 3, ALIKE)
    spec.pool("take default; choose firstn 2 type datacenter; chooseleaf firstn 2 type host", 4, 64)
    spec.pool("take default; choose firstn 0 type datacenter; chooseleaf firstn 2 type host", 4, 32)


def uneven_depth(spec: ClusterSpec) -> None:
    """Some hosts under racks, some directly under the root; the rule chooses hosts."""
    root = spec.root()
    racks(spec, root, 2, 3, 3, UNEQUAL)
    hosts(spec, root, 3, 3, UNEQUAL)
    spec.pool("take default; chooseleaf firstn 0 type host", 3, 64)
    spec.pool(f"{EC_TRIES}take default; chooseleaf indep 0 type host", 5, 32, k=3)


def uneven_depth_racks(spec: ClusterSpec) -> None:
    """Hosts outside any rack, and a rule that chooses racks: these hosts are never chosen.

    The monitor would let an upmap item put a shard there; the rule would not. Where CRUSH meets
    such a host, the PG stays short.
    """
    root = spec.root()
    racks(spec, root, 5, 2, 3)
    hosts(spec, root, 1, 3, ALIKE)
    spec.pool("set_choose_tries 100; take default; chooseleaf indep 0 type rack", 3, 64, k=2)
    spec.pool(f"{EC_TRIES}take default; choose indep 2 type rack; chooseleaf indep 2 type host",
              4, 32, k=2)


def hybrid(spec: ClusterSpec) -> None:
    """One copy on SSD, the others on HDD, hosts hold both; next to plain pools of each class."""
    root = spec.root()
    for number in range(6):
        host = spec.host(root, f"h{number}", 3, UNEQUAL)
        for _ in range(2):
            spec.osd(host, spec.rng.choice((0.5, 1.0)), "ssd")
    spec.pool("take default class ssd; chooseleaf firstn 1 type host; emit; "
              "take default class hdd; chooseleaf firstn -1 type host", 3, 64)
    spec.pool("take default class hdd; chooseleaf firstn 0 type host", 3, 32)
    spec.pool("take default class ssd; chooseleaf firstn 0 type host", 2, 32, share=0.2)


def two_sites_by_take(spec: ClusterSpec) -> None:
    """Two takes of sites: two copies here, the rest there; the sites share the root."""
    root = spec.root()
    for name in ("east", "west"):
        racks(spec, root.add(name, "datacenter"), 2, 2, 3)
    spec.pool("take east; chooseleaf firstn 2 type host; emit; take west; "
              "chooseleaf firstn -2 type host", 3, 48)
    spec.pool(f"{EC_TRIES}take west; chooseleaf indep 3 type host; emit; take east; "
              "chooseleaf indep 3 type host", 6, 32, k=4)


def take_below_root(spec: ClusterSpec) -> None:
    """Rules that take a rack, or a single host."""
    root = spec.root()
    racks(spec, root, 2, 4, 3, UNEQUAL)
    hosts(spec, root, 1, 6, UNEQUAL)
    spec.pool("take default-r0; chooseleaf firstn 0 type host", 3, 48)
    spec.pool("take default-h0; choose firstn 0 type osd", 3, 32, share=0.4)
    spec.pool("take default-r1; choose indep 0 type osd", 5, 32, k=3)


def classless(spec: ClusterSpec) -> None:
    """OSDs without a device class beside classes; rules with and without a class."""
    root = spec.root()
    for number in range(6):
        host = spec.host(root, f"h{number}", 3, UNEQUAL)
        spec.osd(host, 2.0, None)
        if number % 2:
            spec.osd(host, 1.0, "nvme")
    spec.pool("take default; chooseleaf firstn 0 type host", 3, 64)
    spec.pool("take default class hdd; chooseleaf firstn 0 type host", 2, 32)
    spec.pool("take default class nvme; chooseleaf firstn 0 type host", 2, 16, share=0.05)


def hosts_times_osds(spec: ClusterSpec) -> None:
    """choose host, choose osd: 3 x 2, 4 x 3 with the twelfth left out, and six of 2 x 4."""
    hosts(spec, spec.root(), 5, 5, UNEQUAL)
    spec.pool(f"{EC_TRIES}take default; choose indep 3 type host; choose indep 2 type osd",
              6, 48, k=4)
    spec.pool(f"{EC_TRIES}take default; choose indep 4 type host; chooseleaf indep 3 type osd",
              11, 16, k=8)
    spec.pool(f"{EC_TRIES}take default; choose indep 2 type host; choose indep 4 type osd",
              6, 32, k=4)


def buckets_times_osds_replicated(spec: ClusterSpec) -> None:
    """Replicated: two racks and two OSDs in each; the same with hosts; sizes 4 and 3."""
    racks(spec, spec.root(), 4, 2, 3, UNEQUAL)
    rule = "take default; choose firstn 2 type rack; choose firstn 2 type osd"
    spec.pool(rule, 4, 48)
    spec.pool(rule, 3, 32)
    spec.pool("take default; choose firstn 2 type host; chooseleaf firstn 2 type osd", 4, 32)


def three_levels(spec: ClusterSpec) -> None:
    """One datacenter, three racks in it, two hosts in each: the monitor counts this right."""
    root = spec.root()
    for name in ("east", "west"):
        racks(spec, root.add(name, "datacenter"), 4, 3, 2)
    spec.pool(f"{EC_TRIES}take default; choose indep 1 type datacenter; "
              "choose indep 3 type rack; chooseleaf indep 2 type host", 6, 48, k=4)
    spec.pool("take default; choose firstn 1 type datacenter; chooseleaf firstn 0 type rack", 3, 48)


def short_rack(spec: ClusterSpec) -> None:
    """A rack with one host where the rule asks for two: CRUSH takes a third rack or stays short."""
    root = spec.root()
    racks(spec, root, 3, 3, 3)
    spec.host(root.add("small", "rack"), "small-h0", 3, ALIKE)
    spec.pool("take default; choose firstn 0 type rack; chooseleaf firstn 2 type host",
              4, 64, irregular=True)
    spec.pool(f"{EC_TRIES}take default; choose indep 2 type rack; chooseleaf indep 2 type host",
              4, 32, k=2)


def fixed_osd(spec: ClusterSpec) -> None:
    """A take on a single OSD: the monitor does not count its position and cancels every item."""
    hosts(spec, spec.root(), 5, 3, ALIKE)
    hosts(spec, spec.root("other"), 1, 2, ALIKE)
    spec.pool("take osd.15; emit; take default; chooseleaf firstn -1 type host",
              3, 48, share=0.5, rejected=True)
    spec.pool("take default; chooseleaf firstn 0 type host", 3, 32)


def replicated_indep(spec: ClusterSpec) -> None:
    """A replicated pool under an indep rule, and an erasure-coded one under firstn."""
    hosts(spec, spec.root(), 6, 4, UNEQUAL)
    spec.pool("take default; chooseleaf indep 0 type host", 3, 48)
    spec.pool("take default; chooseleaf firstn 0 type host", 4, 32, k=2)


def rejected_nested(spec: ClusterSpec) -> None:
    """The monitor does not multiply the inner number by the outer one and cancels every item."""
    racks(spec, spec.root(), 4, 3, 3)
    spec.pool(f"{EC_TRIES}take default; choose indep 2 type rack; choose indep 2 type host; "
              "choose indep 2 type osd", 8, 32, k=6, rejected=True)
    spec.pool("take default; chooseleaf firstn 0 type host", 3, 48)


def rejected_zones(spec: ClusterSpec) -> None:
    """Two takes that both choose two zones: the monitor counts four and cancels every item."""
    root = spec.root()
    for zone in range(2):
        bucket = root.add(f"zone{zone}", "zone")
        for number in range(3):
            host = spec.host(bucket, f"z{zone}-h{number}", 4, ALIKE)
            for _ in range(3):
                spec.osd(host, 1.0, "ssd")
    spec.pool("take default class ssd; choose firstn 2 type zone; "
              "chooseleaf firstn 1 type host; emit; take default class hdd; "
              "choose firstn 2 type zone; chooseleaf firstn 1 type host", 4, 32, rejected=True)
    spec.pool("take default class hdd; chooseleaf firstn 0 type host", 3, 48)


def left_out(spec: ClusterSpec) -> None:
    """Two racks, three hosts in each, for pools of four and five: the last hosts are left out."""
    racks(spec, spec.root(), 4, 4, 2)
    rule = "take default; choose firstn 2 type rack; chooseleaf firstn 3 type host"
    spec.pool(rule, 4, 48)
    spec.pool(rule, 5, 32)
    spec.pool(f"{EC_TRIES}take default; choose indep 2 type rack; chooseleaf indep 4 type host",
              7, 32, k=4)


def uneven_sites(spec: ClusterSpec) -> None:
    """Sites with racks and without; an empty host; the rule chooses sites, then hosts."""
    root = spec.root()
    for name in ("east", "west", "south"):
        site = root.add(name, "datacenter")
        hosts(spec, site, 2, 3, UNEQUAL)
        racks(spec, site, 1, 2, 3)
    root.add("empty", "host")
    spec.pool("take default; choose firstn 2 type datacenter; chooseleaf firstn 2 type host", 4, 64)
    spec.pool(f"{EC_TRIES}take default; choose indep 3 type datacenter; "
              "chooseleaf indep 2 type host", 6, 32, k=4)


def second_tree(spec: ClusterSpec) -> None:
    """The same OSDs in two trees that group them differently."""
    hosts(spec, spec.root(), 6, 4, UNEQUAL)
    other = spec.root("other")
    for number in range(4):
        shelf = other.add(f"shelf{number}", "rack")
        shelf.children.extend(range(number, 24, 4))
    spec.pool("take default; chooseleaf firstn 0 type host", 3, 64)
    spec.pool("take other; chooseleaf firstn 0 type rack", 3, 48)


def overlapping_takes(spec: ClusterSpec) -> None:
    """One copy in a given rack, the others anywhere: at times CRUSH chooses an OSD twice."""
    root = spec.root()
    racks(spec, root, 3, 3, 3, UNEQUAL)
    spec.pool("take default-r0; chooseleaf firstn 1 type host; emit; take default; "
              "chooseleaf firstn -1 type host", 3, 64, irregular=True)


def types_upside_down(spec: ClusterSpec) -> None:
    """Datacenters below racks: the monitor does not find them and keeps whatever it is given."""
    root = spec.root()
    for rack in range(3):
        bucket = root.add(f"r{rack}", "rack")
        for number in range(2):
            hosts(spec, bucket.add(f"r{rack}-d{number}", "datacenter"), 1, 4, UNEQUAL)
    spec.pool("take default; chooseleaf firstn 0 type datacenter", 3, 64)
    spec.pool(f"{EC_TRIES}take default; choose indep 3 type datacenter; "
              "chooseleaf indep 2 type osd", 6, 32, k=4)


_ALL = (
    replicated_host,
    replicated_osd,
    erasure_host,
    erasure_osd,
    racks_3x2,
    racks_2x3,
    stretch_three,
    uneven_depth,
    uneven_depth_racks,
    hybrid,
    two_sites_by_take,
    take_below_root,
    classless,
    hosts_times_osds,
    buckets_times_osds_replicated,
    three_levels,
    short_rack,
    left_out,
    uneven_sites,
    second_tree,
    overlapping_takes,
    types_upside_down,
    fixed_osd,
    replicated_indep,
    rejected_nested,
    rejected_zones)
SHAPES: Dict[str, Shape] = {shape.__name__: shape for shape in _ALL}
