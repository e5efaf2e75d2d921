"""Unknown names and senseless values: a negative errno and one sentence, and nothing changes."""

from __future__ import annotations

import errno
from typing import Dict, Tuple

from mgr_stub.console.session import Session

from .asking import ask, count_commands, optimize, refused, refuses, run

#: Errno and a part of the sentence → lines.
REFUSED: Dict[Tuple[int, str], Tuple[str, ...]] = {
    (errno.ENOENT, "nope"): (
        "show nope", "dump nope", "eval nope", "execute nope", "rm nope", "optimize q nope",
        "optimize q vms nope", "pool add nope", "pool add vms nope", "pool rm nope",
        "explain nope", "eval --fail nope", "eval nope --fail 1", "eval --remove nope",
        "eval --add h9:1x1T:hdd@nope", "eval --pg-num nope=8", "drain add nope", "drain rm nope",
        "optimize q vms --rule nope"),
    (errno.ENOENT, "'99'"): ("pool rm 99", "optimize q 2 99"),
    (errno.ENOENT, "nvme"): ("optimize q --device-class nvme",),
    (errno.ENOENT, "class"): ("optimize q --device-class ''",),
    (errno.EINVAL, "max-bytes"): tuple([f"optimize q --max-bytes={size}" for size in (
        "12X", "-5", "abc", "0", "''", "1..5T", "T", "1e400", "9" * 400, "nan")]) + (
        "optimize q --max-bytes",),
    (errno.EINVAL, "max"): tuple([f"optimize q --max-moves={count}" for count in (
        "0", "-3", "abc", "1.5", "''")]),
    (errno.EINVAL, "name"): tuple([f"optimize {name}" for name in (
        "''", "'a b'", "a/b", "../p", "p%", "x" * 65, "'p\n'", "pl\u00e4n", "'p;rm'")]),
    (errno.EINVAL, "aim"): (
        "optimize q --aim=evenly", "optimize q --aim=''", "optimize q --aim=Space",
        "optimize q --aim=space,even", "optimize q --aim"),
    (errno.ENOENT, "no OSD"): tuple([f"explain {what}" for what in (
        "osd.24", "24", "osd.x", "-1", "99.0", "2.ffff", "2.", "\u00b2", "host99")]),
    (errno.ENOENT, ""): (
        "eval --fail osd.999", "eval --fail ''", "eval vms --worst-failure", "drain add osd.999",
        "drain rm 3", "osds nowhere", "osds osd.77", "osds 3 nowhere", "osds ''"),
    (errno.EINVAL, ""): (
        "eval --fail default", "eval --fail 1 --worst-failure", "eval --add h9",
        "eval --add h9:1x1T", "eval --resize 3", "eval vms --remove 3",
        "eval --remove 3 --worst-failure", "eval --pg-num vms=8 --fail 3", "osds --sort size",
        "osds --limit 0", "drain ls --format xml", "rm ''"),
    (errno.EINVAL, "used, stored"): ("df --sort weight",),
    (errno.EINVAL, "--limit"): ("history --limit 0",),
    (errno.EINVAL, "osd.2"): ("explain osd.1 osd.2",),
    (errno.EINVAL, "4"): ("explain 2.1f 3 4",),
    (errno.EINVAL, "foo"): ("explain 2.1f foo",),
    (errno.ENOENT, "osd.24"): ("explain 2.1f osd.24",),
    (errno.ENOENT, "99"): ("explain 99.0 3", "explain pool/99"),
    (errno.EINVAL, "vms"): ("explain vms 3",),
    (errno.EINVAL, "no PG"): ("explain --osd 3",),
    (errno.EINVAL, "plan"): ("optimize", "show", "dump", "execute", "rm"),
    (errno.EINVAL, "pools"): ("pool add", "pool rm"),
    (errno.EINVAL, "pool"): ("pool",),
    (errno.EINVAL, "nonsense"): ("nonsense",),
    (errno.EINVAL, "equilibrium"): ("",),
    (errno.EINVAL, "--verbose"): ("status --verbose",),
    (errno.EINVAL, "p"): ("ls p",),
    (errno.EINVAL, "q"): ("show p q",),
    (errno.EINVAL, "extra"): ("status extra",),
    (errno.EINVAL, "all pools are balanced"): ("pool rm fast",),
}


def test_bad_lines(session: Session) -> None:
    optimize(session)
    sent = count_commands(session)
    for (code, part), lines in REFUSED.items():
        for line in lines:
            refuses(session, line, code, part)
            assert [plan["plan"] for plan in ask(session, "ls")["plans"]] == ["p"], line
    assert ask(session, "pool ls") == {"pools": []}
    assert ask(session, "drain ls")["osds"] == []
    assert sent == []


def test_too_many_plans(session: Session) -> None:
    optimize(session, "p0")
    plan = session.module.plan_store.get("p0")
    for number in range(1, 100):
        session.module.plan_store.put(f"p{number}", plan, session.clock())
    refuses(session, "optimize one-more", errno.ENOSPC, "rm")
    optimize(session, "p7")                     # a name that is there may be made again
    run(session, "equilibrium rm p8")
    optimize(session, "one-more")


def test_a_name_that_is_taken(session: Session) -> None:
    plan = optimize(session, "p --max-moves 3")
    rc, text = refused(session, "equilibrium optimize p vms")
    assert rc == -errno.EEXIST
    assert "'p' is kept already" in text
    assert "'--replace'" in text
    assert ask(session, "dump p") == plan
    assert len(optimize(session, "p --max-moves 4")["moves"]) == 4
