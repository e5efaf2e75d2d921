"""One text by HTTP, whatever clients do."""
from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, closing
from typing import Iterator

import pytest

from equilibrium_mgr.metrics_endpoint import endpoint
from equilibrium_mgr.metrics_endpoint.endpoint import CONTENT_TYPE, MOST_CONNECTIONS, MetricsServer

from .client import free_port, get, is_closed

#: For slow clients here, instead of seconds.
SECONDS = 0.4


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(endpoint._Handler, "timeout", SECONDS)
    found = free_port()
    server = MetricsServer("127.0.0.1", found, lambda: "up 1\n")
    server.start()
    yield found
    server.stop()


def test_metrics_and_an_index(port: int) -> None:
    answer = get(port)
    assert answer.read() == b"up 1\n"
    assert answer.headers["Content-Type"] == CONTENT_TYPE
    assert b'href="/metrics"' in get(port, "/").read()
    assert get(port, "/metrics?x=1").read() == b"up 1\n"


def test_a_silent_client_holds_nobody_and_is_closed(port: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", port))) as slow:
        assert get(port, seconds=2.0).read() == b"up 1\n"
        assert is_closed(slow, 10 * SECONDS)


def test_so_many_are_served_at_a_time(port: int) -> None:
    """More are closed at once; as one ends there is room again."""
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        with closing(socket.create_connection(("127.0.0.1", port))) as more:
            assert is_closed(more, SECONDS / 2)
        time.sleep(3 * SECONDS)
        assert get(port).read() == b"up 1\n"


def test_stop_leaves_neither_threads_nor_sockets() -> None:
    threads = set(threading.enumerate())
    port = free_port()
    server = MetricsServer("127.0.0.1", port, lambda: "up 1\n")
    server.start()
    with closing(socket.create_connection(("127.0.0.1", port))) as slow:
        time.sleep(0.1)
        started = time.monotonic()
        server.stop()
        assert time.monotonic() - started < 2.0
        assert is_closed(slow, 1.0)
    assert set(threading.enumerate()) <= threads
    again = MetricsServer("127.0.0.1", port, lambda: "")
    again.stop()   # never started


def test_any_address_is_ipv4_as_well() -> None:
    port = free_port()
    server = MetricsServer("::", port, lambda: "up 1\n")
    server.start()
    try:
        assert get(port).read() == get(port, host="[::1]").read() == b"up 1\n"
    finally:
        server.stop()
