"""Shards that take more or less on some OSDs of a cluster than on others."""
from __future__ import annotations

import random

from tests.support.clusters.unit_cluster import Cluster


def take_otherwise(cluster: Cluster, rng: random.Random) -> None:
    """On some OSDs, of one pool or of all: their min_alloc_size is another, or they compress.

    Objects have metadata as well, or none.
    """
    cluster.bytes_per_object = rng.choice((0, 1_000_000, 8_000_000))
    pools = rng.choice((sorted(cluster.pools), [rng.choice(sorted(cluster.pools))]))
    ratio = rng.choice((0.5, 0.98, 1.0, 1.6, 4.0))
    for osd in rng.sample(sorted(cluster.osds), rng.choice((1, 3))):
        cluster.taken_ratios.update({(pool, osd): ratio for pool in pools})
