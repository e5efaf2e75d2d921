"""`optimize` with --max-moves, --max-bytes, pools and --device-class; `pool ls|add|rm`."""

from __future__ import annotations

import errno
import json

import pytest

from mgr_stub.console.session import Session

from ..asking import ask, health, optimize, pools_of, refused, refuses, run, up_sets


def test_a_limit_too_small_for_any_move(session: Session) -> None:
    assert optimize(session, "p --max-bytes 1")["moves"] == []
    assert run(session, "equilibrium execute p") == "p: nothing to move\n"


def test_pool_list(session: Session) -> None:
    assert ask(session, "pool ls") == {"pools": []}
    assert ask(session, "pool add fast vms") == {"pools": ["vms", "fast"]}
    assert ask(session, "pool add vms") == {"pools": ["vms", "fast"]}
    assert run(session, "config get mgr mgr/equilibrium/pool_ids") == "2,6"
    assert run(session, "equilibrium pool ls") == "vms\nfast\n"
    assert pools_of(session, optimize(session)) == {"vms", "fast"}
    assert ask(session, "pool rm vms") == {"pools": ["fast"]}
    assert pools_of(session, optimize(session)) == {"fast"}
    assert pools_of(session, optimize(session, "p vms")) == {"vms"}   # named pools go first
    assert ask(session, "pool rm vms") == {"pools": ["fast"]}         # was not in the list
    rc, said = refused(session, "equilibrium pool rm fast")   # it would widen what is moved
    assert rc == -errno.EPERM
    assert "all pools" in said
    assert "\n" not in said
    assert ask(session, "pool ls") == {"pools": ["fast"]}
    run(session, "config rm mgr mgr/equilibrium/pool_ids", "sim run 1s")
    assert len(pools_of(session, optimize(session))) > 2


@pytest.mark.parametrize("value, removed", [("9999", "9999"), ("fast", "vms")])
def test_a_list_of_no_pool_never_becomes_one_of_all(session: Session, value: str,
                                                    removed: str) -> None:
    """What the health check names is followed to the letter, and so is what looks right."""
    run(session, f"config set mgr mgr/equilibrium/pool_ids {value}", "equilibrium on",
        "sim run 5m")
    before = up_sets(session)
    session.command(f"equilibrium pool rm {removed}")
    assert f"equilibrium pool rm {removed}" not in json.dumps(health(session))
    run(session, "sim run 20m")
    assert session.module.settings().pool_ids is not None
    assert up_sets(session) == before


def test_removing_from_no_list_changes_nothing(session: Session) -> None:
    rc, said = refused(session, "equilibrium pool rm fast")   # it goes on being balanced
    assert rc == -errno.EINVAL
    assert "all pools are balanced" in said
    refuses(session, "pool rm nope", errno.ENOENT)
    assert session.module.settings().pool_ids is None


def test_pool_list_survives_failover_and_pool_deletion(session: Session) -> None:
    run(session, "equilibrium pool add fast vms", "sim failover")
    assert ask(session, "pool ls") == {"pools": ["vms", "fast"]}
    run(session, "sim pool rm fast", "sim run 2m")
    gone = ask(session, "pool ls")["pools"]
    assert gone[0] == "vms"
    assert len(gone) == 2
    assert "fast" not in gone
    assert ask(session, "pool add backup")["pools"][:2] == ["vms", "backup"]
