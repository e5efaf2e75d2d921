"""`optimize` with --from, --to and --not, and the options of automatic balancing that do the same.
"""

from __future__ import annotations

from typing import Any, Dict, Set


from mgr_stub.console.session import Session

from ..asking import optimize, run


def hosts_of(session: Session, plan: Dict[str, Any], end: str) -> Set[str]:
    crush = session.cluster.crush
    return {str(crush.host_of(move[end])) for move in plan["moves"]}


def some_hosts(session: Session) -> list[str]:
    crush = session.cluster.crush
    return sorted({str(crush.host_of(osd)) for osd, name in crush.classes.items()
                   if name == "hdd"})


def test_to_and_not(session: Session) -> None:
    a, b, c = some_hosts(session)[:3]
    plan = optimize(session, f"p --to {a}")
    assert plan["moves"]
    assert hosts_of(session, plan, "to") == {a}
    plan = optimize(session, f"p --not {a},{b}")
    assert plan["moves"]
    for end in ("from", "to"):
        assert not hosts_of(session, plan, end) & {a, b}
    plan = optimize(session, f"p --from osd.{plan['moves'][0]['from']}")
    assert len({move["from"] for move in plan["moves"]}) == 1


def test_arguments_replace_the_options(session: Session) -> None:
    a, b = some_hosts(session)[:2]
    run(session, f"config set mgr mgr/equilibrium/from_buckets {a}")
    assert hosts_of(session, optimize(session, "p"), "from") == {a}
    assert hosts_of(session, optimize(session, f"p --from {b}"), "from") == {b}
