"""Keeps the HTTP server as the options say: off, or at an address and port.

An HTTP server for one text, which no client can hold up.

A connection has so many seconds to send its request and take the answer, and is closed after one
of them. Only so many are served at a time: where one more comes, the one that has kept its request
back for longest makes room. The server and each connection have threads of their own.
"""
from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Callable, Dict, Optional, Tuple

from ..runtime.time_slice import giving_way


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: For the request and the answer together.
SECONDS = 10.0
#: Served at the same time.
MOST_CONNECTIONS = 16
_POLL_SECONDS = 0.25
_INDEX = (b"<!DOCTYPE html><title>Equilibrium</title>"
          b"<h1>Equilibrium</h1><p><a href=\"/metrics\">Metrics</a></p>\n")


class MetricsServer(ThreadingMixIn, HTTPServer):
    """Listens from its construction on (raises OSError), serves from `start` to `stop`."""

    request_queue_size = 16

    def __init__(self, address: str, port: int, render: Callable[[], str],
                 seconds: float = SECONDS) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.render = render
        self.seconds = seconds
        #: since when they are open, and whether their request has not come yet; the oldest first
        self.open: Dict[socket.socket, Tuple[float, bool]] = {}
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
            _shut(connection)
        self.server_close()

    def service_actions(self) -> None:
        """Ends connections that take too long, several times a second."""
        for connection, (since, _) in list(self.open.items()):
            if time.monotonic() - since > self.seconds:
                _shut(connection)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a thread of its own, where there is room or can be made."""
        if len(self.open) >= MOST_CONNECTIONS:
            slow = next((one for one, (_, waits) in list(self.open.items()) if waits), None)
            if slow is None:
                self.shutdown_request(request)
                return
            self.open.pop(slow, None)
            _shut(slow)
        self.open[request] = time.monotonic(), True
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """The body of such a thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is too slow, or goes away: nothing is logged for a request."""


def _shut(connection: socket.socket) -> None:
    """Ends a connection; its thread goes on at once, and ends too."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass   # the client has gone


class _Handler(BaseHTTPRequestHandler):
    """One request; HTTP/1.0, so that the connection ends with it."""

    protocol_version = "HTTP/1.0"
    server_version, sys_version = "equilibrium", ""
    server: MetricsServer

    def do_GET(self) -> None:
        """`/metrics`, and an index with a link to it."""
        path, connection = self.path.partition("?")[0], self.connection
        if connection in self.server.open:   # what is answered makes no room for others
            self.server.open[connection] = self.server.open[connection][0], False
        if path == "/metrics":
            try:
                text = self.server.render().encode()
            except Exception:   # logged by the renderer
                self.send_error(500)
                return
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
#: Seconds for which one text answers all scrapes.
_KEPT_SECONDS = 1.0


class MetricsEndpoint:
    """`apply` and `stop` are called by one thread at a time.

    `render` returns the metrics, from any thread; `set_uri` announces where they are, "" for
    nowhere; `own_address` is the host's address, for people, where the server listens on all.
    """

    def __init__(self, render: Callable[[], str], set_uri: Callable[[str], None],
                 own_address: Callable[[], str], log: logging.Logger) -> None:
        self._render = render
        self._kept_text, self._text_lock = "", threading.Lock()
        self._made_at: Optional[float] = None   # the kept text
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
            if self._stopped:
                return
            if (address, port) == self._wanted and (self._server is not None or not port):
                return
            if self._close():
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

    def _close(self) -> bool:
        """Returns whether it listened until now."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()
        return server is not None

    def _text(self) -> str:
        """The metrics, at most _KEPT_SECONDS old: however many scrapes come, they cost one. Raises
        what `render` raises."""
        with self._text_lock:
            now = time.monotonic()
            if self._made_at is None or now - self._made_at >= _KEPT_SECONDS:
                try:
                    with giving_way():
                        self._kept_text = self._render()
                except Exception:
                    self._log.exception("the metrics cannot be rendered")
                    raise
                self._made_at = now
            return self._kept_text
