"""CRUSH's arithmetic: hashes, logarithms and the seeds of PGs."""

from __future__ import annotations

import pytest

from mgr_stub.crush import hashes
from mgr_stub.crush.hashes import Straw2, distances, placement_seed, stable_mod

X = 0xDEADBEEF


@pytest.mark.parametrize("ours, of_numbers", [
    (hashes.hash2(X, 12), 4224233558),
    (hashes.hash3(X, 12, 0xFFFFFFFE), 165250490),
])
def test_hashes_as_ceph(ours: int, of_numbers: int) -> None:
    assert ours == of_numbers


def test_distances() -> None:
    table = distances()
    assert len(table) == 0x10000 and table[0] == 1 << 48 and table[-1] == 1 << 28
    # recorded from Ceph's tables: within one segment, at its ends, with odd entries
    samples = {1: 263882790666240, 2: 253592021524547,
               255: 140737488355328, 256: 140638196896390,
               1000: 106129928935515, 12345: 42366445747907,
               32767: 17592186044416, 32768: 17591411515232,
               40000: 12529976259050, 54321: 4762905039245,
               65000: 208376957710, 65534: 43930352}
    assert {u: table[u] for u in samples} == samples


def test_stable_mod_splits_and_never_shuffles() -> None:
    assert [stable_mod(value, 6) for value in range(8)] == [0, 1, 2, 3, 4, 5, 2, 3]
    assert stable_mod(5, 1) == 0
    for count in range(1, 40):
        for value in range(200):
            now, later = stable_mod(value, count), stable_mod(value, count + 1)
            assert later in (now, count) and now < count


def test_placement_seed() -> None:
    assert placement_seed(5, 9, 8) == placement_seed(5, 1, 8) == hashes.hash2(1, 5)
    assert placement_seed(5, 9, 8, hashpspool=False) == 6


def test_draws_follow_the_weights() -> None:
    bucket = Straw2([4, 5, 6, 7], [0x10000, 0x30000, 0, 0x40000], [4, 5, 6, 7])
    drawn = [bucket.draw(x, 0) for x in range(4000)]
    shares = {item: drawn.count(item) / len(drawn) for item in (4, 5, 6, 7)}
    assert shares[6] == 0.0
    assert abs(shares[4] - 1 / 8) < 0.02 and abs(shares[7] - 1 / 2) < 0.03
