"""What the tests of commands say and look at again and again."""

from __future__ import annotations

import errno
import json
import re
from typing import Any, Dict, List, Set, Tuple

from mgr_stub.console.session import Session


_LOOP = re.compile(r"\(until (ceph [^;]+); do \[ \$\? = 11 \] && sleep 5 \|\| exit; done\)")


def ask(session: Session, line: str) -> Any:
    """The JSON answer of a command that must succeed."""
    rc, out, err = session.command(f"equilibrium {line} --format json")
    assert (rc, err) == (0, ""), (line, rc, err)
    return json.loads(out)


def by_class(status: Dict[str, Any]) -> Dict[str, Any]:
    """Device class → its figures in the JSON of `status`."""
    return {row["device_class"]: row for row in status["classes"]}


def by(key: str, rows: List[Dict[str, Any]]) -> Dict[Any, Dict[str, Any]]:
    """The rows of an answer by one of their keys."""
    return {row[key]: row for row in rows}


def run(session: Session, *lines: str) -> str:
    """Runs lines that must succeed (of sim, osd, equilibrium, ...); the last one's output."""
    out = ""
    for line in lines:
        rc, out, err = session.command(line)
        assert rc == 0, (line, rc, err)
    return out


def paste(session: Session, screen: str) -> List[str]:
    """Runs the block of commands on a screen as a shell does that it is pasted into; its lines."""
    block = [line.strip() for line in screen.split("\n")
             if line.startswith(("  ceph ", "  (until ceph "))]
    assert all(line.endswith(" &&") for line in block[:-1]), block
    lines = [line.replace(" &&", "") if " && " not in line else line for line in block]
    for line in lines:
        loop = _LOOP.match(line)
        command = (loop[1] if loop else line).replace("ceph ", "", 1)
        while loop:
            code, _, why = session.command(command)
            assert code in (0, -errno.EAGAIN), why
            if not code:
                break
            run(session, "sim run 5s")
        if not loop:
            run(session, command, "sim run 1s")
    return lines


def refused(session: Session, line: str) -> Tuple[int, str]:
    """Errno and sentence of a command that must fail in one sentence, without a traceback."""
    rc, out, err = session.command(line)
    assert rc < 0, (line, rc, out)
    assert out == "", (line, rc, out)
    assert err.strip(), (line, err)
    assert "\n" not in err, (line, err)
    assert "Traceback" not in err, (line, err)
    return rc, err


def refuses(session: Session, line: str, code: int, *parts: str) -> None:
    """A command of the module must fail so, in a sentence that has the parts."""
    rc, said = refused(session, f"equilibrium {line}")
    assert rc == -code, (line, said)
    for part in parts:
        assert part in said, (line, said)


def words(session: Session, line: str) -> str:
    """What a command of the module says, in one line."""
    return " ".join(run(session, f"equilibrium {line}").split())


def optimize(session: Session, arguments: str = "p") -> Dict[str, Any]:
    """Makes a plan, in place of one of that name; what `dump` says of it."""
    name = arguments.split()[0]
    answer = ask(session, f"optimize {arguments} --replace")
    assert (answer["plan"], answer["state"]) == (name, "planning")
    plan: Dict[str, Any] = ask(session, "dump " + name)
    return plan


def until_all_have_peered(session: Session) -> None:
    """A PG that peers for a moment does not tell what has arrived."""
    while session.cluster.peering:
        run(session, "sim run 1s")


def up_sets(session: Session) -> Dict[str, List[int]]:
    return {pgid: list(up) for pgid, up in session.cluster.map.up.items()}


def upmap_items(session: Session) -> Dict[str, List[List[int]]]:
    return {pgid: [list(pair) for pair in items]
            for pgid, items in session.cluster.map.upmap_items.items()}


def state(session: Session) -> str:
    return str(ask(session, "status")["state"])


def pools_of(session: Session, plan: Dict[str, Any]) -> Set[str]:
    """Names of the pools whose PGs a plan moves."""
    names = {pool_id: pool["pool_name"] for pool_id, pool in session.cluster.map.pools.items()}
    return {names[int(pgid.split(".")[0])] for pgid in plan["predicted_up"]}


def count_commands(session: Session) -> List[str]:
    """A list that grows by every command that is sent to the monitor from now on."""
    sent: List[str] = []
    submit = session.simulation.monitor.submit

    def watched(command: str, done: Any) -> None:
        sent.append(json.loads(command)["prefix"])
        submit(command, done)
    session.simulation.monitor.submit = watched  # type: ignore[method-assign, assignment]
    return sent


def mark_out(session: Session, osd: int) -> None:
    """The OSD's reweight becomes 0 in a new epoch; the CRUSH mapping stays as it is."""
    osds = dict(session.cluster.map.osds)
    osds[osd] = {**osds[osd], "in": 0, "weight": 0.0}
    session.cluster.map = session.cluster.map.next(osds=osds)


def health(session: Session) -> Dict[str, Any]:
    """Health check code → check, of the module's own."""
    rc, out, _ = session.command("health --format json")
    assert rc == 0
    return {code: check for code, check in json.loads(out)["checks"].items()
            if not code.startswith("OSD_")}


def max_by_class(session: Session) -> Dict[str, float]:
    """Highest utilization per class, as the OSDs report it."""
    return {name: max(used.values()) for name, used in session.cluster.utilizations().items()}


def misplaced_ratio(session: Session) -> float:
    """Object copies that are not where they shall be, those counted that Ceph does not show yet
    because their PGs have not peered."""
    pgs = session.cluster.pgs.values()
    return sum(pg.misplaced_objects() for pg in pgs) / sum(pg.num_copies for pg in pgs)
