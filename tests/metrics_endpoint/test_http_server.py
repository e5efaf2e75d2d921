"""One text by HTTP, whatever clients do."""
from __future__ import annotations

import socket
import threading
import time
import urllib.error
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Callable, Iterator

import pytest
from tests.support.few import few

from equilibrium_mgr.metrics_endpoint.endpoint import CONTENT_TYPE, MOST_CONNECTIONS, MetricsServer

from .client import free_port, get, is_closed, raw

#: For slow clients here, instead of seconds.
SECONDS = 0.4


@contextmanager
def serving(render: Callable[[], str] = lambda: "up 1\n",
            seconds: float = SECONDS) -> Iterator[int]:
    port = free_port()
    server = MetricsServer("127.0.0.1", port, render, seconds)
    server.start()
    try:
        yield port
    finally:
        server.stop()


def test_metrics() -> None:
    with serving() as port:
        answer = get(port)
        assert answer.read() == b"up 1\n"
        assert answer.headers["Content-Type"] == CONTENT_TYPE
        assert get(port, "/metrics?x=1").read() == b"up 1\n"
        assert get(port, "/").read() == b"up 1\n"   # what `ceph mgr services` names


@pytest.mark.parametrize("path", ["/metrics/", "/..", "/status", "/%2e%2e/etc/passwd"])
def test_nothing_else(path: str) -> None:
    with serving() as port, pytest.raises(urllib.error.HTTPError) as caught:
        get(port, path)
    assert caught.value.code == 404


@pytest.mark.parametrize("request_line, status", [
    (b"POST /metrics HTTP/1.1", b"501"), (b"DELETE / HTTP/1.0", b"501"), (b"nonsense", b"400"),
    (b"GET /metrics HTTP/9.9", b"505"), (b"\x16\x03\x01\x00", b"400")])
def test_other_requests_are_refused(request_line: bytes, status: bytes) -> None:
    with serving() as port:
        assert status in raw(port, request_line + b"\r\n\r\n")
        assert get(port).read() == b"up 1\n"


def test_a_connection_ends_with_its_answer() -> None:
    with serving() as port:
        answer = raw(port, b"GET /metrics HTTP/1.1\r\nConnection: keep-alive\r\n\r\n"
                     b"GET /metrics HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.0 200") and answer.count(b"HTTP/1.0") == 1


def test_a_silent_client_holds_nobody_and_is_closed() -> None:
    with serving() as port, closing(socket.create_connection(("127.0.0.1", port))) as slow:
        assert get(port, seconds=2.0).read() == b"up 1\n"
        assert is_closed(slow, 10 * SECONDS)


def test_a_client_that_sends_byte_by_byte_is_closed_in_time() -> None:
    with serving() as port, closing(socket.create_connection(("127.0.0.1", port))) as slow:
        started = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - started < 20 * SECONDS:
                slow.send(b"G")
                time.sleep(SECONDS / 10)
        assert time.monotonic() - started < 10 * SECONDS


def test_an_endless_request_is_not_read() -> None:
    with serving(seconds=30.0) as port, closing(
            socket.create_connection(("127.0.0.1", port))) as client:
        with pytest.raises(ConnectionError):
            for _ in range(100_000):   # more than the buffers of the system take
                client.sendall(b"x" * 4096)
        assert get(port).read() == b"up 1\n"


def test_many_slow_clients_cost_a_few_threads() -> None:
    """Those that have kept their request back for longest make room."""
    with serving(seconds=30.0) as port, ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                for _ in range(MOST_CONNECTIONS)]
        time.sleep(0.5)
        before = threading.active_count()
        for connection in slow[:5]:
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert is_closed(connection, 10.0)
        deadline = time.monotonic() + 10.0
        while threading.active_count() > before:   # those that were closed end at once
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert not any(is_closed(connection, 0.01) for connection in slow[5:])


@pytest.mark.parametrize("words", few([b"", b"GET /metrics HTTP/1.1\r\nHost: "], 1))
def test_slow_clients_shut_no_scraper_out(words: bytes) -> None:
    """They come again as soon as they are closed, silent or with a part of a request."""
    gone = threading.Event()

    def client(port: int) -> None:
        while not gone.is_set():
            with suppress(OSError), closing(
                    socket.create_connection(("127.0.0.1", port), timeout=5.0)) as connection:
                connection.sendall(words)
                connection.recv(1)

    with serving(seconds=5.0) as port:
        threads = [threading.Thread(target=client, args=(port,))
                   for _ in range(MOST_CONNECTIONS + 4)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        try:
            for _ in range(40):
                assert get(port).read() == b"up 1\n"
        finally:
            gone.set()
    for thread in threads:
        thread.join()


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
