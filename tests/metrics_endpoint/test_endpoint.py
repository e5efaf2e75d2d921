"""The server follows the options; what fails is told and tried again."""
from __future__ import annotations

import errno
import logging
import socket
import threading
from contextlib import closing
from http.client import HTTPException
from typing import Any, Callable, Iterator, List

import pytest

from equilibrium_mgr.metrics_endpoint import endpoint as endpoint_module
from equilibrium_mgr.metrics_endpoint.endpoint import MetricsEndpoint, MetricsServer

from .client import free_port, get

LOG = logging.getLogger("test")


class Served:
    """An endpoint, what it announces, and how often it renders."""

    def __init__(self) -> None:
        self.uris: List[str] = []
        self.renders = 0
        self.endpoint = MetricsEndpoint(self.render, self.uris.append, lambda: "10.0.0.7", LOG)

    def render(self) -> str:
        self.renders += 1
        return f"renders {self.renders}\n"


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.endpoint.stop()


def test_off_by_default_and_again(served: Served) -> None:
    threads = threading.active_count()
    served.endpoint.apply("::", 0)
    assert served.uris == [] and threading.active_count() == threads
    port = free_port()
    served.endpoint.apply("::", port)
    assert get(port).status == 200
    served.endpoint.apply("::", 0)
    assert served.uris == [f"http://10.0.0.7:{port}/", ""]
    assert threading.active_count() == threads
    with pytest.raises(OSError):
        get(port)


def test_the_same_options_change_nothing(served: Served) -> None:
    port = free_port()
    for _ in range(3):
        served.endpoint.apply("127.0.0.1", port)
    assert served.uris == [f"http://127.0.0.1:{port}/"]


def test_another_port_or_address_at_once(served: Served) -> None:
    first, second = free_port(), free_port()
    served.endpoint.apply("127.0.0.1", first)
    served.endpoint.apply("127.0.0.1", second)
    assert get(second).status == 200
    with pytest.raises(OSError):
        get(first)
    served.endpoint.apply("::1", second)
    assert served.uris[-1] == f"http://[::1]:{second}/"
    assert get(second, host="[::1]").status == 200


def test_a_port_in_use_is_told_once_and_tried_again(
        served: Served, caplog: pytest.LogCaptureFixture) -> None:
    with closing(socket.socket()) as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        for _ in range(3):
            served.endpoint.apply("::", port)
        assert served.endpoint.failure == "Address already in use"
        assert [record.levelname for record in caplog.records] == ["ERROR"]
    served.endpoint.apply("::", port)
    assert served.endpoint.failure is None and get(port).status == 200


@pytest.mark.parametrize("address", ["", "203.0.113.5", "fe80::1%nowhere"])
def test_an_address_that_is_not_here(served: Served, address: str) -> None:
    served.endpoint.apply(address, free_port())
    assert served.uris == [] and (served.endpoint.failure or not address)
    served.endpoint.apply(address, 0)
    assert served.endpoint.failure is None


def test_a_host_without_ipv6(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoIpv6(MetricsServer):
        def __init__(self, address: str, *arguments: Any) -> None:
            if ":" in address:
                raise OSError(errno.EAFNOSUPPORT, "no IPv6")
            super().__init__(address, *arguments)
    monkeypatch.setattr(endpoint_module, "MetricsServer", NoIpv6)
    port = free_port()
    served.endpoint.apply("::", port)
    assert get(port).status == 200 and served.endpoint.failure is None


def test_many_scrapes_at_a_time_render_once(served: Served) -> None:
    port = free_port()
    served.endpoint.apply("127.0.0.1", port)
    assert {get(port).read() for _ in range(10)} <= {b"renders 1\n", b"renders 2\n"}


def test_a_failed_rendering_is_logged_and_not_kept(caplog: pytest.LogCaptureFixture) -> None:
    failing = [True]

    def render() -> str:
        if failing.pop():
            raise KeyError("gone")
        return "up 1\n"
    failing.insert(0, False)
    endpoint = MetricsEndpoint(render, lambda uri: None, lambda: "h", LOG)
    port = free_port()
    endpoint.apply("127.0.0.1", port)
    try:
        with pytest.raises(OSError):
            get(port)
        assert get(port).read() == b"up 1\n"
    finally:
        endpoint.stop()
    assert "cannot be rendered" in caplog.text


def test_nothing_listens_after_stop(served: Served) -> None:
    port = free_port()
    served.endpoint.stop()
    served.endpoint.apply("127.0.0.1", port)
    with pytest.raises(OSError):
        get(port)


def test_stop_while_clients_come(served: Served) -> None:
    port = free_port()
    served.endpoint.apply("127.0.0.1", port)
    stop: Callable[[], None] = served.endpoint.stop
    ends = threading.Event()

    def scrape() -> None:
        while not ends.is_set():
            try:
                get(port, seconds=2.0).read()
            except (OSError, HTTPException):
                pass
    clients = [threading.Thread(target=scrape) for _ in range(4)]
    for client in clients:
        client.start()
    stop()
    ends.set()
    for client in clients:
        client.join(10.0)
    assert not [t for t in threading.enumerate() if "process_request" in t.name]
