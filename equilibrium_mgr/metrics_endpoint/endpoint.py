"""Serves one text by HTTP, at the address and port of the options, so that no client can block it.

A connection has SECONDS to send its request and receive the answer, and serves one request. At most
MOST_CONNECTIONS are open. If another comes, the server closes the connection that has waited
longest without a request. The server and each connection have their own threads.
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
#: The limit of a connection: for the request and the answer together.
SECONDS = 10.0
#: The most connections at the same time.
MOST_CONNECTIONS = 16
_POLL_SECONDS = 0.25


class MetricsServer(ThreadingMixIn, HTTPServer):
    """Listens from its construction on, which raises OSError; serves from `start` to `stop`."""

    request_queue_size = 16

    def __init__(self, address: str, port: int, render: Callable[[], str],
                 seconds: float = SECONDS) -> None:
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.render = render
        self.seconds = seconds
        #: connection → (since when it is open, True until its request has come); the oldest first
        self.open: Dict[socket.socket, Tuple[float, bool]] = {}
        self._thread = threading.Thread(
            target=self.serve_forever, args=(_POLL_SECONDS,), name="equilibrium-metrics",
            daemon=True)
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Binds to IPv4 as well if the address is `::`.

        HTTPServer would ask the DNS for the host's name, which can take seconds.
        """
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def start(self) -> None:
        """Starts the thread that answers."""
        self._thread.start()

    def stop(self) -> None:
        """Closes the listening socket and all connections, and waits for the end of their
        threads."""
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
        """Serves a connection in its own thread. Rejects it if MOST_CONNECTIONS have sent their
        requests."""
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
        """Serves a connection; runs in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs nothing: a client is too slow, or has gone."""


def _shut(connection: socket.socket) -> None:
    """Ends a connection, and so its thread."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass   # the client has gone


class _Handler(BaseHTTPRequestHandler):
    """Answers one request, in HTTP/1.0, so that the connection ends with it."""

    protocol_version = "HTTP/1.0"
    server_version = "equilibrium"
    sys_version = ""
    server: MetricsServer

    def do_GET(self) -> None:
        """Answers `/metrics`, and `/`, which `ceph mgr services` names."""
        connection = self.connection
        if connection in self.server.open:   # it is not closed for another any more
            self.server.open[connection] = self.server.open[connection][0], False
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404)
            return
        try:
            text = self.server.render().encode()
        except Exception:   # logged by the renderer
            self.send_error(500)
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing, because a scrape comes every few seconds."""


#: All addresses of the host. The second is for hosts without IPv6.
_ANY = "::"
_ANY_IPV4 = "0.0.0.0"
#: A text serves all scrapes of so many seconds.
_KEPT_SECONDS = 1.0


class MetricsEndpoint:
    """Runs the server of the metrics. One thread at a time calls `apply` and `stop`.

    `render` returns the metrics, from any thread. `set_uri` announces their address, "" for none.
    `own_address` returns the host's address, for people, if the server listens on all.
    """

    def __init__(self, render: Callable[[], str], set_uri: Callable[[str], None],
                 own_address: Callable[[], str], log: logging.Logger) -> None:
        self._render = render
        self._kept_text, self._text_lock = "", threading.Lock()
        self._made_at: Optional[float] = None   # when, by the monotonic clock
        self._set_uri = set_uri
        self._own_address = own_address
        self._log = log
        self._lock = threading.Lock()
        self._stopped = False
        self._server: Optional[MetricsServer] = None
        self._wanted: Tuple[str, int] = ("", 0)
        self.failure: Optional[str] = None   # why it does not listen although it should

    def apply(self, address: str, port: int) -> None:
        """Listens there; nowhere if the port is 0 or the address empty.

        If that fails, `failure` has the reason, and the next call tries again.
        """
        with self._lock:
            if self._stopped:
                return
            if (address, port) == self._wanted and (self._server is not None or not port):
                return
            if self._close():
                self._set_uri("")
            self._wanted = (address, port)
            if not (address and port):
                self.failure = None
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
        """Ends the server for good, and waits until its threads have ended and its port is free."""
        with self._lock:
            self._stopped = True
            self._close()

    def _bound(self, address: str, port: int) -> MetricsServer:
        """Returns a server that listens."""
        try:
            return MetricsServer(address, port, self._text)
        except OSError as error:
            if address != _ANY or error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise
        return MetricsServer(_ANY_IPV4, port, self._text)

    def _close(self) -> bool:
        """Ends the server; returns True if there was one."""
        server = self._server
        self._server = None
        if server is not None:
            server.stop()
        return server is not None

    def _text(self) -> str:
        """Returns the metrics, at most _KEPT_SECONDS old, so that many scrapes cost as much as one.

        Raises the exceptions of `render`.
        """
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
