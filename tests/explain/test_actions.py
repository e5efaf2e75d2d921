"""What to do about each reason: an entry for each code, with commands and options that exist."""
from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List

import pytest
from tests.report.explanations import facts, giant, looked_at
from tests.support.clusters.unit_cluster import Cluster, hosts
from tests.support.units import GIB

import equilibrium_mgr
from equilibrium_mgr.report.explain.advice import help_for
from equilibrium_mgr.report.explain.context import ExplainContext
from equilibrium_mgr.report.explain.figures import faster
from equilibrium_mgr.settings import OPTIONS
from equilibrium_mgr.snapshot import immovable_reasons, reason_codes
from equilibrium_mgr.snapshot.reason_codes import KINDS, NOTHING, REASONS, action


def _codes() -> List[str]:
    """In no order; one that stands there twice is there twice."""
    found: List[str] = []
    for name, value in vars(reason_codes).items():
        if name.isupper() and isinstance(value, str) and re.fullmatch("[a-z_]+", value):
            if value not in (*KINDS, NOTHING):
                found.append(value)
    return found


CODES = sorted(_codes())
#: Reasons for which a PG stays.
HELD = [value for value in vars(immovable_reasons).values()
        if isinstance(value, immovable_reasons.Immovable)]
OPTION_NAMES = {option["name"] for option in OPTIONS}

#: Ceph's own commands that actions name (of MonCommands.h, MgrCommands.h and the mgr's modules).
OF_CEPH = (
    "balancer off; config rm mgr; config show; config set global; config set mgr; health detail; "
    "mgr fail; osd crush reweight; osd in; osd pool ls detail; config set {faster}; "
    "osd pool set; osd reweight; osd rm-pg-upmap; osd rm-pg-upmap-items; "
    "osd rm-pg-upmap-primary; osd set norebalance; osd set-nearfull-ratio; "
    "osd set-require-min-compat-client; osd tree; osd unset; pg deep-scrub; pg dump_stuck; "
    "pg repair; pg {pgid} query; quorum_status").split("; ")


def templates() -> Iterator[str]:
    for found in REASONS.values():
        yield from found.actions
    for reason in HELD:
        yield reason.action("{pgid}", "{pool}")


def test_every_code_has_an_entry() -> None:
    assert set(REASONS) == set(CODES)
    assert len(CODES) == len(set(CODES)) > 35


@pytest.mark.parametrize("code", CODES)
def test_an_action_needs_no_figure(code: str) -> None:
    said = action(code, {})
    assert said
    assert "{" not in said
    assert (said == NOTHING) == (code == reason_codes.BALANCED)
    assert action(code, dict.fromkeys(("osd", "pool", "limit", "until", "needed"))) == said


def test_every_reason_for_which_a_pg_stays_has_an_entry() -> None:
    assert len(HELD) > 15
    for reason in HELD:
        assert reason.action("1.0", "rbd") != NOTHING, reason
        assert reason.code in REASONS, reason


def test_commands_and_options_exist() -> None:
    source = (Path(equilibrium_mgr.__file__).parent / "cli.py").read_text()
    own = tuple(re.findall(r'(?:read|write)_command[(]"([a-z -]+)"', source))
    named = 0
    for template in templates():
        for option in re.findall(r"(?:mgr/equilibrium/|raise )([a-z_]+)", template):
            assert option in OPTION_NAMES | {"osd_max_pg_per_osd_hard_ratio"}, template
        for command in re.findall(r"'ceph ([^']+)'", template):
            named += 1
            known = own if command.startswith("equilibrium ") else OF_CEPH
            assert any(f"{command} ".startswith(f"{one} ") for one in known), template
    assert named > 25


def with_flags(made: Cluster, flags: str) -> Cluster:
    made.extra["flags"] = flags
    return made


