"""The server follows the options; what fails is told and tried again."""
from __future__ import annotations

import errno
import logging
from typing import Any, Iterator, List

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
        self.fails = False
        self.endpoint = MetricsEndpoint(self.render, self.uris.append, lambda: "10.0.0.7", LOG)

    def render(self) -> str:
        self.renders += 1
        if self.fails:
            raise KeyError("gone")
        return f"renders {self.renders}\n"


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.endpoint.stop()


@pytest.mark.parametrize("address", ["", "203.0.113.5", "fe80::1%nowhere"])
def test_an_address_that_is_not_here(served: Served, address: str) -> None:
    served.endpoint.apply(address, free_port())
    assert served.uris == [] and (served.endpoint.failure or not address)
    served.endpoint.apply(address, 0)
    assert served.endpoint.failure is None


def test_without_an_address_an_older_failure_is_over(served: Served) -> None:
    port = free_port()
    served.endpoint.apply("203.0.113.5", port)
    assert served.endpoint.failure
    served.endpoint.apply("", port)
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


def test_a_failed_rendering_is_logged_and_not_kept(served: Served,
                                                   caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    served.fails = True
    served.endpoint.apply("127.0.0.1", port)
    with pytest.raises(OSError):
        get(port)
    served.fails = False
    assert get(port).read() == b"renders 2\n"
    assert "cannot be rendered" in caplog.text


def test_nothing_listens_after_stop(served: Served) -> None:
    port = free_port()
    served.endpoint.stop()
    served.endpoint.apply("127.0.0.1", port)
    with pytest.raises(OSError):
        get(port)
