"""Keeps the HTTP server as the options say: off, or at an address and port.

An HTTP server for one text, which no client can hold up.

A connection is closed after its answer, or once it has been silent for some seconds. Only so many
are served at a time, others are closed at once. The server and each connection have threads of
their own.
"""
from __future__ import annotations

import errno
import logging
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Callable, Optional, Set, Tuple

from ..runtime.time_slice import giving_way


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Of silence before a connection is closed.
SECONDS = 5.0
#: Served at the same time.
MOST_CONNECTIONS = 16
_POLL_SECONDS = 0.25
_INDEX = (b"<!DOCTYPE html><title>Equilibrium</title>"
          b"<h1>Equilibrium</h1><p><a href=\"/metrics\">Metrics</a></p>\n")


class MetricsServer(ThreadingMixIn, HTTPServer):
    """Listens from its construction on (raises OSError), serves from `start` to `stop`."""

    request_queue_size = 16

    def __init__(self, address: str, port: int, render: Callable[[], str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.render = render
        self.open: Set[socket.socket] = set()
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL_SECONDS,), name="equilibrium-metrics",
            daemon=True)
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Binds to IPv4 as well where the address is `::`. HTTPServer would ask the DNS for the
        host's name, which may take seconds."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def start(self) -> None:
        """Begins to answer, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Closes the listening socket and all connections; their threads have ended on return."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        for connection in list(self.open):
            with suppress(OSError):   # where the client has gone
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a thread of its own, where there is room."""
        if len(self.open) >= MOST_CONNECTIONS:
            self.shutdown_request(request)
            return
        self.open.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The body of such a thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is too slow, or goes away: nothing is logged for a request."""


class _Handler(BaseHTTPRequestHandler):
    """One request; HTTP/1.0, so that the connection ends with it."""

    protocol_version, timeout = "HTTP/1.0", SECONDS
    server_version, sys_version = "equilibrium", ""
    server: MetricsServer

    def do_GET(self) -> None:
        """`/metrics`, and an index with a link to it."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            try:
                text = self.server.render().encode()
            except Exception:   # logged by the renderer
                self.send_error(500)
            else:
                self._answer(CONTENT_TYPE, text)
        elif path == "/":
            self._answer("text/html; charset=utf-8", _INDEX)
        else:
            self.send_error(404)

    def _answer(self, content_type: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: a scrape comes every few seconds."""


#: For every address of the host; where that has no IPv6, the other one means the same.
_ANY, _ANY_IPV4 = "::", "0.0.0.0"


class MetricsEndpoint:
    """`apply` and `stop` are called by one thread at a time.

    `render` returns the metrics, from any thread; `set_uri` announces where they are, "" for
    nowhere; `own_address` is the host's address, for people, where the server listens on all.
    """

    def __init__(self, render: Callable[[], str], set_uri: Callable[[str], None],
                 own_address: Callable[[], str], log: logging.Logger) -> None:
        self._render = render
        self._set_uri = set_uri
        self._own_address = own_address
        self._log = log
        self._lock = threading.Lock()
        self._stopped = False
        self._server: Optional[MetricsServer] = None
        self._wanted: Tuple[str, int] = ("", 0)
        self.failure: Optional[str] = None   # why it does not listen although it should

    def apply(self, address: str, port: int) -> None:
        """Listens there, or nowhere where the port is 0 or the address empty; where that fails,
        `failure` says why and the next call tries again."""
        with self._lock:
            if self._stopped or (address, port) == self._wanted and (
                    self._server is not None or not port):
                return
            if self._server is not None:
                self._close()
                self._set_uri("")
            self._wanted = (address, port)
            self.failure = None if not port else self.failure
            if not (address and port):
                return
            try:
                self._server = self._bound(address, port)
            except (OSError, ValueError, OverflowError) as error:
                failure = getattr(error, "strerror", None) or str(error)
                if failure != self.failure:
                    self._log.error("no metrics are served at %s port %d: %s", address, port,
                                    failure)
                self.failure = failure
                return
            self.failure = None
            self._server.start()
            host = self._own_address() if address in (_ANY, _ANY_IPV4) else address
            uri = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
            self._set_uri(uri)
            self._log.info("metrics are served at %smetrics", uri)

    def stop(self) -> None:
        """Ends the server for good; its threads have ended and its port is free on return."""
        with self._lock:
            self._stopped = True
            self._close()

    def _bound(self, address: str, port: int) -> MetricsServer:
        try:
            return MetricsServer(address, port, self._text)
        except OSError as error:
            if address != _ANY or error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise
        return MetricsServer(_ANY_IPV4, port, self._text)

    def _close(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def _text(self) -> str:
        try:
            with giving_way():
                return self._render()
        except Exception:
            self._log.exception("the metrics cannot be rendered")
            raise
