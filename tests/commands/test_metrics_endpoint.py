"""The endpoint as an operator sees it: options, `ceph mgr services`, health, failovers."""
from __future__ import annotations

import json
import socket
from contextlib import closing
from typing import Dict

from tests.commands.asking import ask, health, run
from tests.metrics_endpoint.client import free_port, get
from tests.support.exposition import parse

from mgr_stub.console.session import Session

_SET = "config set mgr mgr/equilibrium/"


def services(session: Session) -> Dict[str, str]:
    shown: Dict[str, str] = json.loads(run(session, "mgr services"))
    return shown


def serve(session: Session) -> int:
    port = free_port()
    run(session, f"{_SET}metrics_port {port}", "sim run 1s")
    return port


def is_silent(port: int) -> bool:
    try:
        get(port, seconds=2.0)
    except OSError:
        return True
    return False


def test_options_take_effect_at_once(session: Session) -> None:
    port = serve(session)
    assert services(session) == {"equilibrium": f"http://127.0.0.1:{port}/"}
    scraped = parse(get(port).read().decode())
    asked = parse(run(session, "equilibrium metrics"))
    assert scraped == asked
    assert scraped.by("state")["off"] == 1.0
    run(session, f"{_SET}metrics_addr 127.0.0.1", "sim run 1s")
    assert services(session) == {"equilibrium": f"http://127.0.0.1:{port}/"}
    run(session, f"{_SET}metrics_port 0", "sim run 1s")
    assert services(session) == {}
    assert is_silent(port)


def test_a_value_of_this_mgr_alone(session: Session) -> None:
    common, own = serve(session), free_port()
    run(session, f"{_SET}x/metrics_port {own}", f"{_SET}y/metrics_port 1", "sim run 1s")
    assert get(own).status == 200
    assert is_silent(common)
    shown = {option["name"]: option["value"] for option in ask(session, "status")["options"]}
    assert shown["metrics_port"] == str(own)
    run(session, "config rm mgr mgr/equilibrium/x/metrics_port", "sim run 1s")
    assert get(common).status == 200
    assert is_silent(own)


def test_a_failover_takes_the_port_along(session: Session) -> None:
    port = serve(session)
    session.host.failover()
    run(session, "sim run 1s")
    assert get(port).status == 200
    session.close()
    assert is_silent(port)


def test_a_port_in_use_is_a_warning_and_stops_nothing(session: Session) -> None:
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        run(session, f"{_SET}metrics_port {port}", "equilibrium on", "sim run 5m")
        check = health(session)["MGR_EQUILIBRIUM_BAD_OPTION"]
        assert f"metrics_port is '{port}'" in check["detail"][0]
        assert "Address already in use" in check["detail"][0]
        assert services(session) == {}
        assert session.module.balancer.status.progress is not None
    run(session, "sim run 2m")
    assert "MGR_EQUILIBRIUM_BAD_OPTION" not in health(session)
    assert get(port).status == 200


def test_scrapes_during_rounds_take_no_lock_of_the_loop(session: Session) -> None:
    """A round that stands still holds no scrape."""
    port = serve(session)
    seen = []
    session.module.balancer.observer.compute_bounds = lambda *_, **__: seen.append(
        get(port, seconds=5.0).read())
    run(session, "equilibrium on", "sim run 2m")
    assert seen
    assert all(seen)
