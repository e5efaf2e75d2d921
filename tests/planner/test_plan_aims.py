"""What the aims trade for each other: evenness, the maximum, bytes moved."""
from __future__ import annotations

import pytest
from tests.support.clusters.made_clusters import NAMES, plan_of_cluster, snapshot_of
from tests.support.few import few
from tests.support.replay import median_size, typical_shard


def hardly(name: str, device_class: str) -> float:
    """A twentieth of a typical shard, in utilization: chance decides below that."""
    snapshot = snapshot_of(name)
    return 0.05 * typical_shard(snapshot, device_class) / median_size(snapshot, device_class)


@pytest.mark.parametrize("name", few(NAMES, 1))
def test_even_is_at_least_as_even_as_space(name: str) -> None:
    space, even = plan_of_cluster(name), plan_of_cluster(name, "even")
    for device_class, usage in space.after.classes.items():
        assert even.after.classes[device_class].stddev <= (
            usage.stddev + hardly(name, device_class)), device_class
    assert any(even.after.classes[c].stddev < usage.stddev
               for c, usage in space.after.classes.items())


@pytest.mark.parametrize("name", few(NAMES, 1))
def test_even_has_no_higher_maximum_than_space(name: str) -> None:
    space, even = plan_of_cluster(name), plan_of_cluster(name, "even")
    for device_class, usage in space.after.classes.items():
        assert even.after.classes[device_class].max <= (
            usage.max + hardly(name, device_class)), device_class


@pytest.mark.parametrize("name", few(NAMES, 1))
def test_least_motion_moves_less_and_still_helps(name: str) -> None:
    space, least = plan_of_cluster(name), plan_of_cluster(name, "least-motion")
    assert 0 < least.bytes <= space.bytes
    for device_class, usage in space.after.classes.items():
        start = space.before.classes[device_class].max
        fall = start - least.after.classes[device_class].max
        assert fall >= 0.5 * (start - usage.max)
