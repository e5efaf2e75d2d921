"""What a test cluster is to be, before the Ceph tools have made it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Set

from .topology import Bucket, Rule, Topology

TIB = 1 << 40


@dataclass(frozen=True)
class PoolSpec:
    """A pool to make. `k` is 0 for replicated pools, else the data chunks of size = k + m."""

    name: str
    rule: str
    size: int
    pg_num: int
    k: int = 0
    share: float = 1.0  # of all bytes, against the other pools'
    omap: bool = False
    # the monitor cancels every upmap item under this rule, so none may be planned
    rejected: bool = False
    # CRUSH finds too few buckets for this pool and makes do: groups are not of the usual size
    irregular: bool = False

    @property
    def type(self) -> int:
        return 3 if self.k else 1

    @property
    def profile(self) -> str:
        return f"ec{self.k}{self.size - self.k}" if self.k else ""


@dataclass
class ClusterSpec:
    """A cluster to make; `movable`: a planner that does its work finds something to move."""

    name: str
    topology: Topology
    pools: List[PoolSpec] = field(default_factory=list)
    movable: bool = True
    out: Set[int] = field(default_factory=set)
    down: Set[int] = field(default_factory=set)
    reweights: Dict[int, float] = field(default_factory=dict)
    capacity: Dict[int, float] = field(default_factory=dict)  # TiB, where it is not the weight
    missing: Set[int] = field(default_factory=set)  # ids that are free
    weight_set: bool = False
    prior_share: float = 0.0  # share of the PGs that get upmap items beforehand

    @property
    def rng(self) -> random.Random:
        """The one source of chance of this cluster."""
        return self.topology.rng

    def __post_init__(self) -> None:
        self.root, self.host, self.osd = (
            self.topology.root, self.topology.host, self.topology.osd)

    def pool(self, rule: str, size: int, pg_num: int, k: int = 0, share: float = 1.0,
             omap: bool = False, rejected: bool = False, irregular: bool = False) -> None:
        """Adds a pool, and its rule where none has these steps; `rule` without the last emit."""
        steps = (*rule.split("; "), "emit")
        rules = self.topology.rules
        known = [one.name for one in rules if one.steps == steps]
        if not known:
            known = [f"rule{len(rules)}"]
            rules.append(Rule(known[0], steps, k > 0))
        self.pools.append(PoolSpec(f"pool{len(self.pools) + 1}", known[0], size, pg_num, k,
                                   share, omap, rejected, irregular))

    def osd_size(self, osd: int) -> int:
        """Bytes that the OSD's device holds."""
        return int(self.capacity.get(osd, self.topology.weights[osd]) * TIB)


Shape = Callable[[ClusterSpec], None]
VARIANTS = ("plain", "prior", "disturbed")


def make_spec(shape_name: str, shape: Shape, variant: str, seed: int) -> ClusterSpec:
    """A cluster of a shape.

    plain: as CRUSH maps it. prior: with upmap items already. disturbed: with these, and an OSD
    out, one with a reweight below 1, one of zero CRUSH weight, sometimes a weight-set, an OSD
    down, a free id, an OSD outside the tree.
    """
    rng = random.Random(f"{shape_name}/{variant}/{seed}")
    spec = ClusterSpec(f"{shape_name}-{variant}-{seed}", Topology(rng))
    shape(spec)
    if variant != "plain":
        spec.prior_share = rng.choice((0.1, 0.25, 0.5))
    if variant == "disturbed":
        _disturb(spec)
    return spec


def _disturb(spec: ClusterSpec) -> None:
    topology, rng = spec.topology, spec.rng
    # one OSD per host at most, and only where another of its class stays behind: a bucket that
    # has lost its last OSD would leave many PGs short, and a short PG tests nothing
    buckets = [bucket for bucket in topology.buckets() if bucket.kind == "host"]
    hosts = list(filter(None, [_replaceable(topology, bucket) for bucket in buckets]))
    chosen = [rng.choice(osds) for osds in rng.sample(hosts, min(4, len(hosts)))]
    for osd, change in zip(chosen, ("out", "reweight", "zero", "down")):
        if change == "out":
            spec.out.add(osd)
        elif change == "reweight":
            spec.reweights[osd] = rng.choice((0.3, 0.6, 0.85))
        elif change == "zero":
            spec.capacity[osd] = topology.weights[osd]
            topology.weights[osd] = 0.0
        elif rng.random() < 0.25:
            spec.down.add(osd)
    spec.weight_set = rng.random() < 0.4
    if rng.random() < 0.5:  # an id that is free, then a new OSD that is in no bucket yet
        topology.weights += [0.0, 0.0]
        topology.classes += [None, rng.choice((None, "hdd"))]
        spec.missing.add(len(topology.weights) - 2)
        spec.capacity[len(topology.weights) - 1] = 2.0


def _replaceable(topology: Topology, host: Bucket) -> List[int]:
    osds = [child for child in host.children if isinstance(child, int)]
    classes = [topology.classes[osd] for osd in osds]
    return [osd for osd in osds if classes.count(topology.classes[osd]) > 1]
