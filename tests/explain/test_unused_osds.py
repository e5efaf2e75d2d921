"""Why an OSD gets nothing: its CRUSH weight, its device class, its place, or that it is out."""
from __future__ import annotations

import pytest
from mgr_stub.console.session import Session
from tests.commands.asking import ask, run

_CLASS = "host new (2 OSDs) is under default where no pool's rule uses class nvme"
_OUT = "'ceph osd in 24', and 'ceph osd unset noin' where that flag keeps new OSDs out"


@pytest.mark.parametrize("line, device_class, text, action", [
    ("sim osd crush-reweight 24 0", "hdd", "its CRUSH weight is 0",
     "'ceph osd crush reweight osd.24 2.00000' gives it its whole size again"),
    ("sim run 1s", "nvme", _CLASS, "nothing"),
    ("sim osd out 24", "hdd", "no shard may go to it: it is out", _OUT)])
def test_what_keeps_an_osd_empty_is_told(line: str, device_class: str, text: str,
                                         action: str) -> None:
    session = Session.from_state(None, release=18, seed=0, frozen=False)
    run(session, f"sim host add new 2 2T class={device_class}", line, "sim run 1m",
        "equilibrium status", "sim run 1m")   # a look
    found = ask(session, "explain osd.24")
    assert (found["reason_text"], found["action"]) == (text, action)
    session.close()


def test_hosts_that_no_rule_uses_are_one_line() -> None:
    session = Session.from_state(None, release=18, seed=0, frozen=False)
    run(session, *[f"sim host add new{host} 2 2T class=nvme" for host in range(3)],
        "sim run 1m", "equilibrium status", "sim run 1m")
    screen = " ".join(run(session, "equilibrium status").split())
    assert screen.count("unused:") == 1 and "class nvme and 2 more" in screen
    assert len(ask(session, "status")["unused_hosts"]) == 3
    session.close()
