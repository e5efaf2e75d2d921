"""Installed, enabled, upgraded while a plan is executed, disabled and removed, all on real Ceph.

One story: each test goes on where the last one ended.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Callable, Dict, Set

import pytest

from ..cluster import DaemonCluster
from ..daemons import wait_for
from ..harness import workload
from ..harness.commands import equilibrium, ready_plan, run, status
from ..harness.workload import upmap_items
from .conftest import NEW, OLD, dpkg, installed_version, script

pytestmark = [pytest.mark.releases(16)]

FOLDER = Path("/usr/share/ceph/mgr/equilibrium")
SENT_BEFORE_UPGRADE = 2


def known_modules(cluster: DaemonCluster) -> Set[str]:
    """Names of the modules that `ceph mgr module ls` shows in any list."""
    known: Set[str] = set()
    for names in cluster.mon_json("mgr module ls").values():
        for entry in names:
            known.add(entry if isinstance(entry, str) else entry["name"])
    return known


def restart_mgr(cluster: DaemonCluster) -> None:
    """What `systemctl restart ceph-mgr.target` does on a host with one mgr."""
    cluster.processes.end("mgr.x")
    gid = cluster.mgr_dump()["active_gid"]
    cluster.start_mgr("x")
    cluster.mon("mgr fail", who="x")
    cluster.wait_other_mgr(gid)
    cluster.wait_mgr()


def running_version(cluster: DaemonCluster) -> str:
    """The version of the code that the mgr has loaded, as the module tells it."""
    found = re.search(r'ceph_equilibrium_info\{[^}]*version="([^"]*)"',
                      equilibrium(cluster, "metrics").out)
    return found.group(1) if found else ""


def test_script_and_package_keep_apart(
        cluster: DaemonCluster, packages: Dict[str, Path]) -> None:
    """Neither overwrites what the other has installed; nothing of it stays."""
    done = script()
    assert done.returncode == 0, done.stderr
    assert (FOLDER / "module.py").exists()
    with pytest.raises(AssertionError, match="belongs to no package"):
        dpkg("--install", packages[OLD])
    assert "is removed from" in script("--remove", CEPH_CONF=str(cluster.conf)).stdout
    assert not FOLDER.exists()
    dpkg("--install", packages[OLD])
    assert "belongs to the package ceph-mgr-equilibrium" in script().stderr
    dpkg("--remove", "ceph-mgr-equilibrium")


def test_installed_it_can_be_enabled(
        cluster: DaemonCluster, packages: Dict[str, Path]) -> None:
    assert "equilibrium" not in known_modules(cluster)
    said = dpkg("--install", packages[OLD])
    assert "ceph mgr module enable equilibrium" in said
    assert (installed_version(), FOLDER.is_dir()) == (OLD, True)
    # a running mgr does not look for new modules
    assert "equilibrium" not in known_modules(cluster)
    restart_mgr(cluster)
    assert "equilibrium" in known_modules(cluster)
    cluster.enable("equilibrium")
    assert running_version(cluster) == OLD


def test_the_script_removes_nothing_that_is_enabled(
        cluster: DaemonCluster, tmp_path: Path) -> None:
    (tmp_path / "mgr_module.py").write_text("")
    path = ("--module-path", tmp_path)
    assert script(*path).returncode == 0
    refused = script(*path, "--remove", CEPH_CONF=str(cluster.conf))
    assert refused.returncode == 1 and "ceph mgr module disable equilibrium" in refused.stderr
    assert (tmp_path / "equilibrium" / "module.py").exists()
    assert script(*path, "--remove", "--force", CEPH_CONF=str(cluster.conf)).returncode == 0


def test_an_execution_goes_on_after_an_upgrade(
        cluster: DaemonCluster, packages: Dict[str, Path],
        figure: Callable[[str], None]) -> None:
    cluster.set_option("sleep_interval", 1)
    cluster.set_option("start_delay", 5)
    cluster.set_option("max_moves_per_round", 2)
    cluster.set_option("max_misplaced_ratio", 0.08)
    cluster.set_option("pg_cooldown", 0)
    cluster.set_option("max_transit_ratio", 0)
    plan = ready_plan(cluster, "p")
    wanted = {pgid: pairs for pgid, pairs in plan["upmap_items"].items() if pairs}
    assert len(wanted) > SENT_BEFORE_UPGRADE + 1, plan
    run(cluster, "execute", plan="p")
    wait_for("some of the plan sent", lambda: len(upmap_items(cluster)) >= SENT_BEFORE_UPGRADE,
             90, 0.2)

    said = dpkg("--install", packages[NEW])
    assert "keeps the old code" in said
    assert "ceph mgr fail" in said
    assert installed_version() == NEW
    before = len(upmap_items(cluster))
    assert before < len(wanted), "the plan was through before the upgrade"
    assert status(cluster)["execution"] is not None, "the old code works on"
    assert running_version(cluster) == OLD
    gid = cluster.mgr_dump()["active_gid"]
    cluster.mon("mgr fail", who="x")  # the only mgr starts itself anew
    cluster.wait_other_mgr(gid)
    cluster.wait_module()
    assert running_version(cluster) == NEW
    wait_for("the plan is through", lambda: status(cluster)["execution"] is None, 120)
    assert upmap_items(cluster) == wanted
    assert status(cluster)["last_execution"]["plan"] == "p"
    figure(f"upgraded with {before} of {len(wanted)} PGs sent; the rest was sent by the new build")
    assert cluster.module_failures() == ""


def test_a_folder_that_is_gone_is_not_told_by_health(
        cluster: DaemonCluster, packages: Dict[str, Path],
        figure: Callable[[str], None]) -> None:
    """What an image without the module does: enabled, yet not there after the next start."""
    dpkg("--remove", "ceph-mgr-equilibrium")
    assert not FOLDER.exists()
    restart_mgr(cluster)
    listed = cluster.mon_json("mgr module ls")
    answer = cluster.ceph("equilibrium status")
    codes, enabled = sorted(cluster.health_checks()), listed["enabled_modules"]
    figure(f"enabled without its folder: rc {answer.rc}, {answer.err.strip()!r}, health {codes}, "
           f"enabled_modules {enabled}")
    assert "equilibrium" in enabled
    assert answer.rc != 0
    for code in codes:
        assert not code.startswith("MGR_MODULE")
    dpkg("--install", packages[NEW])
    restart_mgr(cluster)
    cluster.wait_module()


def test_removed_it_leaves_the_upmaps(cluster: DaemonCluster) -> None:
    workload.wait_clean(cluster)
    items = upmap_items(cluster)
    assert items
    run(cluster, "off")
    cluster.mon("mgr module disable", module="equilibrium")
    wait_for("the mgr without the module",
             lambda: cluster.active_mgr() and equilibrium(cluster, "status").rc != 0, 60)
    said = dpkg("--remove", "ceph-mgr-equilibrium")
    assert "ceph mgr module disable equilibrium" in said
    assert not FOLDER.exists()
    restart_mgr(cluster)
    assert "equilibrium" not in known_modules(cluster)
    assert upmap_items(cluster) == items
    workload.wait_clean(cluster)
