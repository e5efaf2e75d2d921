"""A list of pools that is emptied, or names none, never becomes one of all pools."""

from __future__ import annotations

import json

import pytest

from mgr_stub.console.session import Session

from ..asking import health, run, up_sets


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
