"""Unknown names and senseless values: a negative errno and one sentence, and nothing changes."""

from __future__ import annotations

import errno

from mgr_stub.console.session import Session

from .asking import ask, count_commands, optimize, refused, run

LINES = [
    *((f"{verb} nope", errno.ENOENT, "nope") for verb in (
        "show", "dump", "eval", "execute", "rm")),
    ("optimize q nope", errno.ENOENT, "nope"),
    ("optimize q vms nope", errno.ENOENT, "nope"),
    ("pool add nope", errno.ENOENT, "nope"),
    ("pool add vms nope", errno.ENOENT, "nope"),
    ("pool rm nope", errno.ENOENT, "nope"), ("pool rm 99", errno.ENOENT, "'99'"),
    ("optimize q 2 99", errno.ENOENT, "'99'"),
    ("optimize q --device-class nvme", errno.ENOENT, "nvme"),
    ("optimize q --device-class ''", errno.ENOENT, "class"),
    *((f"optimize q --max-bytes={size}", errno.EINVAL, "max-bytes") for size in (
        "12X", "-5", "abc", "0", "''", "1..5T", "T", "1e400", "9" * 400, "nan")),
    *((f"optimize q --max-moves={count}", errno.EINVAL, "max") for count in (
        "0", "-3", "abc", "1.5", "''")),
    *((f"optimize {name}", errno.EINVAL, "name") for name in (
        "''", "'a b'", "a/b", "../p", "p%", "x" * 65, "'p\n'", "pl\u00e4n", "'p;rm'")),
    *((f"optimize q --aim={aim}", errno.EINVAL, "aim") for aim in (
        "evenly", "''", "Space", "space,even")),
    ("optimize q --aim", errno.EINVAL, "aim"), ("explain nope", errno.ENOENT, "nope"),
    *((f"explain {what}", errno.ENOENT, "no OSD") for what in (
        "osd.24", "24", "osd.x", "-1", "99.0", "2.ffff", "2.", "\u00b2", "host99")),
    ("explain osd.1 osd.2", errno.EINVAL, "osd.2"), ("explain 2.1f 3 4", errno.EINVAL, "4"),
    ("explain 2.1f foo", errno.EINVAL, "foo"), ("explain 2.1f osd.24", errno.ENOENT, "osd.24"),
    ("explain 99.0 3", errno.ENOENT, "99.0"), ("explain vms 3", errno.EINVAL, "vms"),
    ("explain --osd 3", errno.EINVAL, "no PG"),
    *((verb, errno.EINVAL, "plan") for verb in ("optimize", "show", "dump", "execute", "rm")),
    ("pool add", errno.EINVAL, "pools"), ("pool rm", errno.EINVAL, "pools"),
    ("pool", errno.EINVAL, "pool"), ("nonsense", errno.EINVAL, "nonsense"),
    ("", errno.EINVAL, "equilibrium"),
    ("status --verbose", errno.EINVAL, "--verbose"), ("ls p", errno.EINVAL, "p"),
    ("show p q", errno.EINVAL, "q"), ("status extra", errno.EINVAL, "extra"),
    ("optimize q --max-bytes", errno.EINVAL, "max-bytes"),
]


def test_bad_lines(session: Session) -> None:
    optimize(session)
    sent = count_commands(session)
    for line, code, part in LINES:
        rc, text = refused(session, "equilibrium " + line)
        assert rc == -code and part in text, line
        assert [p["plan"] for p in ask(session, "ls")["plans"]] == ["p"], line
    assert ask(session, "pool ls") == {"pools": []}
    assert sent == []


def test_too_many_plans(session: Session) -> None:
    optimize(session, "p0")
    plan = session.module.plan_store.get("p0")
    for number in range(1, 100):
        session.module.plan_store.put(f"p{number}", plan, session.clock())
    rc, text = refused(session, "equilibrium optimize one-more")
    assert rc == -errno.ENOSPC and "rm" in text
    optimize(session, "p7")                     # a name that is there may be made again
    run(session, "equilibrium rm p8")
    optimize(session, "one-more")


def test_a_name_that_is_taken(session: Session) -> None:
    plan = optimize(session, "p --max-moves 3")
    rc, text = refused(session, "equilibrium optimize p vms")
    assert rc == -errno.EEXIST and "'p' is kept already" in text and "'--replace'" in text
    assert ask(session, "dump p") == plan
    assert len(optimize(session, "p --max-moves 4")["moves"]) == 4
