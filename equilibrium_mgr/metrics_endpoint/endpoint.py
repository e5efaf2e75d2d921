"""Keeps the HTTP server as the options say: off, or at an address and port."""
from __future__ import annotations

import errno
import logging
import threading
import time
from typing import Callable, Optional, Tuple

from ..runtime.time_slice import giving_way
from .http_server import MetricsServer

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
            if address and port:
                self._listen(address, port)

    def stop(self) -> None:
        """Ends the server for good; its threads have ended and its port is free on return."""
        with self._lock:
            self._stopped = True
            self._close()

    def _listen(self, address: str, port: int) -> None:
        try:
            self._server = self._bound(address, port)
        except (OSError, ValueError, OverflowError) as error:
            failure = getattr(error, "strerror", None) or str(error)
            if failure != self.failure:
                self._log.error("no metrics are served at %s port %d: %s", address, port, failure)
            self.failure = failure
            return
        self.failure = None
        self._server.start()
        host = self._own_address() if address in (_ANY, _ANY_IPV4) else address
        uri = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
        self._set_uri(uri)
        self._log.info("metrics are served at %smetrics", uri)

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
