"""How the tests speak to the module: as the `ceph` tool does, or over the open connection."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator

from ..cluster import DaemonCluster
from ..daemons import Answer, wait_for

HOOK = Path(__file__).resolve().parent / "hook.py"
ANSWER_SECONDS = 1.0
"""No command of the module may take longer."""
_NEW_SECONDS = 2.0
GRACE_SECONDS = 10
"""After so long without a word from the active mgr the monitor takes a standby, in
`quick_takeover`."""


def equilibrium(cluster: DaemonCluster, command: str, **arguments: Any) -> Answer:
    """`equilibrium COMMAND` over the open connection, whatever its rc."""
    return cluster.mgr(f"equilibrium {command}", **arguments)


def equilibrium_json(cluster: DaemonCluster, command: str, **arguments: Any) -> Any:
    """JSON output of a command that must succeed."""
    return cluster.mgr_json(f"equilibrium {command}", **arguments)


def status(cluster: DaemonCluster) -> Dict[str, Any]:
    """`equilibrium status` as JSON."""
    return equilibrium_json(cluster, "status")


def shards_in_flight(now: Dict[str, Any]) -> int:
    """Of the JSON of `status`: whoever moves them."""
    return int(now["moving"]["shards"] + now["moving"]["other_shards"])


def optimize(cluster: DaemonCluster, plan: str, **arguments: Any) -> Answer:
    """Start a plan; must answer at once."""
    answer = equilibrium(cluster, "optimize", plan=plan, **arguments)
    assert answer.rc == 0, answer
    assert answer.seconds < ANSWER_SECONDS, answer
    return answer


def wait_ready(cluster: DaemonCluster, plan: str, seconds: float = 60.0) -> Dict[str, Any]:
    """Wait for a plan in the making, which says EAGAIN until then; its `dump`."""
    def ready() -> bool:
        answer = equilibrium(cluster, "show", plan=plan)
        assert answer.rc in (0, -errno.EAGAIN), answer
        return answer.rc == 0
    wait_for(f"plan {plan}", ready, seconds, pause=0.2)
    return equilibrium_json(cluster, "dump", plan=plan)


def ready_plan(cluster: DaemonCluster, plan: str, **arguments: Any) -> Dict[str, Any]:
    """Make a plan and wait for it; its `dump`."""
    equilibrium(cluster, "rm", plan=plan)
    optimize(cluster, plan, **arguments)
    return wait_ready(cluster, plan)


def answered(cluster: DaemonCluster, command: str, **arguments: Any) -> Dict[str, Any]:
    """The answer, asked for again while the cluster is being looked at."""
    def asked() -> Dict[str, Any]:
        answer = equilibrium(cluster, command, format="json", **arguments)
        assert answer.rc in (0, -11), answer
        found: Dict[str, Any] = answer.json() if answer.rc == 0 else {}
        return found
    return wait_for(f"an answer of {command}", asked, 60, pause=0.5)


def is_of_now(now: Dict[str, Any]) -> bool:
    """Whether the figures of a `status` are of a new look, or of one that still holds."""
    age = now["snapshot_age_seconds"]
    return age is not None and (age < _NEW_SECONDS or not now["look_outdated"])


def evaluated(cluster: DaemonCluster, option: str) -> Dict[str, Any]:
    """`eval OPTION` once its figures are of now: EAGAIN before the first look, figures of the last
    one while a new one is made."""
    def answered() -> Dict[str, Any]:
        now = status(cluster)   # first: a look between the two is newer than this tells
        answer = equilibrium(cluster, "eval", option=option, format="json")
        assert answer.rc in (0, -errno.EAGAIN), answer
        return answer.json() if answer.rc == 0 and is_of_now(now) else {}
    return wait_for(f"eval {option}", answered, 30.0, pause=0.2)


def execute(cluster: DaemonCluster, plan: str, seconds: float) -> Dict[str, Any]:
    """Hand a plan over and wait until it is through and nothing is in flight; how it ended.

    The state is `off` until the next round takes the plan up, too."""
    answer = equilibrium(cluster, "execute", plan=plan)
    assert answer.rc == 0, answer

    def through() -> Dict[str, Any]:
        now = status(cluster)
        ended: Dict[str, Any] = now["last_execution"] or {}
        return ended if (ended.get("plan") == plan and now["execution"] is None
                         and not shards_in_flight(now)) else {}
    return wait_for(f"plan {plan} through", through, seconds)


def assert_refused(answer: Answer, *wanted: int) -> None:
    """The answer is a negative errno and one sentence, no traceback."""
    assert answer.rc < 0 and (not wanted or answer.rc in [-number for number in wanted]), answer
    said = answer.err.strip()
    assert said and "\n" not in said and len(said) < 400, answer
    assert "Traceback" not in answer.err + answer.out, answer


@contextmanager
def quick_takeover(cluster: DaemonCluster) -> Iterator[None]:
    """Meanwhile a dead mgr is soon followed by another."""
    cluster.mon("config set", who="mon", name="mon_mgr_beacon_grace", value=str(GRACE_SECONDS))
    try:
        yield
    finally:
        cluster.mon("config rm", who="mon", name="mon_mgr_beacon_grace")


@contextmanager
def hooked(cluster: DaemonCluster, name: str, value: float) -> Iterator[None]:
    """Run the package with hook.py in it, and its file `name` holding `value` for a while."""
    folder = cluster.work / "modules" / "equilibrium"
    if not (folder / HOOK.name).exists():
        cluster.install_hook(HOOK)
    (folder / name).write_text(str(value))
    try:
        yield
    finally:
        (folder / name).unlink()
