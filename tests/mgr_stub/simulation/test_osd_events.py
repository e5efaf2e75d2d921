"""Failing and reweighting OSDs; raw mappings are those of CRUSH."""
from __future__ import annotations

import random
from typing import Any, Callable

from mgr_stub.console.sim_commands import _COMMANDS
from tests.support.clusters import stub_states
from tests.support.clusters.crush_cluster import raw_of, recompute_raw, run

MakeSession = Callable[..., Any]
AWAY = ("sim osd out {}", "sim osd down {}", "sim osd reweight {} 0.5")


def test_loading_computes_no_crush(session: Any) -> None:
    run(session, "sim run 10m", "osd set noout", "osd pg-upmap-items 1.0 0 3")
    assert session.cluster.raw_mapping.computed == 0
    before = raw_of(session.cluster)
    assert recompute_raw(session.cluster) == before


def test_mappings_depend_on_the_map_and_not_on_what_was_before(make_session: MakeSession) -> None:
    """Whether they are CRUSH's or not: OSDs that come back have the PGs that they had."""
    rng = random.Random(7)
    pgs = []
    for n in range(32):
        hosts = rng.sample(range(6), 3)
        pgs.append(stub_states.pg(f"3.{n:x}", [2 * host + rng.randrange(2) for host in hosts]))
    session = make_session(stub_states.state(pgs, osds=12, pools=[stub_states.BY_HOST]))
    before = raw_of(session.cluster)
    for _ in range(12):
        away = rng.sample(range(12), 3)
        for osd in away:
            run(session, rng.choice(AWAY).format(osd))
        run(session, "sim run 11m")
        assert raw_of(session.cluster) != before
        for osd in away:
            run(session, f"sim osd up {osd}", f"sim osd in {osd}", f"sim osd reweight {osd} 1")
        run(session, "sim run idle")
        assert raw_of(session.cluster) == before, away


def test_help_names_every_command(session: Any) -> None:
    text, = run(session, "sim help")
    for name in " ".join(_COMMANDS).split():
        assert name in text