def misplaced(copies: int) -> Cluster:
    """So many copies of a hundred."""
    made = giant()
    made.pg_status = {"misplaced_objects": copies, "misplaced_total": 100}
    return made


@pytest.mark.parametrize("code, cluster, figures, said", [
    ("bound_capacity", giant(), {}, "nothing; no move lowers it"),
    ("degraded", with_flags(giant(), "norebalance"), {}, "nothing; it ends by itself when recov"),
    ("degraded", with_flags(giant(), "norecover,nobackfill"), {}, "'ceph osd unset nobackfill'"),
    ("in_flight", with_flags(giant(), "norebalance"), {}, "'ceph osd unset norebalance'"),
    ("misplaced_limit", misplaced(50), {"option": "max_misplaced_ratio", "limit": 0.05},
     "nothing; it ends by itself as shards arrive"),
    ("misplaced_limit", misplaced(5), {"option": "max_misplaced_ratio", "limit": 0.05},
     "nothing; it ends by itself as shards arrive; 'ceph config set mgr mgr/equilibrium/"
     "max_misplaced_ratio 0.1' is faster"),
    ("misplaced_limit", misplaced(5), {"option": "max_misplaced_ratio", "limit": 0.15},
     "nothing; it ends by itself as shards arrive; 'ceph config set mgr mgr/equilibrium/"
     "max_misplaced_ratio 0.2' is faster"),
    ("misplaced_limit", misplaced(5), {"option": "max_misplaced_ratio", "limit": 0.2},
     "nothing; it ends by itself as shards arrive"),
    ("max_transit", giant(), {"option": "max_transit_ratio", "limit": 0.6},
     "nothing; it ends by itself as shards arrive; 'ceph config set mgr mgr/equilibrium/"
     "max_transit_ratio 1' is faster"),
    ("fill_limit", giant(), {"osd": 0}, "add capacity, or delete data: moves fill no OSD beyond"),
    ("reweight", Cluster(hosts(3), weights={0: 0.05}).pool(1, size=1).pg("1.0", [1], 9 * GIB),
     {"osd": 0}, "'ceph osd crush reweight osd.0 0.09766' gives it"),
    ("stale_statistics", giant(), {"osd": 0}, "restart osd.0, or 'ceph mgr fail'")])
def test_actions_by_the_figures_of_the_cluster(code: str, cluster: Cluster,
                                               figures: Dict[str, Any], said: str) -> None:
    harness = looked_at(cluster)
    view = harness.balancer.status.view
    assert view is not None
    context = ExplainContext(view, harness.balancer.status, harness.settings())
    found = help_for(code, context, **figures)
    assert found.startswith(said), found
    assert found == said or not said.endswith("arrive"), found


def test_a_shard_without_a_source_waits_for_no_osd_of_the_reason() -> None:
    waiting = SimpleNamespace(source=None, target=1, is_running=False)
    snapshot = SimpleNamespace(osds=dict.fromkeys(range(9)))
    context: Any = SimpleNamespace(view=SimpleNamespace(movements=[waiting], snapshot=snapshot))
    assert faster({"limit": 0.6, "option": "max_transit_ratio"}, context) == (
        "mgr mgr/equilibrium/max_transit_ratio 1")


@pytest.mark.parametrize("options, said", [
    ({"fill_limit": 0.3}, "'ceph config set mgr mgr/equilibrium/fill_limit 0.44'"),
    ({"pool_ids": "7"}, "'ceph equilibrium pool add rbd'")])
def test_options_that_hold_up_a_fuller_osd(options: Dict[str, Any], said: str) -> None:
    """Shards of 2 GiB: 60 % on osd.0, 30 % on two others."""
    cluster = Cluster(hosts(3)).pool(1, size=1, name="rbd")
    for ps in range(60):
        cluster.pg(f"1.{ps:x}", [(0, 0, 1, 2)[ps % 4]], 2 * GIB)
    assert facts(cluster, "osd.0", **options)["action"].startswith(said)
