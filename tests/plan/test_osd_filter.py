"""Names in the CRUSH hierarchy, and the OSDs that they leave to a plan."""
from __future__ import annotations

from typing import Optional

import pytest
from tests.support.clusters.unit_cluster import Cluster, hosts

from equilibrium_mgr.crush.hierarchy import CrushHierarchy
from equilibrium_mgr.plan.options import OsdFilter, osds_named

CRUSH: CrushHierarchy = Cluster(hosts(3, 2)).pool(1).snapshot().crush


def only(names: Optional[str]) -> Optional[frozenset[str]]:
    return None if names is None else frozenset(names.split(","))


@pytest.mark.parametrize("name, osds", [
    ("osd.3", {3}), ("3", {3}), ("h1", {2, 3}), ("default", set(range(6)))])
def test_names(name: str, osds: set[int]) -> None:
    assert osds_named(name, CRUSH) == osds


@pytest.mark.parametrize("name", ["osd.6", "osd.-1", "h9", "", "osd.1x", "9" * 5000])
def test_names_of_nothing(name: str) -> None:
    assert osds_named(name, CRUSH) is None


@pytest.mark.parametrize("sources, targets, spared, expected", [
    (None, None, None, (None, None)),
    ("h0", None, None, ({0, 1}, None)),
    (None, "h0,osd.5", None, (None, {0, 1, 5})),
    (None, None, "h0", ({2, 3, 4, 5}, {2, 3, 4, 5})),
    ("h0", "h1", "osd.1,osd.2", ({0}, {3})),
    ("h0", "h0", "h0", (set(), set()))])
def test_scope(sources: Optional[str], targets: Optional[str], spared: Optional[str],
               expected: object) -> None:
    scope = OsdFilter(only(sources), only(targets), only(spared)).scope(CRUSH)
    assert (scope.sources, scope.targets) == expected and not scope.unknown


def test_an_unknown_name_never_allows_more() -> None:
    scope = OsdFilter(only("h9,h0"), only("h9"), None).scope(CRUSH)
    assert (scope.sources, scope.targets) == (frozenset((0, 1)), frozenset())
    assert scope.unknown == (("sources", "h9"), ("targets", "h9"))


def test_what_is_to_be_spared_and_is_not_known_stops_everything() -> None:
    scope = OsdFilter(None, None, only("h1,h9")).scope(CRUSH)
    assert (scope.sources, scope.targets) == (frozenset(), frozenset())
    assert scope.unknown == (("spared", "h9"),)


def test_a_number_is_an_osd_even_where_a_bucket_has_that_name() -> None:
    crush = Cluster({"root default": {"host 1": [0, 1], "host 4": [2, 3]}}).pool(
        1).snapshot().crush
    assert osds_named("1", crush) == frozenset((1,))
    assert osds_named("4", crush) is None   # osd.4 may be added any day


@pytest.mark.parametrize("filters, pools, words", [
    (OsdFilter(), [], ""), (OsdFilter(only("osd.6")), [], "moves off osd.6"),
    (OsdFilter(only("osd.6,h1"), only("r2"), only("h3")), ["rbd"],
     "moves of pool rbd off h1, osd.6 to r2 that spare h3"),
    (OsdFilter(only("a,b,c,d,e")), [], "moves off a, b, c and 2 more")])
def test_the_words_of_a_filter(filters: OsdFilter, pools: list[str], words: str) -> None:
    assert filters.words(pools) == words
