"""How the tests speak to the module: as the `ceph` tool does, or over the open connection."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, Optional, Sequence

from ..cluster import DaemonCluster
from ..daemons import Answer, ClusterError, wait_for

HOOK = Path(__file__).resolve().parent / "hook.py"
ANSWER_SECONDS = 1.0
"""No command of the module may take longer."""
AT_REST = ("balanced", "stuck")
"""States in which nothing is left to do."""
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


def run(cluster: DaemonCluster, command: str, **arguments: Any) -> Answer:
    """`equilibrium COMMAND`, which must succeed."""
    answer = equilibrium(cluster, command, **arguments)
    assert answer.rc == 0, answer
    return answer


def stop_and_reset(cluster: DaemonCluster) -> None:
    """Off, and without plans and what it remembers."""
    equilibrium(cluster, "off")
    equilibrium(cluster, "reset")


def wait_state(cluster: DaemonCluster, states: Sequence[str], seconds: float,
               pause: float = 0.5) -> Dict[str, Any]:
    """Wait for one of these states of the module; its whole status then."""
    def there() -> Dict[str, Any]:
        now = status(cluster)
        return now if now["state"] in states else {}
    try:
        return wait_for(f"state {states}", there, seconds, pause)
    except ClusterError as error:
        raise ClusterError(f"{error}, but {status(cluster)}") from None


def is_builtin_on(cluster: DaemonCluster) -> bool:
    """Whether Ceph's own balancer is active, by its own word."""
    active: bool = cluster.mgr_json("balancer status")["active"]
    return active


def endpoint(cluster: DaemonCluster) -> str:
    """What `ceph mgr services` shows of the module; "" for nothing."""
    return str(cluster.mon_json("mgr services").get("equilibrium", ""))


def class_row(rows: Dict[str, Any]) -> Dict[str, Any]:
    """The row of the class hdd, which all OSDs are of, in the JSON of `eval`."""
    return next(row for row in rows["classes"] if row["device_class"] == "hdd")


def wait_ready(cluster: DaemonCluster, plan: str, seconds: float = 60.0) -> Dict[str, Any]:
    """Wait for a plan in the making, which says EAGAIN until then; its `dump`."""
    wait_for(f"plan {plan}", lambda: is_answered(equilibrium(cluster, "show", plan=plan)),
             seconds, pause=0.2)
    return equilibrium_json(cluster, "dump", plan=plan)


def is_answered(answer: Answer) -> bool:
    """Whether it is more than a wish to be asked again."""
    assert answer.rc in (0, -errno.EAGAIN), answer
    return answer.rc == 0


def ready_plan(cluster: DaemonCluster, plan: str, **arguments: Any) -> Dict[str, Any]:
    """Make a plan and wait for it; its `dump`."""
    equilibrium(cluster, "rm", plan=plan)
    answer = run(cluster, "optimize", plan=plan, **arguments)
    assert answer.seconds < ANSWER_SECONDS, answer
    return wait_ready(cluster, plan)


def answered(cluster: DaemonCluster, command: str, **arguments: Any) -> Dict[str, Any]:
    """The answer, asked for again while the cluster is being looked at."""
    def asked() -> Dict[str, Any]:
        answer = equilibrium(cluster, command, format="json", **arguments)
        return answer.json() if is_answered(answer) else {}
    return wait_for(f"an answer of {command}", asked, 60)


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
        return answer.json() if is_answered(answer) and is_of_now(now) else {}
    return wait_for(f"eval {option}", answered, 30.0, pause=0.2)


def execute(cluster: DaemonCluster, plan: str, seconds: float) -> Dict[str, Any]:
    """Hand a plan over and wait until it is through and nothing is in flight; how it ended.

    The state is `off` until the next round takes the plan up, too."""
    run(cluster, "execute", plan=plan)

    def through() -> Dict[str, Any]:
        now = status(cluster)
        return {} if shards_in_flight(now) else execution_over(now, plan)
    return wait_for(f"plan {plan} through", through, seconds)


def execution_over(now: Dict[str, Any], plan: str) -> Dict[str, Any]:
    """Of a `status`: how the execution of that plan ended, {} before."""
    last: Dict[str, Any] = now["last_execution"] or {}
    if now["execution"] is None and last.get("plan") == plan:
        return last
    return {}


def assert_refused(answer: Answer, number: Optional[int] = None) -> None:
    """The answer is a negative errno, this one if given, and one sentence, no traceback."""
    assert answer.rc < 0, answer
    assert number is None or answer.rc == -number, answer
    said = answer.err.strip()
    assert 0 < len(said) < 400 and "\n" not in said, answer
    assert "Traceback" not in answer.err + answer.out, answer


@contextmanager
def quick_takeover(cluster: DaemonCluster) -> Iterator[None]:
    """Meanwhile a dead mgr is soon followed by another."""
    cluster.set_config("mon", "mon_mgr_beacon_grace", GRACE_SECONDS)
    try:
        yield
    finally:
        cluster.remove_config("mon", "mon_mgr_beacon_grace")


@contextmanager
def grown_plans(cluster: DaemonCluster, moves: int) -> Iterator[None]:
    """Run the package with hook.py in it, which keeps plans with so many moves for a while."""
    folder = cluster.work / "modules" / "equilibrium"
    if not (folder / HOOK.name).exists():
        cluster.install_hook(HOOK)
    file = folder / "grow.moves"
    file.write_text(str(moves))
    try:
        yield
    finally:
        file.unlink()
