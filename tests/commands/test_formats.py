"""Every command in every format: return codes, types, units."""

from __future__ import annotations

import json

from mgr_stub.console.session import Session

from .asking import ask, optimize

#: Reading commands; a plan `p` is ready. The keys of their JSON stand in tests/screens/golden.
READS = ("status", "eval", "eval vms", "eval --fail 1", "eval --worst-failure", "eval p",
         "eval p --aims", "show p", "dump p", "ls", "history", "pool ls", "explain",
         "explain osd.3", "explain vms", "explain 2.1f", "dump-state", "dump-state --anonymous")
#: Writing commands, in an order in which each can be carried out after a plan `p` is ready.
WRITES = ["optimize q", "pool add vms backup", "pool rm vms", "execute p", "off", "on",
          "off", "rm q", "reset"]


def test_reads_in_every_format(session: Session) -> None:
    optimize(session)
    for line in READS:
        answers = {}
        for name in ("plain", "json", "json-pretty"):
            rc, out, err = session.command(f"equilibrium {line} --format {name}")
            assert (rc, err) == (0, ""), line
            answers[name] = out
        compact = json.loads(answers["json"])
        assert json.loads(answers["json-pretty"]) == compact, line
        assert "\n" not in answers["json"].rstrip("\n"), line
        assert answers["json-pretty"].count("\n") > 2, line
        assert answers["plain"].strip(), line
        assert session.command("equilibrium " + line)[1] == answers["plain"]


def test_writes_in_json(session: Session) -> None:
    """Their plain answers stand in tests/screens/golden."""
    optimize(session)
    for line in WRITES:
        assert isinstance(ask(session, line), dict), line
